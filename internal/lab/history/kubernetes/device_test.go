package kubernetes

import "testing"

// TestDevice: what a resource is of, as Kubernetes writes its name and as kube-state-metrics does.
func TestDevice(t *testing.T) {
	for names, want := range map[[2]string]unit{
		{"nvidia.com/gpu", "nvidia_com_gpu"}:                               {},
		{"nvidia.com/gpu.shared", "nvidia_com_gpu_shared"}:                 {shared: true},
		{"nvidia.com/mig-1g.10gb", "nvidia_com_mig_1g_10gb"}:               {profile: "1g.10gb"},
		{"nvidia.com/mig-1g.10gb.me", "nvidia_com_mig_1g_10gb_me"}:         {profile: "1g.10gb+me"},
		{"nvidia.com/mig-2g.20gb.shared", "nvidia_com_mig_2g_20gb_shared"}: {"2g.20gb", true},
		{"amd.com/gpu", "amd_com_gpu"}:                                     {},
		{"gpu.intel.com/i915", "gpu_intel_com_i915"}:                       {},
	} {
		for _, name := range names {
			if got, is := device(name); !is || got != want || !Device(name) {
				t.Errorf("%s: %+v, %v, want %+v", name, got, is, want)
			}
		}
	}
	for _, name := range []string{"cpu", "nvidia.com/mig-", "example.com/gpu", "", "nvidia.com/gpumem"} {
		if Device(name) {
			t.Errorf("%q is of GPUs", name)
		}
	}
}
