package host

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/inventory"
)

// real is an inventory that has a GPU of a given name behind its slices, and tells what is used of them.
type real struct {
	fixed
	gpu string
}

func (r real) GPUs() []string { return []string{r.gpu} }

func (r real) Use(slice job.SliceID) (map[int]int64, error) { return map[int]int64{len(slice): 7}, nil }

var _ inventory.Meter = real{}

func TestTwoDaemonsDoNotOfferOneGPU(t *testing.T) {
	gpu := fmt.Sprintf("test-%d", os.Getpid())
	t.Cleanup(func() { _ = os.Remove(filepath.Join(inventory.LockDir, "sluice-"+gpu+".lock")) })
	with := func(o *Options) { o.Inventory = real{gpu: gpu} }
	first, second := newRig(t), newRig(t)
	first.options, second.options = with, with
	h, err := first.open()
	if err != nil {
		t.Fatal(err)
	}
	_, err = second.open()
	if errkind.Of(err) != errkind.Conflict || !strings.Contains(err.Error(), gpu) ||
		!strings.Contains(err.Error(), fmt.Sprintf("process %d", os.Getpid())) {
		t.Errorf("the second daemon: %v, want a conflict that names the GPU and who has it", err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if h, err = second.open(); err != nil {
		t.Fatalf("the first daemon has gone, and the second still can't offer the GPU: %v", err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestUseIsAskedForByTheInventorysNames(t *testing.T) {
	for name, inv := range map[string]inventory.Inventory{"simulated": fixed{},
		"real": real{gpu: fmt.Sprintf("test-use-%d", os.Getpid())}} {
		r := newRig(t)
		var env Env
		r.options = func(o *Options) {
			o.Inventory = inv
			o.Executor = func(e Env) (executor.Executor, Files, error) { env = e; return r.executor, nil, nil }
		}
		h, err := r.open()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = h.Close() })
		if name == "simulated" {
			if env.Use != nil {
				t.Error("simulated slices have no memory to ask for")
			}
			continue
		}
		t.Cleanup(func() { _ = os.Remove(filepath.Join(inventory.LockDir, "sluice-"+inv.GPUs()[0]+".lock")) })
		if use, err := env.Use("n/gpu0"); err != nil || use[len("gpu0")] != 7 {
			t.Errorf("use of n/gpu0: %v, %v; want what the inventory says of gpu0", use, err)
		}
		if _, err := env.Use("other/gpu0"); errkind.Of(err) != errkind.NotFound {
			t.Errorf("use of another node's slice: %v, want not found", err)
		}
	}
}
