package process_test

import (
	"archive/tar"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/executor/process"
	"sluice.dev/sluice/internal/edge/executor/shim/durable/power"
)

// TestAPowerCutTakesNoWorkDirectory: the power is cut before every sync while work directories are stored. One that was acknowledged is
// there; one that was not is there whole or not at all.
func TestAPowerCutTakesNoWorkDirectory(t *testing.T) {
	var r power.Recorder
	b := newBench(t, func(o *process.Options) {
		r.Root, o.Isolation = o.DataDir, treeOnly()
		must(os.WriteFile(r.Log(), nil, 0o600))
	})
	stored := map[string]bool{}
	for i := range 3 {
		packed := pack(t, tar.Header{Name: fmt.Sprint("f", i), Typeflag: tar.TypeReg}, tar.Header{Name: "d/g", Typeflag: tar.TypeReg})
		s, err := b.ex.PutWorkdir(packed, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		stored[s.ID] = false
		r.Said(s.ID)
	}
	r.Said("over")
	h, err := r.History()
	if err != nil {
		t.Fatal(err)
	}
	disk := power.Platter{}
	for i := range h {
		for seed := range uint64(3) {
			root := t.TempDir()
			disk.Cut(h[i].Tree, power.Draw(seed*uint64(i+1))).Put(root)
			what := fmt.Sprintf("cut at moment %d (sync of %q), seed %d", i, h[i].Path, seed)
			ex, err := process.New(process.Options{
				DataDir: root, ShimPath: b.o.ShimPath, Isolation: treeOnly(), Deliver: func(protocol.Message) {},
			})
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			for id, told := range stored {
				has, err := ex.HasWorkdir(id)
				if err != nil || told && !has {
					t.Errorf("%s: %.8s is there %v, %v; told %v", what, id, has, err, told)
				}
				if !has {
					continue
				}
				if s, err := ex.TakeWorkdir(id); err != nil || s.Files != 2 {
					t.Errorf("%s: %.8s is there and read as %+v, %v", what, id, s, err)
				}
			}
			must(ex.Close())
			must(os.RemoveAll(filepath.Join(root, "store")))
		}
		if m := &h[i]; m.Said == "" {
			disk.Synced(m)
		} else if _, ok := stored[m.Said]; ok {
			stored[m.Said] = true
		}
	}
}
