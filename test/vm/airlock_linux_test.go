package vm

import (
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/airlock"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/executor/process"
	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/survival"
	"sluice.dev/sluice/internal/edge/survival/cgroup"
)

// timed notes when the memory was last seen, and how long after that the kernel was told to freeze, and the group was frozen.
type timed struct {
	survival.Survival
	mu              sync.Mutex
	seen            time.Time
	written, frozen []time.Duration
}

func (k *timed) Sense(now time.Duration, m *survival.Memory) error {
	err := k.Survival.Sense(now, m)
	k.mu.Lock()
	k.seen = time.Now()
	k.mu.Unlock()
	return err
}

func (k *timed) note(list *[]time.Duration) {
	k.mu.Lock()
	*list = append(*list, time.Since(k.seen))
	k.mu.Unlock()
}

func (k *timed) Take(s survival.Subjob) (survival.Hold, error) {
	h, err := k.Survival.Take(s)
	if err != nil {
		return nil, err
	}
	return &timedHold{h, k}, nil
}

type timedHold struct {
	survival.Hold
	k *timed
}

func (h *timedHold) Suspend() error {
	err := h.Hold.Suspend()
	h.k.note(&h.k.written)
	return err
}

func (h *timedHold) Settle(patience time.Duration) (bool, error) {
	still, err := h.Hold.Settle(patience)
	h.k.note(&h.k.frozen)
	return still, err
}

// TestGuestIsSuspendedWhenMemoryIsShort: real memory, real groups. It is over a line as long as the program runs; the test is the node,
// and suspends and resumes it, again and again.
func TestGuestIsSuspendedWhenMemoryIsShort(t *testing.T) {
	guest(t)
	const times, mib = 60, 40
	k, err := cgroup.Open("")
	if err != nil {
		t.Fatal(err)
	}
	t.Log(k.Capability())
	var m survival.Memory
	if err := k.Sense(0, &m); err != nil {
		t.Fatal(err)
	}
	share := quantity.MulDiv(int64(m.Used+mib<<20/2), 1000, int64(m.Capacity))
	lines := airlock.Config{Calm: share - 10, Severe: share, Emergency: 1000}
	b := &bench{T: t, said: make(chan protocol.Message, 1024)}
	data := t.TempDir()
	b.dir = shim.Dir(filepath.Join(data, "runs", token.String()))
	timing := &timed{Survival: k}
	b.ex, err = process.New(process.Options{DataDir: data, ShimPath: "/init", Survival: timing, Airlock: lines,
		Deliver: func(m protocol.Message) {
			if m.Kind != protocol.Report {
				b.said <- m
			}
		}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.ex.Close() })
	if _, err := b.ex.Find(t.Context()); err != nil {
		t.Fatal(err)
	}
	word := func(kind protocol.Kind, is func(protocol.Message) bool) protocol.Message {
		t.Helper()
		for until := time.After(30 * time.Second); ; {
			select {
			case m := <-b.said:
				if m.Kind == kind && is(m) {
					return m
				}
			case <-until:
				t.Fatalf("no message of kind %d; supervisor says: %s", kind, shim.Tail(b.dir.Log(), 20, 4096))
			}
		}
	}
	b.launch(time.Hour, "holds", "40")
	word(protocol.Started, func(protocol.Message) bool { return true })
	lines = lines.WithDefaults()
	for range times {
		for len(b.said) > 0 { // what was said before is old
			<-b.said
		}
		word(protocol.Pressure, func(m protocol.Message) bool {
			s := m.Body.(*protocol.Strain)
			r := lines.Read(&airlock.Snapshot{Capacity: s.Capacity, Used: s.Used, Growth: s.Growth})
			return r.Level >= airlock.Severe && len(s.Uses) == 1
		})
		b.tell(protocol.Suspend, &protocol.Reason{Text: "short"})
		word(protocol.Suspended, func(m protocol.Message) bool { return m.Body.(*protocol.Stillness).Still })
		b.tell(protocol.Resume, nil)
		word(protocol.Suspended, func(m protocol.Message) bool { return !m.Body.(*protocol.Stillness).Still })
	}
	timing.mu.Lock()
	defer timing.mu.Unlock()
	for name, list := range map[string][]time.Duration{"freeze written": timing.written, "frozen 1": timing.frozen} {
		if len(list) < times {
			t.Fatalf("%s: %d times, want %d", name, len(list), times)
		}
		slices.Sort(list)
		t.Logf("from the look that sees it to %s: p50 %v, p99 %v of %d", name, list[len(list)/2], list[len(list)*99/100], len(list))
	}
	b.tell(protocol.Stop, &protocol.Halt{Text: "done", Now: true})
	word(protocol.Exited, func(protocol.Message) bool { return true })
}
