package files_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/executor/shim/durable"
	"sluice.dev/sluice/internal/edge/executor/shim/durable/power"
	"sluice.dev/sluice/internal/edge/store"
	"sluice.dev/sluice/internal/edge/store/files"
)

// TestMain records syncs for tests that ask for it. A recording is slow, hence fewer checks by default.
func TestMain(m *testing.M) {
	durable.OnSync = power.Record
	flag.Parse()
	if f := flag.Lookup("rapid.checks"); f.Value.String() == f.DefValue {
		if err := flag.Set(f.Name, "12"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// promised is what a store has acknowledged: objects by digest, and names. maybe lists what a name may stand for instead, since a change
// of it was not acknowledged; "": the name may be gone.
type promised struct {
	objects map[store.Digest]string
	names   map[string]store.Digest
	maybe   map[string][]store.Digest
}

func (p *promised) clone() promised {
	return promised{maps.Clone(p.objects), maps.Clone(p.names), maps.Clone(p.maybe)}
}

var errKilled = errors.New("the process was killed")

// life opens a store and uses it until it is killed after so many steps; negative: never. It calls told whenever p has changed.
func (p *promised) life(dir string, steps int, made []string, told func()) error {
	ctx := context.Background()
	d, err := files.Open(files.Options{Kind: "local", Dir: dir, Make: true, Writer: "w", Before: func(string, string) error {
		if steps == 0 {
			return errKilled
		}
		steps--
		return nil
	}})
	if err != nil {
		return err
	}
	for i, text := range made {
		want := store.Digest("")
		if i%2 == 0 {
			want = digestOf(text)
		}
		o, err := d.Put(ctx, want, bytes.NewReader([]byte(text)))
		if err != nil {
			return err
		}
		p.objects[o.Digest] = text
		told()
		name := fmt.Sprintf("jobs/j%d/%d", i%2, i%3)
		change := func(to store.Digest, do func() error) error {
			p.maybe[name] = append(p.maybe[name], to)
			told()
			if err := do(); err != nil {
				return err
			}
			p.names[name], p.maybe[name] = to, nil
			told()
			return nil
		}
		err = change(o.Digest, func() error { return store.Name(ctx, d, name, store.Refs{"output": o.Digest}) })
		if err == nil && i%4 == 3 {
			err = change("", func() error { return d.Unname(ctx, name) })
		}
		if err != nil {
			return err
		}
	}
	return d.Close()
}

// TestAPowerCutTakesNothingThatAStoreHasTold: processes put and name objects and are killed at any step, others go on, and then the power
// is cut. What was acknowledged is whole and found by its name, what is listed is whole or said to be damaged, and the store goes on.
func TestAPowerCutTakesNothingThatAStoreHasTold(t *testing.T) {
	base, draws := t.TempDir(), 0
	rapid.Check(t, func(rt *rapid.T) {
		draws++
		root := filepath.Join(base, fmt.Sprint(draws))
		r := power.Recorder{Root: root}
		if err := errors.Join(os.Mkdir(root, 0o700), os.WriteFile(r.Log(), nil, 0o600)); err != nil {
			rt.Fatal(err)
		}
		p := &promised{map[store.Digest]string{}, map[string]store.Digest{}, map[string][]store.Digest{}}
		after := []promised{p.clone()}
		told := func() {
			r.Said(fmt.Sprint(len(after)))
			after = append(after, p.clone())
		}
		text := rapid.SampledFrom([]string{"", "one", "two", "two more", string(bytes.Repeat([]byte("much "), 5000))})
		texts := rapid.SliceOfN(text, 1, 5)
		dir := filepath.Join(root, "store")
		for range rapid.IntRange(0, 2).Draw(rt, "kills") {
			err := p.life(dir, rapid.IntRange(0, 40).Draw(rt, "steps"), texts.Draw(rt, "texts"), told)
			if err != nil && !errors.Is(err, errKilled) {
				rt.Fatal(err)
			}
		}
		if err := p.life(dir, -1, texts.Draw(rt, "texts"), told); err != nil {
			rt.Fatal(err)
		}
		r.Said("over")
		h, err := r.History()
		if err != nil {
			rt.Fatal(err)
		}
		for k := range 32 {
			disk, cut, holds := power.Platter{}, rapid.IntRange(0, len(h)-1).Draw(rt, "cut"), &after[0]
			for i := range h[:cut] {
				var n int
				if m := &h[i]; m.Said == "" {
					disk.Synced(m)
				} else if _, err := fmt.Sscan(m.Said, &n); err == nil {
					holds = &after[n]
				}
			}
			again := filepath.Join(base, fmt.Sprintf("%d.%d", draws, k))
			disk.Cut(h[cut].Tree, power.Draw(rapid.Uint64Range(0, 1<<40).Draw(rt, "seed"))).Put(again)
			holds.judge(rt, filepath.Join(again, "store"), k == 0)
			_ = os.RemoveAll(again)
		}
		_ = os.RemoveAll(root)
	})
}

// judge checks a store after a power cut. goesOn: it also writes to it.
func (p *promised) judge(t *rapid.T, dir string, goesOn bool) {
	ctx := context.Background()
	d, err := files.Open(files.Options{Kind: "local", Dir: dir, Make: len(p.objects) == 0, Writer: "w"})
	if err != nil {
		t.Fatalf("the store is not opened any more: %v", err)
	}
	read := func(g store.Digest) (string, error) {
		f, err := d.Open(ctx, g)
		if err != nil {
			return "", err
		}
		data, err := io.ReadAll(f)
		return string(data), errors.Join(err, f.Close())
	}
	for g, want := range p.objects {
		if got, err := read(g); err != nil || got != want {
			t.Errorf("object %.8s was acknowledged, and is %.20q, %v; want %.20q", g, got, err, want)
		}
	}
	err = d.List(ctx, func(o store.Object) error {
		if text, err := read(o.Digest); err == nil && digestOf(text) != o.Digest || err != nil && errkind.Of(err) != errkind.Corrupt {
			t.Errorf("object %.8s is listed, and is read as %.20q, %v", o.Digest, text, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	for name := range p.maybe {
		n, err := d.ReadName(ctx, name)
		if errkind.Of(err) == errkind.NotFound {
			err = nil
		}
		if may := append(slices.Clone(p.maybe[name]), p.names[name]); err != nil || !slices.Contains(may, n.Refs["output"]) {
			t.Errorf("name %s is %v, %v; want one of %.8q", name, n.Refs, err, may)
		}
	}
	if !goesOn {
		return
	}
	if _, err := d.Put(ctx, "", bytes.NewReader([]byte("on"))); err != nil {
		t.Errorf("it does not go on: %v", err)
	}
}

func digestOf(text string) store.Digest {
	g, err := store.Sum(context.Background(), bytes.NewReader([]byte(text)))
	if err != nil {
		panic(err)
	}
	return g
}
