//go:build kubernetes && machine

package machine

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sluice.dev/sluice/test/kube/plane"
)

// needed are the machine's programs.
var needed = []string{"kubelet", "containerd", "containerd-shim-runc-v2", "ctr", "runc", "bridge", "host-local",
	"loopback"}

// refuse skips the test with the reason why there can be no machine here, or fails it where SLUICE_KUBE is require.
func refuse(t testing.TB, why error) {
	t.Helper()
	text := fmt.Sprintf("a real machine can't be had here: %v", why)
	if os.Getenv("SLUICE_KUBE") == "require" {
		t.Fatal(text)
	}
	t.Skip(text)
}

// demand returns the folder with the machine's programs.
func demand(t testing.TB) string {
	t.Helper()
	if os.Getuid() != 0 {
		refuse(t, fmt.Errorf("it takes root, and this is user %d", os.Getuid()))
	}
	clone, err := plane.Root()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(filepath.Join(clone, "tools", "kube", "assets.sh"), "machine-where").Output()
	if err != nil {
		t.Fatalf("tools/kube/assets.sh machine-where: %v", err)
	}
	dir := strings.TrimSpace(string(out))
	var missing []string
	for _, n := range needed {
		if info, err := os.Stat(filepath.Join(dir, n)); err != nil || info.Mode()&0o111 == 0 {
			missing = append(missing, n)
		}
	}
	if len(missing) > 0 {
		refuse(t, fmt.Errorf("%s is not in %s: run `tools/kube/assets.sh machine` (some minutes the first time)",
			strings.Join(missing, ", "), dir))
	}
	return dir
}
