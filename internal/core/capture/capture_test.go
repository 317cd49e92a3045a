package capture_test

import (
	"fmt"
	"maps"
	"testing"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/capture"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
)

// counter is a part with a value.
type counter struct {
	capture.Mark
	id    job.ID
	value uint32
}

func (c *counter) AppendFacts(out []protocol.Fact) []protocol.Fact {
	return append(out, protocol.Fact{Job: c.id, Epoch: c.value}, protocol.Fact{Job: c.id, Body: &protocol.Reason{Text: "and more"}})
}

// shelf is counters by name, and how many were ever made as a small part.
type shelf struct {
	parts capture.Parts[*counter]
	by    map[job.ID]*counter
	list  []*counter
	made  uint32
}

func (s *shelf) Capture() capture.Run {
	return s.parts.Begin(protocol.Address{ID: "shelf"}, []protocol.Fact{{Body: &protocol.Reason{Text: "made"}, Epoch: s.made}})
}

func (s *shelf) add() {
	s.made++
	c := &counter{id: job.ID(fmt.Sprint("c", s.made))}
	s.by[c.id], s.list = c, append(s.list, c)
	s.parts.Add(c)
}

func (s *shelf) state() map[job.ID]uint32 {
	m := map[job.ID]uint32{"": s.made}
	for id, c := range s.by {
		m[id] = c.value
	}
	return m
}

// TestACaptureIsOfOneInstant: whatever is made, changed and removed between its pieces, and however large these are, what a
// capture gives is the state when it began, each part once and whole.
func TestACaptureIsOfOneInstant(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := &shelf{by: map[job.ID]*counter{}}
		for range rapid.IntRange(0, 12).Draw(rt, "at first") {
			s.add()
		}
		var run capture.Run
		var want map[job.ID]uint32
		var got []protocol.Fact
		for range rapid.IntRange(0, 60).Draw(rt, "steps") {
			pick := func() *counter { return rapid.SampledFrom(s.list).Draw(rt, "part") }
			switch op := rapid.SampledFrom([]string{"add", "change", "change", "remove", "take", "take", "begin", "release"}).Draw(rt,
				"op"); {
			case op == "add":
				s.add()
			case op == "change" && len(s.list) > 0:
				c := pick()
				s.parts.Change(c)
				c.value++
			case op == "remove" && len(s.list) > 0:
				c := pick()
				s.parts.Remove(c)
				delete(s.by, c.id)
				for i := range s.list {
					if s.list[i] == c {
						s.list = append(s.list[:i:i], s.list[i+1:]...)
						break
					}
				}
			case op == "begin" && (run == nil || rapid.IntRange(0, 3).Draw(rt, "give up") == 0):
				run, want, got = s.Capture(), s.state(), nil
			case op == "release" && run != nil && rapid.IntRange(0, 3).Draw(rt, "really") == 0:
				run.Release()
				run = nil
			case op == "take" && run != nil:
				n, early := rapid.IntRange(0, 5).Draw(rt, "n"), run.Early()
				before, all := len(got), n > 0 && n >= s.parts.Len()
				var done bool
				got, done = run.Take(n, got)
				if len(got)-before > early+2*n || run.Early() != 0 {
					rt.Fatalf("%d facts of %d parts, %d were held and %d are", len(got)-before, n, early, run.Early())
				}
				if all && !done {
					rt.Fatalf("it goes on behind %d of %d parts", n, s.parts.Len())
				}
				if done {
					same(rt, got, want)
					run = nil
				}
			}
			if run == nil && s.parts.Early() != 0 {
				rt.Fatal("facts are held although no capture runs")
			}
		}
		same(rt, capture.All(s), s.state())
	})
}

// TestWhatTakesTheNextPlaceIsCaptured: the part that moves to the place of a removed one, where the capture has been, is in it still.
func TestWhatTakesTheNextPlaceIsCaptured(t *testing.T) {
	s := &shelf{by: map[job.ID]*counter{}}
	for range 3 {
		s.add()
	}
	run, want := s.Capture(), s.state()
	got, done := run.Take(1, nil)
	if done {
		t.Fatal("one of three parts was all of them")
	}
	s.parts.Remove(s.list[0])
	for !done {
		got, done = run.Take(1, got)
	}
	same(t, got, want)
}

// same wants facts to say the state, and each part's to stand together.
func same(rt rapid.TB, facts []protocol.Fact, want map[job.ID]uint32) {
	got := map[job.ID]uint32{}
	for i := 0; i < len(facts); i++ {
		f := facts[i]
		if f.Actor.ID != "shelf" {
			rt.Fatalf("%q is of %v", f.Job, f.Actor)
		}
		if _, twice := got[f.Job]; twice {
			rt.Fatalf("%q is in it twice", f.Job)
		}
		got[f.Job] = f.Epoch
		if f.Job == "" {
			continue
		}
		if i++; i == len(facts) || facts[i].Job != f.Job || facts[i].Body == nil {
			rt.Fatalf("%q is torn apart", f.Job)
		}
	}
	if !maps.Equal(got, want) {
		rt.Fatalf("captured %v, it was %v", got, want)
	}
}
