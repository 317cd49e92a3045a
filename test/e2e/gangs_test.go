package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// three nodes of one slice each, two of them in one rack.
func upGangs(t *testing.T) *daemon {
	file := filepath.Join(t.TempDir(), "sluice.yml")
	if err := os.WriteFile(file, []byte("nodes: [{count: 2, rack: r1}, {rack: r2}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return up(t, "sim:custom=3,mem=64Mi", "--config", file)
}

// A gang over three nodes is three processes that know which they are; what each of them wrote is the job's output. It outlives its daemon
// as a whole.
func TestAGangOverNodes(t *testing.T) {
	t.Parallel()
	d := upGangs(t)
	d.submit(spec("trio", "rigid: {walltime: 2m, slices: 3, topology: zone}",
		d.opened("trio")+`; echo "$SLUICE_MEMBER of $SLUICE_MEMBERS" > "$SLUICE_OUTPUT_DIR/who"`))
	d.until("all three run", func() bool {
		n := 0
		for _, s := range d.slices() {
			if s.Job == "trio" && strings.Contains(s.Reason, "of 3") {
				n++
			}
		}
		return n == 3
	})
	says(t, d.must("explain", "trio"), "running on 3 nodes", "member 2")
	d.end(syscall.SIGKILL)
	d.start()
	d.write("trio", "")
	d.done("trio")
	if out := d.must("output", "trio", "--cat"); out != "0 of 3\n1 of 3\n2 of 3\n" {
		t.Errorf("output %q", out)
	}
	folders := strings.Fields(d.must("output", "trio", "-o", "name"))
	if len(folders) != 3 {
		t.Fatalf("folders %q, want one for each member", folders)
	}
	for i, folder := range folders {
		if data, err := os.ReadFile(filepath.Join(folder, "who")); err != nil || string(data) != fmt.Sprintf("%d of 3\n", i) {
			t.Errorf("%s: %q, %v", folder, data, err)
		}
	}
	says(t, d.must("output", "trio"), "member 1", "member 2")
	d.fails(2, []string{"no rack has more than 2", "topology: zone"}, "submit", "-f",
		d.write("close.yml", spec("close", "rigid: {walltime: 20s, slices: 3, topology: rack}", ":")))
}

// A member that fails ends the others, and the job learns why.
func TestAGangEndsWithItsMember(t *testing.T) {
	t.Parallel()
	d := upGangs(t)
	d.submit(spec("pair", "rigid: {walltime: 60s, slices: 2, topology: rack}", `[ "$SLUICE_MEMBER" = 0 ] || { echo broken >&2; exit 3; }
sleep 50`, "maxFailures: 1", "grace: 200ms"))
	began := time.Now()
	j := d.over("pair")
	if j.State != "FAILED" || !strings.Contains(j.Reason, "member 1 of 2") || !strings.Contains(j.Reason, "broken") ||
		time.Since(began) > 20*time.Second {
		t.Errorf("%s: %q after %v", j.State, j.Reason, time.Since(began))
	}
	d.until("both slices are idle", func() bool {
		for _, s := range d.slices() {
			if s.State != "idle" {
				return false
			}
		}
		return true
	})
}
