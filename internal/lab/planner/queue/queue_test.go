package queue_test

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/lab/planner"
	"sluice.dev/sluice/internal/lab/planner/book"
	"sluice.dev/sluice/internal/lab/planner/queue"
)

// TestAgainstScan keeps a line and an index next to a plain list, and asks both who is first.
func TestAgainstScan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var line queue.Line
		var index queue.Index
		var plain []book.Entry
		seq := int64(0)
		for range rapid.IntRange(1, 30).Draw(t, "phases") {
			switch rapid.IntRange(0, 2).Draw(t, "what") {
			case 0:
				for range rapid.IntRange(1, 40).Draw(t, "arrive") {
					seq++
					e := book.Entry{Seq: seq, Task: planner.Task{ID: planner.ID(seq), Devices: int32(rapid.IntRange(1, 4).Draw(t, "size")),
						Classes: uint32(rapid.IntRange(1, 3).Draw(t, "classes"))}}
					if rapid.IntRange(0, 5).Draw(t, "known") > 0 {
						e.Task.Run = &[planner.MaxClasses]time.Duration{time.Duration(rapid.IntRange(0, 9).Draw(t, "run")),
							time.Duration(rapid.IntRange(0, 9).Draw(t, "run b"))}
					}
					plain = append(plain, e)
					line.Push(queue.Place{ID: e.Task.ID, Seq: e.Seq})
					index.Put(&e)
				}
			case 1:
				for n := rapid.IntRange(1, 60).Draw(t, "leave"); n > 0 && len(plain) > 0; n-- {
					i := rapid.IntRange(0, len(plain)-1).Draw(t, "which")
					if rapid.Bool().Draw(t, "head") {
						i = 0
					}
					line.Remove(plain[i].Seq)
					index.Remove(&plain[i])
					plain = slices.Delete(plain, i, i+1)
				}
			}
			inLine(t, &line, plain, rapid.Int64Range(0, seq).Draw(t, "from"))
			class := rapid.IntRange(0, 1).Draw(t, "class")
			free, spare := int32(rapid.IntRange(0, 5).Draw(t, "free")), int32(rapid.IntRange(-1, 5).Draw(t, "spare"))
			limit := rapid.SampledFrom([]int64{0, 3, 9, queue.Any}).Draw(t, "limit")
			got, ok := index.First(class, free, spare, limit)
			i := slices.IndexFunc(plain, func(e book.Entry) bool {
				return e.Task.Classes&(1<<class) != 0 && e.Task.Devices <= free && (e.Task.Devices <= spare || e.Run(class) <= limit)
			})
			if ok != (i >= 0) || ok && got.Seq != plain[i].Seq {
				t.Fatalf("first of class %d, free %d, spare %d, limit %d is %+v (%v), want place %d of %+v", class, free, spare, limit, got,
					ok, i, plain)
			}
		}
	})
}

func inLine(t *rapid.T, line *queue.Line, plain []book.Entry, from int64) {
	if line.Len() != len(plain) || len(plain) > 0 && line.First().Seq != plain[0].Seq {
		t.Fatalf("%d stand in line, want %d", line.Len(), len(plain))
	}
	got := line.From(from, nil)
	var want []queue.Place
	for _, e := range plain {
		if e.Seq > from {
			want = append(want, queue.Place{ID: e.Task.ID, Seq: e.Seq})
		}
	}
	if !slices.Equal(got, want) {
		t.Fatalf("behind %d stand %v, want %v", from, got, want)
	}
}

// TestOrderAgainstSort keeps an order next to a plain list that is sorted for every question, with few ranks so that many tie.
func TestOrderAgainstSort(t *testing.T) {
	type waiting struct {
		queue.Place
		rank int64
	}
	rapid.Check(t, func(t *rapid.T) {
		var order queue.Order
		var plain []waiting
		seq := int64(0)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 5).Draw(t, "what") {
			case 0, 1, 2:
				seq++
				// Ids are used again: the number of the arrival is what tells tasks apart.
				id := planner.ID(0)
				for slices.ContainsFunc(plain, func(w waiting) bool { return w.ID == id }) {
					id++
				}
				w := waiting{queue.Place{ID: id, Seq: seq}, rapid.Int64Range(-3, 3).Draw(t, "rank")}
				plain = append(plain, w)
				order.Put(w.Place, w.rank)
			case 3, 4:
				if len(plain) > 0 {
					i := rapid.IntRange(0, len(plain)-1).Draw(t, "leaves")
					order.Remove(plain[i].Place)
					plain = slices.Delete(plain, i, i+1)
				}
			case 5:
				turn := rapid.Int64Range(-3, 3).Draw(t, "anew")
				rank := func(p queue.Place) int64 { return (p.Seq * turn) % 4 }
				for i := range plain {
					plain[i].rank = rank(plain[i].Place)
				}
				order.Rerank(rank)
			}
			sorted := slices.Clone(plain)
			slices.SortFunc(sorted, func(a, b waiting) int { return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.Seq, b.Seq)) })
			var want []queue.Place
			for _, w := range sorted {
				want = append(want, w.Place)
			}
			var got []queue.Place
			for i := range order.Len() {
				got = append(got, order.At(i))
			}
			if !slices.Equal(got, want) || len(want) > 0 && order.First() != want[0] {
				t.Fatalf("in order are %v, want %v", got, want)
			}
		}
	})
}
