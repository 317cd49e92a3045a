package tally

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/quantity"
)

// TestTallyAndAListAgree: what an entry has seen is what a list of the rounds since it began says, whoever came and left
// meanwhile.
func TestTallyAndAListAgree(t *testing.T) {
	type round struct {
		length time.Duration
		at     quantity.Instant
	}
	type resting struct {
		entry Entry
		need  time.Duration
		from  int
	}
	rapid.Check(t, func(t *rapid.T) {
		var tally Tally
		var rounds []round
		var all []*resting
		at := quantity.Instant(100)
		lengths := rapid.IntRange(1, rapid.SampledFrom([]int{5, 600}).Draw(t, "lengths"))
		enter := func() {
			n := time.Duration(lengths.Draw(t, "need"))
			all = append(all, &resting{tally.Enter(n), n, len(rounds)})
		}
		for range rapid.IntRange(0, 400).Draw(t, "first") {
			enter()
		}
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			i := 0
			if len(all) > 0 {
				i = rapid.IntRange(0, len(all)-1).Draw(t, "which")
			}
			switch do := rapid.IntRange(0, 4).Draw(t, "do"); {
			case do == 0 || len(all) == 0:
				enter()
			case do == 1:
				tally.Leave(&all[i].entry)
				all = append(all[:i], all[i+1:]...)
			case do == 2:
				tally.Begin(&all[i].entry)
				all[i].from = len(rounds)
			default:
				at += quantity.Instant(rapid.IntRange(0, 3).Draw(t, "pass"))
				rounds = append(rounds, round{time.Duration(lengths.Draw(t, "length")), at})
				tally.Note(uint64(len(rounds)), rounds[len(rounds)-1].length, at)
			}
			for _, r := range all {
				var long, short Seen
				for n := r.from; n < len(rounds); n++ {
					kind := &long
					if rounds[n].length < r.need {
						kind = &short
					}
					kind.Note(uint64(n+1), rounds[n].at)
				}
				if gotLong, gotShort := tally.Count(&r.entry); gotLong != long || gotShort != short {
					t.Fatalf("one that needs %d from round %d on saw %v and %v, want %v and %v", r.need, r.from, gotLong, gotShort, long,
						short)
				}
			}
		}
		for _, r := range all {
			tally.Leave(&r.entry)
		}
		if len(tally.of) > 0 || len(tally.chunks) > 0 || len(tally.shared) > 0 {
			t.Fatalf("nobody rests, and %d needs in %d chunks are kept", len(tally.of), len(tally.chunks))
		}
	})
}

// TestManyNeeds: needs of so many lengths that they are kept in several chunks, entered in no order, have each seen the rounds that were
// long enough for them and those that were too short.
func TestManyNeeds(t *testing.T) {
	const n = 1000 // lengths, each a multiple of 10
	var tally Tally
	var entries [n]Entry
	for i := range n {
		at := i * 619 % n
		entries[at] = tally.Enter(time.Duration(10 * at))
	}
	if len(tally.chunks) < 3 {
		t.Fatalf("%d chunks: too few to tell", len(tally.chunks))
	}
	lengths := []int{0, 4995, 5000, 5005, 10 * n}
	for i, length := range lengths {
		tally.Note(uint64(i+1), time.Duration(length), quantity.Instant(i+1))
	}
	for at := range entries {
		var long, short Seen
		for i, length := range lengths {
			kind := &long
			if length < 10*at {
				kind = &short
			}
			kind.Note(uint64(i+1), quantity.Instant(i+1))
		}
		if gotLong, gotShort := tally.Count(&entries[at]); gotLong != long || gotShort != short {
			t.Fatalf("one that needs %d saw %v and %v, want %v and %v", 10*at, gotLong, gotShort, long, short)
		}
	}
}

// BenchmarkNote is a round with many different needs.
func BenchmarkNote(b *testing.B) {
	for _, n := range []int{1000, 100_000} {
		b.Run(fmt.Sprintf("needs=%d", n), func(b *testing.B) {
			var t Tally
			for i := range n {
				t.Enter(time.Duration(i * 7919 % n))
			}
			for i := range b.N {
				t.Note(uint64(i), time.Duration(i*31%n), quantity.Instant(i))
			}
		})
	}
}
