package stream

import (
	"crypto/tls"
	"errors"
	"runtime"
	"slices"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/protocol"
)

// A machine without a link says why at any time, also once it was closed: no error means that it is linked.
func TestStateOfAMachineThatIsClosed(t *testing.T) {
	a := newAuthority(t)
	h := serve(t, a, "", brisk)
	m := join(t, a, "n", h.addr, brisk)
	linkedUp(t, h, m)
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if l, err := m.State(); errkind.Of(err) != errkind.Unavailable {
		t.Errorf("after Close: %+v, %v", l, err)
	}
}

// What the head says to others is no machine's business.
func TestAMachineHearsWhatIsForItsNode(t *testing.T) {
	m := &Member{options: MemberOptions{Machine: "n"}}
	var got []protocol.Message
	for _, at := range []protocol.Address{nodeN, zone, {Role: protocol.Node, ID: "other"}, {Role: protocol.Zone, ID: "n"}} {
		if err := m.Attach(at, func(said protocol.Message) { got = append(got, said) }); err != nil {
			t.Fatal(err)
		}
		said := protocol.Message{Kind: protocol.Stop, From: zone, To: at, Body: &protocol.Halt{}}
		if took := m.take(said); took != (at == nodeN) {
			t.Errorf("to %v %q: taken %v", at.Role, at.ID, took)
		}
	}
	if len(got) != 1 || got[0].To != nodeN {
		t.Errorf("got %+v", got)
	}
}

// A machine that is refused waits for a person: many times the longest wait of one that is not.
func TestHowLongAMachineWaits(t *testing.T) {
	timing := Timing{RetryFirst: time.Second, RetryLast: 4 * time.Second}.filled()
	w := waits{timing: timing}
	bad := errors.New("no route")
	for i, want := range []time.Duration{1, 2, 4, 4} {
		if got := w.next(0, bad); got != want*time.Second {
			t.Errorf("wait %d is %v, want %v s", i, got, want)
		}
	}
	if got := w.next(0, errkind.Errorf(errkind.Unsupported, "too old")); got != refusedWaits*timing.RetryLast {
		t.Errorf("a refused one waits %v", got)
	}
	if got := w.next(timing.Silence-1, bad); got != timing.RetryLast {
		t.Errorf("after a link that was gone at once it waits %v, want %v", got, timing.RetryLast)
	}
	if got := w.next(timing.Silence, bad); got != timing.RetryFirst {
		t.Errorf("after a link that lasted it waits %v, want %v", got, timing.RetryFirst)
	}
}

// Links that come and go leave no goroutine behind, on either side, whichever side ends them.
func TestNothingIsLeftOfLinks(t *testing.T) {
	const links = 200
	a := newAuthority(t)
	h := serve(t, a, "", brisk)
	net := between(t, h.addr)
	config := a.config("n")
	link := func(i int) {
		m := Join(MemberOptions{Machine: "n", Head: net.addr(), TLS: func() (*tls.Config, error) { return config, nil }, Timing: brisk})
		linkedUp(t, h, m)
		switch i % 3 {
		case 0:
			net.cut()
		case 1:
			h.Expel("n", errReplaced)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
		until(t, "the head knows", func() bool { l := h.Machines(); return len(l) == 1 && !l[0].Up })
		net.cut()
	}
	link(0)
	before := runtime.NumGoroutine()
	for i := range links {
		link(i)
	}
	until(t, "all goroutines end", func() bool { return runtime.NumGoroutine() <= before+2 })
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.links)+len(h.waiting) != 0 || len(h.past) != 1 {
		t.Errorf("the head keeps %d links, %d calls and %d machines", len(h.links), len(h.waiting), len(h.past))
	}
}

// The configuration that TLS returns may be the same for each call: one that begins while an earlier one still ends writes nothing to it.
func TestAConfigurationIsLeftAsItIs(t *testing.T) {
	a := newAuthority(t)
	h := serve(t, a, "", brisk)
	config := a.config("n")
	want := slices.Clone(config.NextProtos)
	m := Join(MemberOptions{Machine: "n", Head: h.addr, TLS: func() (*tls.Config, error) { return config, nil }, Timing: brisk})
	linkedUp(t, h, m)
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(config.NextProtos, want) {
		t.Errorf("its protocols are %v, were %v", config.NextProtos, want)
	}
}
