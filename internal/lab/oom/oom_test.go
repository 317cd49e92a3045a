package oom

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
)

const (
	gib = quantity.Amount(1) << 30
	t0  = quantity.Instant(1_000_000 * time.Second)
)

// host is one of 100 GiB with 20 GiB of swap, of which so much is available.
func host(available, swapFree quantity.Amount) *Host {
	return &Host{Capacity: 100 * gib, Available: available, Swap: 20 * gib, SwapFree: swapFree, Processes: []Process{
		{ID: 1, Resident: 30 * gib, Request: 30 * gib, Priority: 9, Owner: "a", Start: t0 - 900},
		{ID: 2, Resident: 10 * gib, Swapped: 9 * gib, Request: 4 * gib, Priority: 5, Owner: "b", Retriable: true, Start: t0 - 800},
		{ID: 3, Resident: 12 * gib, Swapped: 2 * gib, Request: 4 * gib, Priority: -5, Owner: "c", Retriable: true, Start: t0 - 700},
		{ID: 4, Resident: 8 * gib, Swapped: gib, Request: 9 * gib, Priority: -9, Owner: "c", Retriable: true, Start: t0 - 600},
	}}
}

// look is what a host is like some time after the begin, and whom it costs: an ID, negative with SIGTERM, 0 nobody.
type look struct {
	after time.Duration
	h     *Host
	want  int
}

func play(t *testing.T, kind string, looks []look) {
	t.Helper()
	k := Named(kind).New()
	for _, l := range looks {
		got := 0
		for _, x := range k.Look(t0.Add(l.after), l.h) {
			if got = int(l.h.Processes[x.Process].ID); x.Term {
				got = -got
			}
		}
		if got != l.want {
			t.Errorf("%s after %v ends %d, want %d", kind, l.after, got, l.want)
		}
	}
}

func gone(h *Host, id uint64) *Host {
	var left []Process
	for _, p := range h.Processes {
		if p.ID != id {
			left = append(left, p)
		}
	}
	h.Processes = left
	return h
}

func pressed(full int64, scanned bool) *Host {
	h := host(9*gib, 10*gib)
	h.Pressure, h.Scanned = full, scanned
	return h
}

func TestEarlyoom(t *testing.T) {
	play(t, "earlyoom", []look{
		{0, host(60*gib, 20*gib), 0},
		{500 * time.Millisecond, host(gib, gib), 0}, // it sleeps as long as that much memory takes to fill
		{time.Second, host(10*gib, 3*gib), 0},       // swap is left
		{1200 * time.Millisecond, host(10*gib, 2*gib), 0},
		{2200 * time.Millisecond, host(10*gib, 2*gib), -1},
		{2300 * time.Millisecond, host(8*gib, 2*gib), 0}, // it waits for it
		{2400 * time.Millisecond, host(5*gib, gib), 1},
		{2500 * time.Millisecond, host(5*gib, gib), 0},
		{2600 * time.Millisecond, gone(host(5*gib, gib), 1), 2}, // the next, and at once with SIGKILL
		{20 * time.Second, host(9*gib, 0), -1},                  // which has not gone in ten seconds
	})
	h := host(8*gib, 0)
	h.Unowned = 25 * gib // a tenth of what processes could have is less
	play(t, "earlyoom", []look{{0, h, 0}})
}

func TestOomd(t *testing.T) {
	play(t, "oomd", []look{
		{0, host(9*gib, 2*gib), 0}, // a tenth of the swap is free
		{time.Second, host(10*gib, gib), 0},
		{2 * time.Second, host(9*gib, gib), 2},
		{2100 * time.Millisecond, gone(host(9*gib, gib), 2), 0},
		{2150 * time.Millisecond, gone(host(9*gib, gib), 2), 3},
		{2300 * time.Millisecond, gone(gone(host(9*gib, gib), 2), 3), 0}, // a twentieth of the swap or less is no candidate
	})
	play(t, "oomd", []look{
		{0, pressed(700, true), 0}, {10 * time.Second, pressed(600, true), 0}, {11 * time.Second, pressed(700, true), 0},
		{40 * time.Second, pressed(700, true), 0}, {41 * time.Second, pressed(700, true), 1}, {45 * time.Second, pressed(700, true), 0},
		{56 * time.Second, pressed(700, true), 1}, {90 * time.Second, pressed(700, false), 0}, // nothing was reclaimed for long
	})
}

func TestKubelet(t *testing.T) {
	play(t, "kubelet", []look{
		{0, host(200<<20, 0), 0}, {5 * time.Second, host(50<<20, 0), 0}, // it looks every ten seconds
		{10 * time.Second, host(50<<20, 0), 3},
		{11 * time.Second, host(50<<20, 0), 0}, // it is not gone yet
		{12 * time.Second, gone(host(50<<20, 0), 3), 2},
		{13 * time.Second, gone(gone(host(50<<20, 0), 3), 2), 4},
		{14 * time.Second, gone(gone(gone(host(50<<20, 0), 3), 2), 4), 1},
	})
	k, h := Named("kubelet").New(), host(0, 0)
	for i := range h.Processes {
		for j := range h.Processes {
			a, b := &h.Processes[i], &h.Processes[j]
			if over := func(p *Process) quantity.Amount { return p.size() - p.Request }; over(a)-over(b) > gib &&
				k.Badness(h, a) <= k.Badness(h, b) {
				t.Errorf("%d uses more over its request than %d, and the kernel ends the other first", a.ID, b.ID)
			}
		}
	}
}

func TestRay(t *testing.T) {
	all := host(4*gib, 0)
	play(t, "ray", []look{
		{0, host(5*gib, 0), 0}, {100 * time.Millisecond, all, 0}, {250 * time.Millisecond, all, 4}, // of two tasks of c the newest
		{500 * time.Millisecond, all, 0},                                 // it is not gone yet
		{750 * time.Millisecond, gone(host(4*gib, 0), 4), 3},             // now groups are alike, and c began last
		{time.Second, gone(gone(host(4*gib, 0), 4), 3), 2},               //
		{2 * time.Second, gone(gone(gone(host(4*gib, 0), 4), 3), 2), 1},  // what can't be run again comes last
		{3 * time.Second, &Host{Capacity: 100 * gib, Available: gib}, 0}, // nobody is there
	})
}

func TestTheKernelTakesTheLargest(t *testing.T) {
	for _, kind := range []string{"kernel", "earlyoom", "oomd", "ray"} {
		k, h := Named(kind).New(), host(0, 0)
		if i := most(h, anybody,
			func(a, b *Process) int { return int(k.Badness(h, a)>>20 - k.Badness(h, b)>>20) }); h.Processes[i].ID != 1 {
			t.Errorf("under %s the kernel ends %d", kind, h.Processes[i].ID)
		}
	}
	if Named("nobody") != nil {
		t.Error("there is a kind that there is not")
	}
}
