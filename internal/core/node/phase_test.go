package node

import (
	"strings"
	"testing"

	"sluice.dev/sluice/internal/core/invariant"
	"sluice.dev/sluice/internal/core/job"
)

// lasting is the phase that a restart finds in place of one: what is soft is forgotten.
func lasting(p phase) phase {
	switch p {
	case leaseStarting, leaseUnwanted:
		return leaseSold
	case leaseSuspending, leaseSuspended, leaseResuming, leaseStopping:
		return leaseRunning
	default:
		return p
	}
}

// try turns a lease of a phase, and says whether that was refused.
func try(p phase, t turn) (next phase, refused string) {
	defer func() {
		if r := recover(); r != nil {
			refused = r.(invariant.Broken).Error()
		}
	}()
	l := &lease{token: job.Token{Epoch: 7, Seq: 9}, phase: p}
	New(Config{ID: "n", Zone: "z"}).turn(l, t)
	return l.phase, ""
}

// TestALeaseTurnsAsTheTableSays: every turn of every phase is either taken as it stands there, or is refused by name and changes nothing.
func TestALeaseTurnsAsTheTableSays(t *testing.T) {
	legal := 0
	for p := range phase(phases) {
		for c := range turn(turnCount) {
			next, refused := try(p, c)
			switch {
			case turns[p][c] == none && (refused == "" || !strings.Contains(refused, p.String()) ||
				!strings.Contains(refused, turnNames[c])):
				t.Errorf("a lease that is %v can't be turned (%s), and is refused with %q", p, turnNames[c], refused)
			case turns[p][c] != none && (refused != "" || next != turns[p][c]):
				t.Errorf("a lease that is %v and is turned (%s) is %v: %s", p, turnNames[c], next, refused)
			case turns[p][c] != none:
				legal++
			}
		}
	}
	same(t, "legal turns", legal, 49)
}

// TestTheTableHolds: what is true of every lease whatever happens to it.
func TestTheTableHolds(t *testing.T) {
	reached, from := map[phase]bool{leaseSold: true}, []phase{leaseSold}
	for ; len(from) > 0; from = from[1:] {
		for _, next := range turns[from[0]] {
			if next != none && !reached[next] {
				reached[next], from = true, append(from, next)
			}
		}
	}
	for p := range phase(phases) {
		if !reached[p] {
			t.Errorf("no lease is ever %v", p)
		}
		if ends := turns[p][over]; p < leaseEnded && ends != leaseEnded || p >= leaseEnded && ends != none {
			t.Errorf("a lease that is %v ends as %v: it is to end once, whatever it was doing", p, ends)
		}
		for c := range turn(turnCount) {
			next := turns[p][c]
			if next == none {
				continue
			}
			if p >= leaseEnded && next <= p || lasting(next) < lasting(p) {
				t.Errorf("a lease that is %v and is turned (%s) is %v again", p, turnNames[c], next)
			}
			if soft := c.soft(); soft != (lasting(p) == lasting(next)) && next != p {
				t.Errorf("a lease that is %v is turned (%s) to %v, which is soft: %v", p, turnNames[c], next, soft)
			}
			// A fold has seen no soft turn, and must come to the same.
			if folded := turns[lasting(p)][c]; !c.soft() && (folded == none || lasting(folded) != lasting(next)) {
				t.Errorf("%s leads from %v to %v, and in a fold from %v to %v", turnNames[c], p, next, lasting(p), folded)
			}
		}
	}
}

// TestAPhaseThatLastsMovesTheDigest: and what is soft doesn't.
func TestAPhaseThatLastsMovesTheDigest(t *testing.T) {
	hash := func(p phase) uint64 {
		l := &lease{token: job.Token{Epoch: 7, Seq: 9}, phase: p}
		if l.ended() {
			l.result = &job.Result{Outcome: job.Done}
		}
		if lasting(p) == leaseRunning {
			l.at = t0
		}
		return l.hash()
	}
	for p := range phase(leaseGone) {
		for q := range p {
			if alike := hash(p) == hash(q); alike != (lasting(p) == lasting(q)) {
				t.Errorf("a lease that is %v and one that is %v have the same digest: %v", p, q, alike)
			}
		}
	}
}
