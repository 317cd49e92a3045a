package leases

import (
	"strings"
	"testing"

	"sluice.dev/sluice/internal/core/invariant"
	"sluice.dev/sluice/internal/core/job"
)

// lasting is the phase that a restart finds in place of one: what is soft is forgotten.
func lasting(p Phase) Phase {
	switch p {
	case Starting, Unwanted:
		return Sold
	case Suspending, Suspended, Resuming, Stopping:
		return Running
	default:
		return p
	}
}

// try has an event change a lease of a phase, and says whether that was refused.
func try(p Phase, e event) (next Phase, refused string) {
	defer func() {
		if r := recover(); r != nil {
			refused = r.(invariant.Broken).Error()
		}
	}()
	l := &Lease{terms: Terms{Token: job.Token{Epoch: 7, Seq: 9}}, phase: p}
	newWorld().change(l, e)
	return l.Phase(), ""
}

// TestALeaseChangesAsTheTableSays: every event in every phase is either taken as it stands there, or is refused by name and changes
// nothing.
func TestALeaseChangesAsTheTableSays(t *testing.T) {
	legal := 0
	for p := range Phase(phases) {
		for c := range event(events) {
			next, refused := try(p, c)
			switch {
			case transitions[p][c] == never && (refused == "" || !strings.Contains(refused, p.String()) ||
				!strings.Contains(refused, eventNames[c])):
				t.Errorf("a lease that is %v can't become of it (%s), and is refused with %q", p, eventNames[c], refused)
			case transitions[p][c] != never && (refused != "" || next != transitions[p][c]):
				t.Errorf("a lease that is %v and sees %s is %v: %s", p, eventNames[c], next, refused)
			case transitions[p][c] != never:
				legal++
			}
		}
	}
	if legal != 49 {
		t.Errorf("%d changes are legal, want 49", legal)
	}
}

// TestTheTableHolds: what is true of every lease whatever happens to it.
func TestTheTableHolds(t *testing.T) {
	reached, from := map[Phase]bool{Sold: true}, []Phase{Sold}
	for ; len(from) > 0; from = from[1:] {
		for _, next := range transitions[from[0]] {
			if next != never && !reached[next] {
				reached[next], from = true, append(from, next)
			}
		}
	}
	for p := range Phase(phases) {
		if !reached[p] {
			t.Errorf("no lease is ever %v", p)
		}
		if ends := transitions[p][onEnded]; p < Ended && ends != Ended || p >= Ended && ends != never {
			t.Errorf("a lease that is %v ends as %v: it is to end once, whatever it was doing", p, ends)
		}
		for c := range event(events) {
			next := transitions[p][c]
			if next == never {
				continue
			}
			if p >= Ended && next <= p || lasting(next) < lasting(p) {
				t.Errorf("a lease that is %v and sees %s is %v again", p, eventNames[c], next)
			}
			if soft := c.soft(); soft != (lasting(p) == lasting(next)) && next != p {
				t.Errorf("a lease that is %v becomes by %s %v, which is soft: %v", p, eventNames[c], next, soft)
			}
			// A fold has seen no soft event, and must come to the same.
			if folded := transitions[lasting(p)][c]; !c.soft() && (folded == never || lasting(folded) != lasting(next)) {
				t.Errorf("%s leads from %v to %v, and in a fold from %v to %v", eventNames[c], p, next, lasting(p), folded)
			}
		}
	}
}

// TestAPhaseThatLastsMovesTheDigest: and what is soft doesn't.
func TestAPhaseThatLastsMovesTheDigest(t *testing.T) {
	hash := func(p Phase) uint64 {
		l := &Lease{terms: Terms{Token: job.Token{Epoch: 7, Seq: 9}}, phase: p}
		if l.Ended() {
			l.result = &job.Result{Outcome: job.Done}
		}
		if lasting(p) == Running {
			l.at = t0
		}
		return l.hash()
	}
	for p := range Phase(Gone) {
		for q := range p {
			if alike := hash(p) == hash(q); alike != (lasting(p) == lasting(q)) {
				t.Errorf("a lease that is %v and one that is %v have the same digest: %v", p, q, alike)
			}
		}
	}
}

// soft events are messages that a restart forgets.
func (e event) soft() bool { return e < onStarted }
