//go:build kubernetes

package kubernetes_test

import (
	"bytes"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/executor"
	pods "sluice.dev/sluice/internal/edge/executor/kubernetes"
	"sluice.dev/sluice/internal/edge/executor/kubernetes/podtest"
	"sluice.dev/sluice/internal/edge/executor/shim/pod"
	"sluice.dev/sluice/internal/edge/journal"
	"sluice.dev/sluice/internal/edge/store"
	"sluice.dev/sluice/internal/edge/store/tree"
)

// desk is a node's side of an executor: what it was told, by subjob.
type desk struct {
	*podtest.World
	api *podtest.API
	ex  *pods.Executor
	// ahead is by how much the operator's clock is, on top of the machines'.
	mu    sync.Mutex
	ahead time.Duration
	// asked counts the looks at that clock.
	asked   atomic.Int64
	results map[job.Token][]job.Result
	starts  map[job.Token][]quantity.Instant
	settled map[job.Token]int
	storing map[job.Token]int
	reached map[job.Token]int64
	purged  int
	// ownerless is for how long Pods that are made from now on go on without an operator; 0: to their end.
	ownerless time.Duration
}

func newDesk(t *testing.T) *desk {
	api := podtest.NewAPI(t)
	d := &desk{World: podtest.NewWorld(t, api, "main", "default", nil), api: api, results: map[job.Token][]job.Result{},
		starts: map[job.Token][]quantity.Instant{}, settled: map[job.Token]int{}, storing: map[job.Token]int{},
		reached: map[job.Token]int64{}}
	t.Cleanup(d.close)
	return d
}

func (d *desk) now() time.Time {
	d.asked.Add(1)
	d.mu.Lock()
	defer d.mu.Unlock()
	return time.Now().Add(d.ahead)
}

// later moves the operator's clock.
func (d *desk) later(by time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ahead += by
}

func (d *desk) close() {
	if d.ex != nil {
		_ = d.ex.Close()
	}
}

// open is an operator's start, after the end of the one before.
func (d *desk) open() map[job.Token]executor.Found {
	d.Helper()
	d.close()
	d.ex = d.Open(d.hear, func(o *pods.Options) {
		if o.Clock = d.now; d.ownerless > 0 {
			o.Vigil.Ownerless = func(job.SliceID) (limit, notice time.Duration) { return d.ownerless, time.Second }
			o.Vigil.Beat = func() time.Duration { return d.ownerless / pod.Beats }
		}
	})
	list, err := d.ex.Find(d.Context())
	if err != nil {
		d.Fatal(err)
	}
	found := map[job.Token]executor.Found{}
	for _, f := range list {
		found[f.Token] = f
		if f.Result != nil {
			d.mu.Lock()
			d.results[f.Token] = append(d.results[f.Token], *f.Result)
			d.mu.Unlock()
		}
	}
	return found
}

// forgetAll forgets what the desk was told.
func (d *desk) forgetAll() {
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.results)
	clear(d.starts)
	clear(d.settled)
}

func (d *desk) hear(m protocol.Message) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch b := m.Body.(type) {
	case *protocol.Beginning:
		d.starts[m.Token] = append(d.starts[m.Token], b.At)
	case *protocol.Conclusion:
		d.results[m.Token] = append(d.results[m.Token], *b.Result)
	case *protocol.Observation:
		d.reached[m.Token] = b.Progress
		if b.Storing {
			d.storing[m.Token]++
		}
	}
	switch m.Kind {
	case protocol.Settled:
		d.settled[m.Token]++
	case protocol.Purged:
		d.purged++
	default:
	}
}

func tok(n int) job.Token { return job.Token{Epoch: 1, Seq: uint64(n)} }

// lease is a Start of a job's units, with two minutes to run in.
func (d *desk) lease(t job.Token, r job.Range, change func(*protocol.Work), script string) protocol.Message {
	at := quantity.At(d.now())
	w := &protocol.Work{Placement: protocol.Placement{Slice: "main/machine/0", Range: r, Start: at, End: at.Add(2 * time.Minute)},
		Spec: &job.Spec{
			Name: "ns.train", Kind: job.Items, Total: 100, Grid: 1, Slices: 1,
			Launch: job.Launch{Image: "busybox", Command: podtest.Script(script), Grace: 5 * time.Second},
		}}
	w.Spec.Name = "train"
	if change != nil {
		change(w)
	}
	return protocol.Message{
		Kind: protocol.Start, Token: t, Job: "train", Generation: 1, Body: w,
		From: protocol.Address{Role: protocol.Node, ID: "main"}, To: protocol.Address{Role: protocol.Executor, ID: "main"},
	}
}

func (d *desk) do(m protocol.Message) { d.ex.Do(m, journal.Position{Seq: m.Token.Seq}) }

// result waits for how a subjob ended.
func (d *desk) result(t job.Token) (r job.Result) {
	d.Helper()
	d.Until("subjob "+t.String()+" has ended", func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		if len(d.results[t]) == 0 {
			return false
		}
		r = d.results[t][0]
		return true
	})
	return r
}

func (d *desk) begun(t job.Token) {
	d.Helper()
	d.Until("subjob "+t.String()+" has begun", func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return len(d.starts[t]) > 0
	})
}

// settle has a subjob put away; r is what counts of it.
func (d *desk) settle(t job.Token, r job.Range) {
	d.Helper()
	d.do(protocol.Message{Kind: protocol.Settle, Token: t, Job: "train", Body: &protocol.Settlement{Range: r, Committed: !r.Empty()}})
	d.Until("subjob "+t.String()+" is settled", func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.settled[t] > 0
	})
}

// content is what lies in an object that is a tree.
func (d *desk) content(g store.Digest) map[string]string {
	d.Helper()
	r, err := d.Store.Open(d.Context(), g)
	if err != nil {
		d.Fatal(err)
	}
	dir := filepath.Join(d.TempDir(), "tree")
	if _, _, err = tree.Restore(r, dir, tree.Limits{Bytes: 1 << 20, Entries: 100}); err != nil {
		d.Fatal(err)
	}
	all := map[string]string{}
	list, err := os.ReadDir(dir)
	for _, e := range list {
		data, failed := os.ReadFile(filepath.Join(dir, e.Name()))
		if failed != nil {
			d.Fatal(failed)
		}
		all[e.Name()] = string(bytes.TrimSpace(data))
	}
	if err != nil {
		d.Fatal(err)
	}
	return all
}

// names are those in the store.
func (d *desk) names() map[string]store.Refs {
	d.Helper()
	all := map[string]store.Refs{}
	if err := d.Store.Names(d.Context(), "", func(n store.Named) error { all[n.Name] = n.Refs; return nil }); err != nil {
		d.Fatal(err)
	}
	return all
}
