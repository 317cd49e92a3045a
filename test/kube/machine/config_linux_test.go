//go:build kubernetes && machine

package machine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// pauseImage holds a Pod's namespaces. The machine makes it, as it makes all images.
const pauseImage = "machine.test/pause:1"

// Sockets and folders of a machine that lie in its own /run and /var/lib.
const (
	containerdSocket = "/run/containerd/containerd.sock"
)

// write writes what the machine's programs read.
func (m *Machine) write() error {
	in := func(name string) string { return filepath.Join(m.dir, name) }
	containerd := fmt.Sprintf(`version = 3
root = %q
state = "/run/containerd"
disabled_plugins = ["io.containerd.nri.v1.nri"]
[grpc]
  address = %q
[plugins."io.containerd.cri.v1.images"]
  snapshotter = "overlayfs"
  [plugins."io.containerd.cri.v1.images".pinned_images]
    sandbox = %q
[plugins."io.containerd.cri.v1.runtime"]
  restrict_oom_score_adj = true
  tolerate_missing_hugetlb_controller = true
  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = [%q]
    conf_dir = %q
  [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
      BinaryName = %q
`, in("containerd"), containerdSocket, pauseImage, m.programs, in("cni"), filepath.Join(m.programs, "runc"))
	// No masquerading, and so no rules of a firewall: what Pods may reach is on this machine.
	cni := fmt.Sprintf(`{"cniVersion": "1.0.0", "name": "pods", "plugins": [{"type": "bridge", "bridge": "pods", "isGateway": true,
  "ipam": {"type": "host-local", "dataDir": "/run/cni-leases", "ranges": [[{"subnet": %q, "gateway": %q}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}
`, podCIDR, gateway)
	kubelet := fmt.Sprintf(`apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
containerRuntimeEndpoint: "unix://%s"
cgroupDriver: cgroupfs
cgroupRoot: /%s
failCgroupV1: false
failSwapOn: false
makeIPTablesUtilChains: false
oomScoreAdj: 0
podLogsDir: %q
evictionHard: {memory.available: "0%%", nodefs.available: "0%%", imagefs.available: "0%%", nodefs.inodesFree: "0%%"}
imageGCHighThresholdPercent: 100
nodeStatusUpdateFrequency: 2s
`, containerdSocket, m.group, in("logs"))
	return errors.Join(
		os.MkdirAll(in("cni"), 0o755), os.MkdirAll(in("kubelet"), 0o755),
		os.WriteFile(in("containerd.toml"), []byte(containerd), 0o600),
		os.WriteFile(in("cni/10-pods.conflist"), []byte(cni), 0o600),
		os.WriteFile(in("kubelet.yaml"), []byte(kubelet), 0o600),
	)
}

// arguments is a part's command line.
func (m *Machine) arguments(part Part) []string {
	in := func(name string) string { return filepath.Join(m.dir, name) }
	if part == Containerd {
		return []string{"--config", in("containerd.toml")}
	}
	return []string{"--kubeconfig=" + m.kubeconfig, "--config=" + in("kubelet.yaml"), "--root-dir=" + in("kubelet"), "--cert-dir=" +
		in("certificates"),
		"--hostname-override=" + m.Name, "--node-ip=" + nodeIP}
}
