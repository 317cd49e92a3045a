//go:build kubernetes

package plane

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// fakeGo is a go that makes a program of one line in two halves, and between them, for the one that is named in $BREAK, kills the build.
const fakeGo = `#!/usr/bin/env bash
case $1 in
version) exit 0 ;;
env) echo /tmp ;;
list) echo "$KUEUE" ;;
build)
	echo "${@: -1}" >> "$BUILT"
	while [ "$1" != -o ]; do shift; done
	printf 'half' > "$2"; chmod +x "$2"
	if [ "$(basename "$2")" = "$BREAK" ]; then kill -KILL "$PPID"; exit 1; fi
	printf ' and half' >> "$2" ;;
esac
`

// TestAKilledBuildLeavesNoHalfProgram: what was built before stays, what was being built is not there, and the next build makes what is
// missing and no more.
func TestAKilledBuildLeavesNoHalfProgram(t *testing.T) {
	clone, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	assets, built, kueue := filepath.Join(dir, "assets"), filepath.Join(dir, "built"), filepath.Join(dir, "kueue")
	for _, d := range []string{"crd/bases", "webhook"} {
		if err := os.MkdirAll(filepath.Join(kueue, "config/components", d), 0o750); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{"crd/bases/a.yaml", "webhook/manifests.yaml"} {
		if err := os.WriteFile(filepath.Join(kueue, "config/components", f), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	gotool := filepath.Join(dir, "go")
	if err := os.WriteFile(gotool, []byte(fakeGo), 0o700); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	parts := ""
	run := func(breaks string, words ...string) (string, error) {
		cmd := exec.Command(filepath.Join(clone, "tools", "kube", "assets.sh"), words...)
		cmd.Env = append(os.Environ(), "GO="+gotool, "SLUICE_KUBE_ASSETS="+assets, "BUILT="+built, "KUEUE="+kueue, "BREAK="+breaks,
			"SLUICE_KUBE_PARTS="+parts)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	there := func() (list []string) {
		entries, err := os.ReadDir(assets)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			b, err := os.ReadFile(filepath.Join(assets, e.Name()))
			if err == nil && len(b) > 0 {
				if list = append(list, e.Name()); string(b) != "half and half" {
					t.Errorf("%s is %q", e.Name(), b)
				}
			}
		}
		return list
	}

	if out, err := run("kubectl", "build"); err == nil {
		t.Fatalf("a build that was killed ended well: %s", out)
	}
	if got := strings.Join(there(), " "); got != "etcd kube-apiserver" {
		t.Errorf("after the killed build there are %s", got)
	}
	parts = "kubectl kwok"
	if out, err := run("", "build"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if got := strings.Join(there(), " "); got != "etcd kube-apiserver kubectl kwok" {
		t.Errorf("there are %s: two more were asked for", got)
	}
	parts = ""
	all, err := run("", "list")
	if out, err := run("", "build"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err != nil || len(there()) != len(strings.Fields(all)) {
		t.Errorf("there are %v, want %q (%v)", there(), all, err)
	}
	if left, _ := filepath.Glob(filepath.Join(assets, ".build.*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	log, err := os.ReadFile(built)
	if err != nil || strings.Count(string(log), "\n") != len(strings.Fields(all))+1 {
		t.Errorf("built were %q (%v), want each once and kubectl twice", log, err)
	}
	if out, err := run("", "build"); err != nil || !strings.Contains(out, "all there") {
		t.Errorf("with nothing to do: %v: %s", err, out)
	}
	if out, err := run("", "paint"); err == nil || !strings.Contains(out, "none of build, where, list") {
		t.Errorf("an unknown verb: %v: %s", err, out)
	}
}
