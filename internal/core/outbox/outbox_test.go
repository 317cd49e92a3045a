package outbox_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/outbox"
	"sluice.dev/sluice/internal/core/quantity"
)

// plain is a box that keeps nothing in order: it looks at everything whenever it is asked.
type plain struct {
	retry time.Duration
	most  int
	items map[int]*word
	began quantity.Instant
	said  int
}

type word struct {
	at, said quantity.Instant
	tries    int
}

// next says what may be said now; which of them is nobody's promise.
func (p *plain) next(now quantity.Instant) (may []int) {
	if p.said == 0 || p.began.Add(p.retry) <= now {
		p.began, p.said = now, 0
	}
	if p.said >= p.most {
		return nil
	}
	least := quantity.Never
	for i, w := range p.items {
		switch {
		case w.at > now || w.at > least:
		case w.at < least:
			least, may = w.at, []int{i}
		default:
			may = append(may, i)
		}
	}
	return may
}

// TestABoxSaysWhatAPlainOneDoes step by step, with few things and a small bound.
func TestABoxSaysWhatAPlainOneDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		retry, most := time.Duration(rapid.IntRange(1, 5).Draw(t, "retry")), rapid.IntRange(1, 4).Draw(t, "most")
		b := outbox.New[int](retry, most)
		p := plain{retry: retry, most: most, items: map[int]*word{}}
		kept := map[int]*outbox.Item[int]{}
		now, asked := quantity.Instant(1), quantity.Instant(0)
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			i := rapid.IntRange(0, 7).Draw(t, "thing")
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				kept[i] = b.Say(kept[i], i)
				said := quantity.Instant(0)
				if w := p.items[i]; w != nil {
					said = w.said
				}
				p.items[i] = &word{at: asked, said: said}
			case 1:
				kept[i] = b.Confirm(kept[i])
				if w := p.items[i]; w != nil && w.tries > 0 && w.said >= p.began {
					p.said = max(0, p.said-1)
				}
				delete(p.items, i)
			case 2:
				now = now.Add(time.Duration(rapid.IntRange(0, 10).Draw(t, "passes")))
			}
			asked = now
			for {
				may := p.next(now)
				got, ok := b.Next(now)
				if ok != (len(may) > 0) || ok && !slices.Contains(may, got) {
					t.Fatalf("%d is said (%v), want one of %v", got, ok, may)
				}
				if !ok {
					break
				}
				w := p.items[got]
				w.tries++
				w.said, w.at = now, now.Add(retry<<min(w.tries-1, outbox.Doublings))
				p.said++
			}
			wake := quantity.Never
			for _, w := range p.items {
				wake = min(wake, w.at)
			}
			if wake <= now {
				wake = p.began.Add(retry)
			}
			if b.Wake() != wake || b.Len() != len(p.items) || len(b.All()) != len(p.items) {
				t.Fatalf("wakes at %v of %d, want %v of %d", b.Wake(), b.Len(), wake, len(p.items))
			}
		}
	})
}

// TestWhoDoesNotAnswerDelaysOthersByOneInterval: a bound on what is outstanding would let a few silent ones stop everybody.
func TestWhoDoesNotAnswerDelaysOthersByOneInterval(t *testing.T) {
	b := outbox.New[int](time.Second, 10)
	for i := range 10 {
		b.Say(nil, i)
	}
	drain := func(now quantity.Instant) (n int) {
		for {
			if _, ok := b.Next(now); !ok {
				return n
			}
			n++
		}
	}
	if n := drain(1e9); n != 10 {
		t.Fatalf("%d are said, want 10", n)
	}
	other := b.Say(nil, 99)
	if n := drain(1e9); n != 0 || b.Wake() != 2e9 {
		t.Fatalf("%d more are said, the next look is at %v", n, b.Wake())
	}
	if n := drain(2e9); n == 0 {
		t.Fatal("nothing is said an interval later")
	}
	said := 0
	for at := quantity.Instant(3e9); at < 600e9; at += 1e9 {
		said += drain(at)
	}
	if b.Confirm(other); b.Len() != 10 || said > 10*(6+600/64+2) {
		t.Errorf("%d are left, %d were said in ten minutes", b.Len(), said)
	}
}
