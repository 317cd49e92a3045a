package view

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/foresight"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/score"
	"sluice.dev/sluice/internal/core/status"
)

// TestAPlaceIsSaidInWords: how many are ahead, and who got the latest window.
func TestAPlaceIsSaidInWords(t *testing.T) {
	latest := status.Given{Slice: "s1", Winner: "w", WinnerQueue: "v", At: now.Add(-90 * time.Second)}
	for _, c := range []struct {
		rank status.Rank
		want string
	}{
		{status.Rank{Place: 1, Of: 9}, "1 of the 9 that wait for a slice such as s0, by policy fifo: nobody is ahead of it"},
		{status.Rank{Place: 2, Of: 9}, "2 of the 9 that wait for a slice such as s0, by policy fifo: 1 job is ahead of it"},
		{status.Rank{Place: 3, Of: 9, Latest: latest}, "3 of the 9 that wait for a slice such as s0, by policy fifo: 2 jobs are ahead " +
			"of it; " +
			"the last window it could have used, on s1, went to w of queue v 1m30s ago"},
		{status.Rank{Place: 1, Of: 9, About: true}, "about 1 of the 9 that wait for a slice such as s0, by policy fifo: few jobs are " +
			"ahead of it"},
		{status.Rank{Place: 5, Of: 9, About: true}, "about 5 of the 9 that wait for a slice such as s0, by policy fifo: about 4 jobs " +
			"are ahead of it"},
	} {
		c.rank.Slice, c.rank.Policy = "s0", "fifo"
		if got := rankText(now, &c.rank); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// TestTheNearestLossIsSaid, with the rounds of all of them.
func TestTheNearestLossIsSaid(t *testing.T) {
	loss := func(on job.SliceID, by int64) status.Loss {
		return status.Loss{
			Slice: on, Count: 2, Score: score.One / 2, Weight: score.One, Winner: "w", WinnerQueue: "v", Winners: 1, WinnerScore: score.One,
			WinnerWeight:  score.One + by,
			WinnersWeight: score.One + by,
		}
	}
	far, near := loss("far", score.One), loss("near", score.One/4)
	const bid = "its best bid scored 0.50 and weighed 1.00, w of queue v scored 1.00 and weighed "
	one, starved, even := near, near, loss("even", 0)
	one.Count, starved.Late = 1, true
	for want, list := range map[string][]status.Loss{
		"": nil,
		"it bid in 4 rounds since it was last served, and lost; nearest on near: " + bid +
			"1.25: it lost by 0.25": {far, near},
		"it bid in a round on near, and lost: " + bid +
			"1.25: it lost by 0.25": {one},
		"it bid in 2 rounds since it was last served, and lost; nearest on near: " + bid +
			"1.25; who has waited too long goes first, whatever others are worth": {starved},
		"it bid in 2 rounds since it was last served, and lost; nearest on even: " + bid +
			"1.00; that was no loss by weight: what begins sooner, or goes with other pieces of the round, went first": {even},
	} {
		if got := lossesText(list); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for n, want := range map[int64]string{0: "0.00", 4_999: "0.00", 5_000: "0.01", 999_990_000: "999.99", 1000 * score.One: "1000",
		1000*score.One + score.One/2: "1001"} {
		if got := decimal(n); got != want {
			t.Errorf("%d millionths are %q, want %q", n, got, want)
		}
	}
}

// TestWhoWasToldKeepsTheEstimate, whatever would be said to one that came now.
func TestWhoWasToldKeepsTheEstimate(t *testing.T) {
	s := newStand(Config{}, []int64{1024}, now)
	j := s.adopt(t, needs("j", 100, time.Hour, 1))
	s.Tell(&s.told, now.Add(-time.Minute), 5*time.Minute)
	early, late := s.expect(now, j)
	e, l := s.Range(now, s.told)
	ne, nl := s.Range(now, foresight.Plain(now, s.Guess(now, j)))
	if early != e || late != l || e == ne && l == nl {
		t.Errorf("between %v and %v; it was told %v and %v, and would be told %v and %v", early.Sub(now), late.Sub(now), e.Sub(now),
			l.Sub(now), ne.Sub(now), nl.Sub(now))
	}
}

// TestJobsWithSpeedsOfTheirOwnAreLookedForAlone: where the others could run says nothing of them.
func TestJobsWithSpeedsOfTheirOwnAreLookedForAlone(t *testing.T) {
	s := newStand(Config{}, []int64{1024}, now)
	for _, id := range []string{"a", "b"} {
		spec := needs(id, 100, time.Minute, 1)
		spec.Speeds = []job.SpeedOn{{Permille: 500}}
		s.adopt(t, spec)
	}
	if s.Page(now, status.JobQuery{}); s.searches < 2 {
		t.Errorf("%d searches for two jobs", s.searches)
	}
}

// TestNobodyBeginsInThePast: a slice that has been free for a while is one from now on.
func TestNobodyBeginsInThePast(t *testing.T) {
	s := newStand(Config{}, []int64{1024}, now.Add(-time.Minute))
	if at, ok := s.look(now).nextStart(s.adopt(t, needs("j", 100, 0, 10))); !ok || at != now {
		t.Errorf("it begins at %v, %v", at.Sub(now), ok)
	}
}

// TestPausedJobsOfAQueueArePending, beside those that wait.
func TestPausedJobsOfAQueueArePending(t *testing.T) {
	s := newStand(Config{}, []int64{1024}, now)
	for _, id := range []job.ID{"waits", "paused", "runs"} {
		s.adopt(t, needs(string(id), 100, 0, 10))
	}
	s.ledger.Apply(protocol.Fact{Kind: protocol.HomePaused, Job: "paused", Body: &protocol.JobPause{Paused: true}})
	s.claimed("runs", 1, job.Range{To: 10}, 0)
	if q := s.Queues(now); len(q) != 1 || q[0].Pending != 2 || q[0].Running != 1 || q[0].Held != 1 {
		t.Errorf("%+v", q)
	}
}
