package programs

import (
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// TestPyTorch: a network with dropout, cut and struck, has the same weights, bit by bit.
func TestPyTorch(t *testing.T) {
	needs(t, "python3-torch", python, "-c", "import torch")
	program{
		name: "pytorch", units: 6000, window: 8 * time.Second, key: "perStep", estimate: "2ms",
		prepare: func(t *testing.T, dir string, units int) {
			n := strconv.Itoa(units)
			edit(t, filepath.Join(dir, "job.yaml"), "total: 20000", "total: "+n, `STEPS: "20000"`, `STEPS: "`+n+`"`, "[python3,",
				"["+python+",", "grace: 10s", "grace: 2s", "startup: 5s", "startup: 1s")
		},
		same: func(t *testing.T, uncut, cut *daemon, job string, _ int) {
			const equal = `
import sys, torch
a, b = torch.load(sys.argv[1]), torch.load(sys.argv[2])
sys.exit(0 if a.keys() == b.keys() and len(a) == 6 and all(torch.equal(a[k], b[k]) for k in a) else "they differ")`
			out, err := exec.Command(python, "-c", equal, filepath.Join(uncut.last(job), "model.pt"), filepath.Join(cut.last(job),
				"model.pt")).CombinedOutput()
			if err != nil {
				t.Errorf("the weights of the run that was cut are not those of the uncut one: %v %s", err, out)
			}
		},
	}.compare(t)
}
