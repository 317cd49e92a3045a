package output

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// TestOutputAgainstAPlainSet: commits and publications in any order, some said twice. Each is there once, by token, and all are asked about
// in turn, no more than so many at once.
func TestOutputAgainstAPlainSet(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var o Output
		want := map[uint64]bool{}
		for range rapid.IntRange(1, 80).Draw(rt, "steps") {
			seq := rapid.Uint64Range(1, 40).Draw(rt, "token")
			token := job.Token{Epoch: 1, Seq: seq}
			if rapid.IntRange(0, 2).Draw(rt, "published") == 0 {
				o.Published(token)
				delete(want, seq)
			} else {
				o.Await(&protocol.Claim{Token: token}, job.Range{From: int64(seq), To: int64(seq) + 1})
				want[seq] = true
			}
			list := o.List()
			if len(list) != len(want) || o.Units() != int64(len(want)) ||
				!slices.IsSortedFunc(list, func(a, b protocol.Publication) int { return a.Token.Compare(b.Token) }) {
				rt.Fatalf("%v, want %v", list, want)
			}
			if _, found := o.Find(token); found != want[seq] {
				rt.Fatalf("%v is awaited: %v", token, found)
			}
		}
		asked := map[uint64]bool{}
		for range (len(want) + mostAsked - 1) / mostAsked {
			n := 0
			o.Ask(1, func(p *protocol.Publication) { asked[p.Token.Seq] = true; n++ })
			if n > mostAsked {
				rt.Fatalf("%d are asked about at once", n)
			}
		}
		if len(asked) != len(want) {
			rt.Fatalf("%d of %d were asked about in turn", len(asked), len(want))
		}
	})
}

// TestNodesAreAskedLessAndLess, until something is published.
func TestNodesAreAskedLessAndLess(t *testing.T) {
	var o Output
	if o.Again(time.Second) != quantity.Never {
		t.Error("nothing is awaited, and nodes are asked")
	}
	token := job.Token{Seq: 1}
	o.Await(&protocol.Claim{Token: token, Sale: protocol.Sale{Members: []protocol.Member{{Token: job.Token{Seq: 2}}}}}, job.Range{To: 3})
	if o.Units() != 3 {
		t.Errorf("the members of a gang are of %d units, want 3", o.Units())
	}
	for i := range 9 {
		o.Ask(100, func(*protocol.Publication) {})
		if want := quantity.Instant(100).Add(time.Second << min(i+1, 6)); o.Again(time.Second) != want {
			t.Errorf("after %d times they are asked again at %d, want %d", i+1, o.Again(time.Second), want)
		}
	}
	if o.Published(token); o.Again(time.Second) != quantity.Instant(100).Add(time.Second) {
		t.Error("nodes publish, and are asked as seldom as before")
	}
}
