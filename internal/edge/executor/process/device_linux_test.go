package process_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/edge/executor/process"
	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/executor/shim/tree"
)

// onGPU gives every slice a device with 1 GiB of memory of its own.
func onGPU(o *process.Options) {
	o.Slice = func(id job.SliceID) (protocol.Slice, bool) {
		return protocol.Slice{ID: id, Device: "MIG-7", Capacity: trp.Vector{1 << 30}}, true
	}
}

func TestOutOfGPUMemoryIsAMemoryKill(t *testing.T) {
	t.Parallel()
	const torch = "echo 'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB.' >&2; "
	for name, c := range map[string]struct {
		program string
		noGPU   bool
		want    job.Outcome
	}{
		"last words":           {program: torch + "exit 1", want: job.MemoryKilled},
		"abort":                {program: "echo 'CUDA_ERROR_OUT_OF_MEMORY: out of memory' >&2; kill -ABRT $$", want: job.MemoryKilled},
		"long ago":             {program: torch + "seq 100 >&2; exit 1", want: job.ExitFailed},
		"another error":        {program: "echo 'no such file' >&2; exit 1", want: job.ExitFailed},
		"it went on and ended": {program: torch + "exit 0", want: job.Done},
		"killed from outside":  {program: torch + "kill -KILL $$", want: job.ExitFailed},
		"no GPU":               {program: torch + "exit 1", noGPU: true, want: job.ExitFailed},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, func(o *process.Options) {
				if !c.noGPU {
					onGPU(o)
				}
			})
			r := b.run(lease(time.Minute, "sh", "-c", c.program), c.want)
			killed := c.want == job.MemoryKilled
			if killed != (r.Peak[trp.Memory] == 1<<30) || killed != strings.Contains(r.Detail, "were not enough") {
				t.Errorf("peak %d, detail %q", r.Peak[trp.Memory], r.Detail)
			}
		})
	}
}

func TestUseOfTheGPUIsObserved(t *testing.T) {
	t.Parallel()
	for name, told := range map[string]bool{"told": true, "not told": false} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, func(o *process.Options) {
				onGPU(o)
				o.Report = 20 * time.Millisecond
				dir := o.DataDir
				o.Use = func(id job.SliceID) (map[int]int64, error) {
					if id != "n/sim/0" {
						t.Errorf("asked for slice %q", id)
					}
					if !told {
						return nil, errors.New("no driver")
					}
					note, err := shim.Dir(filepath.Join(dir, "runs", token.String())).ReadNote()
					use := map[int]int64{1: 1 << 40} // somebody else's
					for _, m := range tree.Below(note.Init) {
						use[m.PID] = 100
					}
					return use, err
				}
			})
			// A shell and two programs.
			r := b.run(lease(time.Minute, "sh", "-c", "sleep 1 & sleep 1 & wait"), job.Done)
			want := int64(0)
			if told {
				want = 300
			}
			if int64(r.Peak[trp.Memory]) != want {
				t.Errorf("peak %d, want %d", r.Peak[trp.Memory], want)
			}
		})
	}
}
