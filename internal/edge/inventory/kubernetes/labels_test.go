//go:build kubernetes

package kubernetes

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"sluice.dev/sluice/internal/core/trp"
)

// labelled is a Node with these labels alone, KEY=VALUE.
func labelled(list ...string) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Labels = map[string]string{}
		for _, l := range list {
			key, value, _ := strings.Cut(l, "=")
			n.Labels[key] = value
		}
	}
}

func annotated(key string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Annotations = map[string]string{key: "[...]"} }
}

// The labels are those of GPU feature discovery 0.17 and of GKE.
func TestWhatLabelsSayOfAResource(t *testing.T) {
	const (
		gpu, small = "nvidia.com/gpu", "nvidia.com/mig-1g.10gb"
		a100       = "nvidia.com/gpu.product=NVIDIA-A100-SXM4-80GB"
	)
	for _, c := range []struct {
		name string
		of   Resource
		node []func(*corev1.Node)
		// want is what one of them is, or why none is offered.
		want string
	}{
		{"whole GPUs", Resource{Name: gpu}, []func(*corev1.Node){has(gpu, 8),
			labelled(a100, gpu+".memory=81920", gpu+".count=8", gpu+".replicas=1", gpu+".sharing-strategy=none",
				"nvidia.com/mig.strategy=single")},
			"8 NVIDIA A100-SXM4-80GB gpu 81920Mi 1000"},
		{"without the label of their memory", Resource{Name: gpu}, []func(*corev1.Node){has(gpu, 8), labelled(a100)},
			"8 NVIDIA A100-SXM4-80GB gpu 81920Mi 1000"},
		{"of an unknown product", Resource{Name: gpu},
			[]func(*corev1.Node){has(gpu, 8), labelled(gpu+".product=Tesla-T4", gpu+".memory=15360")},
			"8 Tesla-T4 gpu 15360Mi 1000"},
		{"with no label at all", Resource{Name: gpu}, []func(*corev1.Node){has(gpu, 8), labelled()},
			"how much memory one of nvidia.com/gpu has is not known, by its labels or its profile (gpu): say it in its pool"},
		{"and the pool says it", Resource{Name: gpu, Memory: 16 << 30, Model: "b200"}, []func(*corev1.Node){has(gpu, 8), labelled()},
			"8 NVIDIA B200 gpu 16384Mi 1000"},
		{"a model as the schema's example has it", Resource{Name: small, Model: "A100-SXM4-80GB"},
			[]func(*corev1.Node){has(small, 2), labelled()}, "2 NVIDIA A100-SXM4-80GB 1g.10gb 9856Mi 142"},

		{"the strategy single", Resource{Name: gpu}, []func(*corev1.Node){has(gpu, 56),
			labelled("nvidia.com/mig.strategy=single", a100+"-MIG-1g.10gb", gpu+".count=56", gpu+".replicas=1", gpu+".memory=9856",
				gpu+".slices.gi=1")},
			"56 NVIDIA A100-SXM4-80GB 1g.10gb 9856Mi 142"},
		{"the strategy single without memory, with an extension", Resource{Name: gpu},
			[]func(*corev1.Node){has(gpu, 1), labelled("nvidia.com/gpu.product=A100-SXM4-80GB-MIG-1g.10gb.me")},
			"1 NVIDIA A100-SXM4-80GB 1g.10gb+me 9856Mi 142"},
		{"the strategy single of a board that is not known", Resource{Name: gpu},
			[]func(*corev1.Node){has(gpu, 7), labelled("nvidia.com/gpu.product=NVIDIA-X900-MIG-1g.99gb", gpu+".memory=101376")},
			"7 NVIDIA-X900 1g.99gb 101376Mi 142"},
		{"the strategy single where GPUs differ", Resource{Name: gpu},
			[]func(*corev1.Node){has(gpu, 7), labelled(a100+"-MIG-INVALID", gpu+".count=0")},
			"there are more of nvidia.com/gpu than labels count devices: they are shared, or of several kinds"},
		{"the same without a count", Resource{Name: gpu}, []func(*corev1.Node){has(gpu, 7), labelled(a100 + "-MIG-INVALID")},
			"nvidia.com/gpu is of GPUs that are not cut alike, as the MIG strategy single wants them"},
		{"a partition of GKE", Resource{Name: gpu}, []func(*corev1.Node){has(gpu, 7),
			labelled("cloud.google.com/gke-accelerator=nvidia-a100-80gb", "cloud.google.com/gke-gpu-partition-size=1g.10gb")},
			"7 NVIDIA A100-SXM4-80GB 1g.10gb 9856Mi 142"},

		{"the strategy mixed", Resource{Name: small}, []func(*corev1.Node){has(small, 7),
			labelled(a100, gpu+".memory=81920", gpu+".count=1", gpu+".replicas=0", small+".count=7", small+".memory=9728",
				small+".replicas=1",
				small+".product=NVIDIA-A100-SXM4-80GB-MIG-1g.10gb")},
			"7 NVIDIA A100-SXM4-80GB 1g.10gb 9728Mi 142"},
		{"a media extension as the plugin spells it", Resource{Name: small + ".me"},
			[]func(*corev1.Node){has(small+".me", 1), labelled(a100)},
			"1 NVIDIA A100-SXM4-80GB 1g.10gb+me 9856Mi 142"},
		{"all media engines", Resource{Name: "nvidia.com/mig-1g.24gb.me.all"},
			[]func(*corev1.Node){has("nvidia.com/mig-1g.24gb.me.all", 1),
				labelled(gpu + ".product=NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition")},
			"1 NVIDIA RTX PRO 6000 Blackwell Server Edition 1g.24gb+me.all 23680Mi 244"},
		{"the labels of another profile are not its own", Resource{Name: small, Profile: "1g.20gb"},
			[]func(*corev1.Node){has(small, 7), labelled(a100, small+".memory=9728", small+".count=7")},
			"7 NVIDIA A100-SXM4-80GB 1g.20gb 19968Mi 142"},
		{"a board that is not in the tables takes no other's row", Resource{Name: small},
			[]func(*corev1.Node){has(small, 7), labelled("nvidia.com/gpu.product=NVIDIA-H800")}, "7 NVIDIA-H800 1g.10gb 9536Mi 142"},
		{"a profile that is not in the tables, and its label", Resource{Name: "nvidia.com/mig-3g.95gb"},
			[]func(*corev1.Node){has("nvidia.com/mig-3g.95gb", 2), labelled(a100, "nvidia.com/mig-3g.95gb.memory=95000")},
			"2 NVIDIA A100-SXM4-80GB 3g.95gb 95000Mi 428"},
		{"a profile that is not in the tables", Resource{Name: "nvidia.com/mig-3g.95gb"},
			[]func(*corev1.Node){has("nvidia.com/mig-3g.95gb", 2), labelled(a100)},
			"how much memory one of nvidia.com/mig-3g.95gb has is not known, by its labels or its profile (3g.95gb): say it in its pool"},
		{"a profile that is not in the tables, and the pool", Resource{Name: "nvidia.com/mig-3g.95gb", Memory: 90 << 30, Speed: 440},
			[]func(*corev1.Node){has("nvidia.com/mig-3g.95gb", 2), labelled(a100)},
			"2 NVIDIA A100-SXM4-80GB 3g.95gb 92160Mi 440"},
		{"what is no GPU is not taken for one", Resource{Name: "example.com/fpga"},
			[]func(*corev1.Node){has("example.com/fpga", 2), labelled(a100, gpu+".memory=81920")},
			"how much memory one of example.com/fpga has is not known, by its labels or its profile (fpga): say it in its pool"},
		{"another name for whole GPUs", Resource{Name: "example.com/gpu"},
			[]func(*corev1.Node){has("example.com/gpu", 2), labelled(a100, gpu+".memory=81251")},
			"2 NVIDIA A100-SXM4-80GB gpu 81251Mi 1000"},
		{"another name, and labels of instances", Resource{Name: "example.com/card", Profile: "gpu"},
			[]func(*corev1.Node){has("example.com/card", 2), labelled("nvidia.com/gpu.product=NVIDIA-X900-MIG-1g.10gb",
				gpu+".memory=9728")},
			"how much memory one of example.com/card has is not known, by its labels or its profile (gpu): say it in its pool"},

		{"time-slicing", Resource{Name: gpu}, []func(*corev1.Node){has(gpu, 32),
			labelled(a100+"-SHARED", gpu+".memory=81920", gpu+".count=8", gpu+".replicas=4", gpu+".sharing-strategy=time-slicing")},
			"nvidia.com/gpu is shared (time-slicing, 4 Pods to a device)"},
		{"time-slicing, whatever the pool says", Resource{Name: gpu, Memory: 10 << 30},
			[]func(*corev1.Node){has(gpu, 32), labelled(a100, gpu+".replicas=4")},
			"nvidia.com/gpu is shared (replicas, 4 Pods to a device)"},
		{"by the product alone", Resource{Name: gpu}, []func(*corev1.Node){has(gpu, 32), labelled(a100 + "-SHARED")},
			"nvidia.com/gpu is shared (its product is NVIDIA-A100-SXM4-80GB-SHARED)"},
		{"by the strategy alone", Resource{Name: gpu}, []func(*corev1.Node){has(gpu, 32), labelled(a100, gpu+".sharing-strategy=mps")},
			"nvidia.com/gpu is shared (mps)"},
		{"by the name alone", Resource{Name: gpu + ".shared", Memory: 10 << 30}, []func(*corev1.Node){has(gpu+".shared", 32), labelled()},
			"nvidia.com/gpu.shared is shared, by its name"},
		{"renamed", Resource{Name: gpu + ".shared", Memory: 10 << 30},
			[]func(*corev1.Node){has(gpu+".shared", 32), labelled(a100, gpu+".replicas=4", gpu+".sharing-strategy=mps")},
			"nvidia.com/gpu.shared is shared (mps, 4 Pods to a device)"},
		{"renamed to something else", Resource{Name: "nvidia.com/some", Memory: 10 << 30},
			[]func(*corev1.Node){has("nvidia.com/some", 32), labelled(a100, gpu+".replicas=4", gpu+".sharing-strategy=mps")},
			"nvidia.com/some has no labels, and some of the machine's GPUs are shared under another name (mps)"},
		{"instances that are shared", Resource{Name: small},
			[]func(*corev1.Node){has(small, 14), labelled(a100, gpu+".replicas=1", gpu+".sharing-strategy=none", small+".replicas=2",
				small+".sharing-strategy=time-slicing", small+".product=NVIDIA-A100-SXM4-80GB-MIG-1g.10gb-SHARED")},
			"nvidia.com/mig-1g.10gb is shared (time-slicing, 2 Pods to a device)"},
		{"instances that are not, beside GPUs that are", Resource{Name: small},
			[]func(*corev1.Node){has(small, 7), labelled(a100, gpu+".replicas=4", gpu+".sharing-strategy=time-slicing", small+".replicas=1",
				small+".sharing-strategy=none", small+".memory=9728")},
			"7 NVIDIA A100-SXM4-80GB 1g.10gb 9728Mi 142"},
		{"the strategy single, shared", Resource{Name: gpu},
			[]func(*corev1.Node){has(gpu, 14), labelled(a100+"-MIG-1g.10gb-SHARED", gpu+".replicas=2", gpu+".count=7", gpu+".memory=9728")},
			"nvidia.com/gpu is shared (replicas, 2 Pods to a device)"},
		{"more than there are devices", Resource{Name: gpu},
			[]func(*corev1.Node){has(gpu, 10), labelled(a100, gpu+".count=1", gpu+".memory=81920")},
			"there are more of nvidia.com/gpu than labels count devices: they are shared, or of several kinds"},
		{"HAMi", Resource{Name: gpu}, []func(*corev1.Node){has(gpu, 10), labelled(a100, gpu+".memory=81920"),
			annotated("hami.io/node-nvidia-register")},
			"nvidia.com/gpu is given out in parts of GPUs by another manager (annotation hami.io/node-nvidia-register)"},
		{"sharing of GKE", Resource{Name: gpu}, []func(*corev1.Node){has(gpu, 4),
			labelled("cloud.google.com/gke-gpu-sharing-strategy=time-sharing", "cloud.google.com/gke-max-shared-clients-per-gpu=4",
				gpu+".memory=15360")},
			"nvidia.com/gpu is shared (time-sharing, 4 Pods to a device)"},
		{"one client of GKE", Resource{Name: gpu}, []func(*corev1.Node){has(gpu, 4),
			labelled("cloud.google.com/gke-gpu-sharing-strategy=time-sharing", "cloud.google.com/gke-max-shared-clients-per-gpu=1",
				gpu+".memory=15360")},
			"4 gpu gpu 15360Mi 1000"},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := sceneOf([]Pool{{Name: "p", Resources: []Resource{c.of}}}, node("w", c.node...)).evaluate(&stand{})
			got := ""
			if len(x.slices) > 0 {
				s := x.slices[0]
				got = fmt.Sprintf("%d %s %s %dMi %d", len(x.slices), s.Model, s.Profile, s.Capacity[trp.Memory]>>20, s.Speed)
			}
			for o, n := range x.leftOut {
				if got += o.why; o.pool != "p" || n < 1 {
					t.Errorf("left out: %+v", x.leftOut)
				}
			}
			if got != c.want {
				t.Errorf("it is\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// TestWhatIsLeftOutIsSaid: all reasons, with how much and where, for a pool and for all of them; and what is shared goes while it is
// watched.
func TestWhatIsLeftOutIsSaid(t *testing.T) {
	const gpu, other = "nvidia.com/gpu", "example.com/fpga"
	c := serve(node("a", has(gpu, 2)), node("b", has(gpu, 8), labelled(gpu+".memory=1024", gpu+".replicas=4", gpu+".sharing-strategy=mps")),
		node("c", has(gpu, 4), has(other, 1), labelled(gpu+".memory=1024", gpu+".replicas=4", gpu+".sharing-strategy=mps")))
	o := options(c)
	o.Pools = []Pool{{Name: "gpus", Resources: []Resource{{Name: gpu}}}, {Name: "others", Resources: []Resource{{Name: other}}}}
	inv := opened(t, o)
	shared, unknown := "nvidia.com/gpu is shared (mps, 4 Pods to a device) (12 on b and 1 more machines)",
		"how much memory one of example.com/fpga has is not known, by its labels or its profile (fpga): say it in its pool (1 on c)"
	if got, want := inv.Describe(),
		"2 slices on 1 machines of a Kubernetes cluster, pools gpus, others; 13 devices left out: "+shared+"; "+unknown; got != want {
		t.Errorf("it says\n%s\nwant\n%s", got, want)
	}
	if got := inv.LeftOut("gpus"); got != "12 devices left out: "+shared {
		t.Errorf("of its pool it says %s", got)
	}
	if list, err := inv.Slices(t.Context()); err != nil || len(list) == 0 {
		t.Errorf("slices %v, %v", list, err)
	} else if p, ok := inv.PoolOf(list[0].ID); !ok || p.Name != "gpus" {
		t.Errorf("slice %s is of pool %q, %v", list[0].ID, p.Name, ok)
	}
	if p, ok := inv.PoolOf("b/nvidia.com/gpu/0"); ok {
		t.Errorf("what is not offered is of pool %q", p.Name)
	}
	if got := inv.LeftOut("others"); got != "1 devices left out: "+unknown {
		t.Errorf("of the other it says %s", got)
	}
}
