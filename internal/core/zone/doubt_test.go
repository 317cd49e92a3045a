package zone_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/zone"
)

// TestASliceThatNobodyOffersIsNotDoubted: a zone comes up again while a node, on which it sold a slice to several jobs, is gone. What
// these ask there is not answered, time and again; a gang that fits another node begins all the same.
func TestASliceThatNobodyOffersIsNotDoubted(t *testing.T) {
	w := newWorld(t, 256, 512, 512)
	w.slices[0].node = "away"
	w.config.Skew = time.Minute // so long they are waited for
	w.z, w.twin = w.make(), &twin{}
	w.twin.restart(w)
	gone := false
	w.lose = func(m *protocol.Message) bool {
		return m.Kind == protocol.Result || gone && (m.To.ID == "away" || m.Kind == protocol.Offer &&
			m.Body.(*protocol.SliceView).Slice.ID == "s0")
	}
	for i := range 4 {
		w.submit(rigid(t, fmt.Sprint("sold", i), 2*time.Second, 100, 1))
		for end := w.now.Add(4 * time.Second); w.now < end; {
			w.tick()
		}
	}
	gone = true
	w.restart()
	for end := w.now.Add(3 * time.Second); w.now < end; {
		w.tick()
	}
	w.submit(rigid(t, "gang", 10*time.Second, 400, 2))
	for end := w.now.Add(3 * time.Second); w.now < end; {
		w.tick()
	}
	if j, _ := w.z.Job(w.now, "gang"); j.Running != 1 {
		t.Errorf("the gang is %v: %s", j.State, j.Reason)
	}
}

// onlyOn has a rigid job run on slices of one profile of these worlds, and on no other.
func onlyOn(s *job.Spec, profile string) *job.Spec {
	s.Speeds = []job.SpeedOn{{Profile: "tiny", Permille: 0}, {Profile: "large", Permille: 0}}
	i := slices.IndexFunc(s.Speeds, func(on job.SpeedOn) bool { return on.Profile == profile })
	s.Speeds[i].Permille = 1000
	return s
}

// doubtful is a world of a slice on node "away", which only jobs of profile "tiny" can use, and two on another node for the others.
func doubtful(t *testing.T) *world {
	w := newWorld(t, 256, 512, 512)
	w.slices[0].node, w.slices[0].view.Profile = "away", "tiny"
	w.slices[1].view.Profile, w.slices[2].view.Profile = "large", "large"
	w.z, w.twin = w.make(), &twin{}
	w.twin.restart(w)
	w.settle()
	return w
}

// TestASliceInDoubtHoldsUpNobodyElsewhere: a node has died, and its last view is known. While its slice is left alone, since several jobs
// had no answer there, a gang that fits another node begins at once.
func TestASliceInDoubtHoldsUpNobodyElsewhere(t *testing.T) {
	w := doubtful(t)
	w.lose = func(m *protocol.Message) bool { return m.To.ID == "away" }
	for i := range 4 {
		w.submit(onlyOn(rigid(t, fmt.Sprint("tiny", i), 2*time.Second, 100, 1), "tiny"))
	}
	for end := w.now.Add(time.Minute); !zone.Doubted(w.z, "s0", w.now); {
		if w.tick(); w.now > end {
			t.Fatal("the slice is not doubted")
		}
	}
	w.submit(onlyOn(rigid(t, "gang", 10*time.Second, 400, 2), "large"))
	for w.deliver() {
	}
	if j, _ := w.z.Job(w.now, "gang"); j.Running != 1 {
		t.Errorf("the gang does not begin at once: it is %v: %s", j.State, j.Reason)
	}
}

// TestWhoMakesASliceDoubtful: three different jobs that its node refuses in a row. One that is taken begins the count anew.
func TestWhoMakesASliceDoubtful(t *testing.T) {
	for name, c := range map[string]struct {
		// refused are the jobs that come, in their order, and whether they are refused.
		refused []bool
		doubted bool
	}{
		"two":                           {[]bool{true, true}, false},
		"three":                         {[]bool{true, true, true}, true},
		"two, and behind another two":   {[]bool{true, true, false, true, true}, false},
		"two, and behind another three": {[]bool{true, true, false, true, true, true}, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 512)
			w.refuse = func(m *protocol.Message) bool {
				var i int
				_, _ = fmt.Sscanf(string(m.Job), "j%d", &i)
				return c.refused[i]
			}
			w.settle()
			for i := range c.refused {
				w.submit(items(t, fmt.Sprint("j", i), 1, 100, 1))
				for w.deliver() {
				}
				if last := i == len(c.refused)-1; zone.Doubted(w.z, "s0", w.now) != (c.doubted && last) {
					t.Fatalf("behind job %d it is doubted: %v", i, !(c.doubted && last))
				}
				if c.refused[i] { // who was refused would ask again once the view is another
					w.step(protocol.Message{Kind: protocol.Cancel, Job: job.ID(fmt.Sprint("j", i)), Epoch: 1,
						Body: &protocol.Cancellation{Text: "cancelled"}})
					continue
				}
				w.until(time.Minute)
			}
		})
	}
}

// TestOneJobMakesNoSliceDoubtful, however often it is refused.
func TestOneJobMakesNoSliceDoubtful(t *testing.T) {
	w := newWorld(t, 512)
	asked := 0
	w.refuse = func(*protocol.Message) bool { asked++; return true }
	w.settle()
	w.submit(items(t, "j", 1, 100, 1))
	for end := w.now.Add(time.Minute); w.now < end; w.tick() {
		if zone.Doubted(w.z, "s0", w.now) {
			t.Fatalf("it is doubted, refused %d times to one job", asked)
		}
	}
	if asked < 4 {
		t.Errorf("it was asked for %d times, want more", asked)
	}
}
