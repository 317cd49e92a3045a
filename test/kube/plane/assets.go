//go:build kubernetes

package plane

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Root is the clone's folder: the first above the working directory that has tools/kube.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for d := dir; ; d = filepath.Dir(d) {
		if _, err := os.Stat(filepath.Join(d, "tools", "kube", "assets.sh")); err == nil {
			return d, nil
		} else if d == filepath.Dir(d) {
			return "", fmt.Errorf("no folder from %s upwards has tools/kube/assets.sh", dir)
		}
	}
}

// Assets is the folder with the programs: SLUICE_KUBE_ASSETS, else what tools/kube/assets.sh says.
func Assets() (string, error) {
	if dir := os.Getenv("SLUICE_KUBE_ASSETS"); dir != "" {
		return dir, nil
	}
	clone, err := Root()
	if err != nil {
		return "", err
	}
	out, err := exec.Command(filepath.Join(clone, "tools", "kube", "assets.sh"), "where").Output()
	if err != nil {
		return "", fmt.Errorf("tools/kube/assets.sh where: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// demand returns the folder with the programs if all that are named are there. Where one is not, the test is skipped with the reason, and
// fails if SLUICE_KUBE is require: what `make kube` runs has them. With SLUICE_KUBE=none (`make test-tags`) nothing is started.
func demand(t testing.TB, names ...string) string {
	t.Helper()
	if os.Getenv("SLUICE_KUBE") == "none" {
		t.Skip("SLUICE_KUBE is none: no control plane is started")
	}
	dir, err := Assets()
	if err != nil {
		t.Fatal(err)
	}
	var missing []string
	for _, n := range names {
		if info, err := os.Stat(filepath.Join(dir, n)); err != nil || info.Mode()&0o111 == 0 {
			missing = append(missing, n)
		}
	}
	if len(missing) == 0 {
		return dir
	}
	why := fmt.Sprintf("%s is not in %s: run `make kube-assets` (about 12 minutes the first time)", strings.Join(missing, ", "), dir)
	if os.Getenv("SLUICE_KUBE") == "require" {
		t.Fatal(why)
	}
	t.Skip(why)
	return ""
}
