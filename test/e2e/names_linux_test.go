package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// TestDataMovesToAnotherHost: a daemon that is started where the host is called otherwise goes on with the name that the data has, says
// so, and takes over what runs.
func TestDataMovesToAnotherHost(t *testing.T) {
	t.Parallel()
	if out, err := exec.Command("unshare", "--uts", "hostname", "alpha").CombinedOutput(); err != nil {
		t.Skipf("the host can't be called otherwise here: unshare --uts hostname alpha: %v\n%s", err, out)
	}
	d := newDaemon(t, "sim:custom,mem=64Mi+64Mi")
	d.host = "alpha.example.com"
	d.start()
	if got := d.node(); got != "alpha" {
		t.Fatalf("it is called %s", got)
	}
	d.submit(spec("runs", "rigid: {walltime: 1h}",
		`while ! [ -e `+d.dir+`/goon ]; do sleep 0.05; done; echo 0 > "$SLUICE_OUTPUT_DIR/units"`, "grace: 200ms"))
	d.running("runs", 1)
	before := d.slices()
	d.kill()
	if strings.Contains(d.log.String(), "keeps the name") {
		t.Error("it says that it keeps the name which its host has")
	}
	d.host = "beta"
	d.start()
	says(t, d.log.String(), "keeps the name", "name=alpha", "host=beta")
	if after := d.slices(); !slices.Equal(after, before) {
		t.Errorf("slices %+v, were %+v", after, before)
	}
	if j := d.job("runs"); j.Running != 1 || j.Lost != 0 {
		t.Errorf("%+v", j)
	}
	d.again("--name", "beta")
	if got := d.node(); got != "beta" {
		t.Errorf("renamed it is called %s", got)
	}
	d.write("goon", "")
	d.done("runs")
	d.once("runs", 1)
	d.end(syscall.SIGTERM)
	if text, err := os.ReadFile(filepath.Join(d.data, "names")); err != nil || string(text) != "alpha\nbeta\n" {
		t.Errorf("it keeps %q, %v", text, err)
	}
}
