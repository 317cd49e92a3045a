package holds

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/node/inventory"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// TestHoldsAreWhatWasMadeAndHasNotLapsed: held against a plain list of them. Each stands in the time of its slices, answers its question as
// long as it stands, and no token is given out twice, whichever boot and node it is of.
func TestHoldsAreWhatWasMadeAndHasNotLapsed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		i := inventory.New()
		number := rapid.IntRange(0, 3).Draw(t, "number")
		h := New(i, number)
		h.Boot(1)
		now := quantity.Instant(1_000_000 * time.Second)
		var plain []Hold
		given := map[job.Token]bool{}
		asks := uint64(0)
		drop := func(gone func(Hold) bool) {
			kept := plain[:0]
			for _, x := range plain {
				if !gone(x) {
					kept = append(kept, x)
				}
			}
			plain = kept
		}
		t.Repeat(map[string]func(*rapid.T){
			"make": func(t *rapid.T) {
				asks++
				of := Hold{Asked: Question{Ask: asks}, Job: "j", Slice: job.SliceID(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "slice"))}
				if rapid.IntRange(0, 3).Draw(t, "won") == 0 {
					of.Asked = Question{}
				}
				if rapid.IntRange(0, 3).Draw(t, "wide") == 0 {
					of.Also = []job.SliceID{"c"}
				}
				of.Start = now.Add(time.Duration(rapid.IntRange(0, 20).Draw(t, "start")) * time.Second)
				of.End = of.Start.Add(time.Duration(rapid.IntRange(1, 9).Draw(t, "length")) * time.Second)
				of.Gang = rapid.IntRange(0, 4).Draw(t, "gang") == 0
				for _, id := range append([]job.SliceID{of.Slice}, of.Also...) {
					if _, free := i.Record(id).Free(now, of.Start, of.End, ""); !free {
						t.Skip("taken")
					}
				}
				stands := time.Second
				if of.Gang {
					stands = time.Duration(rapid.IntRange(1, 8).Draw(t, "stands")) * time.Second
				}
				x := h.Make(now, of, stands)
				if given[x.Token] || NumberOf(x.Token) != number || x.Expiry != now.Add(stands) {
					t.Fatalf("%+v is made of %+v", x, of)
				}
				given[x.Token] = true
				plain = append(plain, x)
			},
			"drop": func(t *rapid.T) {
				if len(plain) > 0 {
					token := plain[rapid.IntRange(0, len(plain)-1).Draw(t, "which")].Token
					h.Drop(token)
					drop(func(x Hold) bool { return x.Token == token })
				}
			},
			"boot": func(*rapid.T) { h.Boot(h.Epoch()) },
			"time": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(0, 1500).Draw(t, "ms")) * time.Millisecond)
				h.Lapse(now)
				drop(func(x Hold) bool { return x.Expiry <= now })
			},
			"": func(t *rapid.T) {
				next, sold, begun := quantity.Never, 0, 0
				for _, x := range plain {
					next = min(next, x.Expiry)
					sold += 1 + len(x.Also)
					if x.Start <= now {
						begun += 1 + len(x.Also)
					}
					if of, stands := h.Of(x.Token); !stands || of.Expiry != x.Expiry || of.Asked != x.Asked {
						t.Fatalf("%v is %+v", x.Token, of)
					}
					if of, stands := h.Answer(x.Asked); x.Asked != (Question{}) && (!stands || of.Token != x.Token) {
						t.Fatalf("%+v is answered by %v, not by %v", x.Asked, of.Token, x.Token)
					}
				}
				if _, stands := h.Answer(Question{}); stands {
					t.Fatal("nobody asked, and is answered")
				}
				if h.Next() != next {
					t.Fatalf("the next lapses at %v, want %v", h.Next(), next)
				}
				for _, s := range i.All() {
					for _, r := range s.Sold() {
						if _, stands := h.Of(r.Token); !stands || r.Kind != protocol.ForHold {
							t.Fatalf("%s has %+v, which no hold stands for", s.ID(), r)
						}
						sold--
					}
				}
				h.Begun(now, func(_ job.Token, slices int) { begun -= slices })
				if sold != 0 || begun != 0 {
					t.Fatalf("%d slices are held in no timeline, %d have begun uncounted", sold, begun)
				}
			},
		})
	})
}

// TestAnEarlierBootsTokensAreNoMoreGivenOut.
func TestAnEarlierBootsTokensAreNoMoreGivenOut(t *testing.T) {
	make1 := func(epoch uint32) job.Token {
		h := New(inventory.New(), 0)
		h.Boot(epoch)
		return h.Make(0, Hold{Slice: "a", Start: 1, End: 2}, time.Second).Token
	}
	if make1(1) == make1(2) {
		t.Error("two boots give out the same token")
	}
}
