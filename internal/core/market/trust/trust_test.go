package trust_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/market/trust"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/score"
)

// settings are the defaults: eta .25, kappa 2.
var settings = trust.Settings{Eta: 250_000, Kappa: 2_000_000}

// six is a number in millionths as the tables print it.
func six(millionths int64) string { return fmt.Sprintf("%.6f", float64(millionths)/score.One) }

func millionths(x float64) int64 { return int64(math.Round(x * score.One)) }

// Our calibration vector: with subjobs of one size every step is eta.
func TestCalibrationVector(t *testing.T) {
	for _, risk := range []int64{0, 1, 60_000, math.MaxInt64} {
		var record protocol.Trust // nothing yet: e = 0, H = .5
		for i, c := range []struct {
			declared, observed float64
			rho, next          string
		}{
			{.9, .9, "1.000000", "0.900000"},
			{.9, .5, "0.818731", "0.841087"},
			{.9, .5, "0.704688", "0.798487"},
			{.6, .55, "0.750137", "0.813719"},
			{.6, .6, "0.806038", "0.835220"},
		} {
			settings.Observe(&record, trust.Observation{Declared: millionths(c.declared), Observed: millionths(c.observed), Risk: risk})
			if got := six(settings.Rho(&record)); got != c.rho {
				t.Errorf("risk %d, after %d: rho is %s, want %s", risk, i+1, got, c.rho)
			}
			if got := six(settings.Calibrated(&record, 900_000)); got != c.next {
				t.Errorf("risk %d, after %d: a next bid of .9 counts %s, want %s", risk, i+1, got, c.next)
			}
		}
		if record.Seen != 5 {
			t.Errorf("saw %d subjobs, want 5", record.Seen)
		}
	}
}

// The h and h^ of our scoring table, from jobs whose errors give its rho.
func TestScoringVectorIsCalibrated(t *testing.T) {
	for _, c := range []struct {
		name              string
		rho, history, job float64
		want              string
	}{
		{"a1", 1, .7, .9, "0.900000"}, {"a2", 1, .7, .8, "0.800000"}, {"b1", .8, .5, .6, "0.580000"},
		{"b2", .8, .5, .7, "0.660000"}, {"c1", .4, .3, .95, "0.560000"}, {"d1", 1, .6, .75, "0.750000"},
	} {
		record := protocol.Trust{Error: millionths(-math.Log(c.rho) / 2), History: millionths(c.history)}
		if got := six(settings.Rho(&record)); got != six(millionths(c.rho)) {
			t.Errorf("%s: rho is %s, want %v", c.name, got, c.rho)
		}
		if got := six(settings.Calibrated(&record, millionths(c.job))); got != c.want {
			t.Errorf("%s: h^ is %s, want %s", c.name, got, c.want)
		}
	}
}

// How many honest subjobs of one size restore a record of the worst error, .7 and .4.
func TestHonestyRestoresTrust(t *testing.T) {
	for _, c := range []struct {
		from float64
		rho  int64
		want int
	}{
		{1, 500_000, 4}, {1, 950_000, 13}, {1, 990_000, 19},
		{.7, 500_000, 3}, {.7, 950_000, 12}, {.7, 990_000, 18},
		{.4, 950_000, 10},
	} {
		record := protocol.Trust{Error: millionths(c.from), History: 300_000, Seen: 50, Risk: 60_000}
		n := 0
		for settings.Rho(&record) < c.rho && n < 100 {
			settings.Observe(&record, trust.Observation{Declared: 800_000, Observed: 800_000, Risk: 60_000})
			n++
		}
		if n != c.want {
			t.Errorf("from an error of %v rho %s takes %d honest subjobs, want %d", c.from, six(c.rho), n, c.want)
		}
		if h := record.History; h <= 300_000 || h > 800_000 {
			t.Errorf("the history went from .3 to %s", six(h))
		}
	}
}

// What many tiny honest subjobs buy is what as much slice-time in few large ones would have bought, and one lie in a large one
// costs at once what it always does.
func TestTrustIsBoughtWithSliceTime(t *testing.T) {
	const large = 600_000 // ten minutes at risk
	liar := func() protocol.Trust {
		var record protocol.Trust
		for range 12 {
			settings.Observe(&record, trust.Observation{Declared: score.One, Observed: 300_000, Risk: large})
		}
		return record
	}
	honest := func(record protocol.Trust, risk int64, times int) protocol.Trust {
		for range times {
			settings.Observe(&record, trust.Observation{Declared: 800_000, Observed: 800_000, Risk: risk})
		}
		return record
	}
	for _, tiny := range []int64{600, 6_000, 60_000} {
		few, many := honest(liar(), large, 4), honest(liar(), tiny, int(4*large/tiny))
		if math.Abs(float64(few.Error-many.Error)) > .03*score.One {
			t.Errorf("4 subjobs leave an error of %s, the same time in pieces of %d ms one of %s", six(few.Error), tiny, six(many.Error))
		}
		// As many subjobs as restore a liar when they are large restore nothing when they are tiny.
		before := liar()
		if after := honest(before, tiny, 12); after.Error < before.Error*int64(large-4*tiny)/large {
			t.Errorf("12 subjobs of %d ms take the error from %s to %s", tiny, six(before.Error), six(after.Error))
		}
	}
	// A thousand tiny honest subjobs, then a large lie: it counts in full, and a thousand more do not make good for it.
	record := honest(protocol.Trust{}, 600, 1000)
	settings.Observe(&record, trust.Observation{Declared: score.One, Observed: 200_000, Risk: large})
	if record.Error != 200_000 {
		t.Errorf("one lie of .8 in a large subjob makes an error of %s, want .2", six(record.Error))
	}
	if record.Risk <= large/5 {
		t.Errorf("what is typically at risk rose to %d only", record.Risk)
	}
	if again := honest(record, 600, 100); again.Error < 180_000 {
		t.Errorf("a hundred tiny subjobs, a tenth of the time of the lie, took the error to %s", six(again.Error))
	}
}

// A job that declares 1 and delivers .3 is believed less and less, until it counts for little more than it delivers.
func TestLiarsLoseWeight(t *testing.T) {
	var liar, honest protocol.Trust
	last := settings.Calibrated(&liar, score.One)
	for i := range 10 {
		settings.Observe(&liar, trust.Observation{Declared: score.One, Observed: 300_000, Risk: 1000})
		settings.Observe(&honest, trust.Observation{Declared: 600_000, Observed: 600_000, Risk: 1000})
		now := settings.Calibrated(&liar, score.One)
		if now >= last {
			t.Errorf("after %d lies a bid of 1 counts %s, no less than %s before", i+1, six(now), six(last))
		}
		last = now
	}
	if mine := settings.Calibrated(&honest, 600_000); last >= mine || mine != 600_000 {
		t.Errorf("the liar's 1 counts %s, an honest .6 %s", six(last), six(mine))
	}
}

func TestFreshJobsBeginWhereTheirQueueStands(t *testing.T) {
	if got, want := trust.Fresh(protocol.Trust{}), (protocol.Trust{History: 500_000}); got != want {
		t.Errorf("a job of a new queue begins with %+v, want %+v", got, want)
	}
	queue := protocol.Trust{Error: 400_000, History: 250_000, Seen: 90, Risk: 7000, Pace: 1100, Runs: 80, Excess: 9, Evidence: 5_000_000}
	job := trust.Fresh(queue)
	if want := (protocol.Trust{Error: 400_000, History: 250_000, Risk: 7000, Pace: 1100}); job != want {
		t.Errorf("begins with %+v, want %+v", job, want)
	}
	if settings.Calibrated(&job, score.One) != settings.Calibrated(&queue, score.One) {
		t.Error("a new name is believed otherwise than its queue")
	}
	// Its first tiny subjob is no typical one.
	settings.Observe(&job, trust.Observation{Declared: 800_000, Observed: 800_000, Risk: 7})
	if job.Error < 399_000 || job.Seen != 1 {
		t.Errorf("a subjob of 7 ms took the error to %s", six(job.Error))
	}
}

func TestPace(t *testing.T) {
	var record protocol.Trust
	for i, c := range []struct {
		planned, ran time.Duration
		want         int64
	}{
		{0, time.Minute, 0}, {time.Minute, 0, 0}, // nothing to learn
		{time.Minute, 90 * time.Second, 1500}, // the first counts whole
		{time.Minute, 30 * time.Second, 1250},
		{time.Minute, 75 * time.Second, 1250},
		{math.MaxInt64, 1, 938},     // rounded from 937.75
		{1, math.MaxInt64, 250_703}, // bounded
	} {
		settings.Observe(&record, trust.Observation{Planned: c.planned, Ran: c.ran, Risk: int64(i + 1)})
		if record.Pace != c.want {
			t.Errorf("after %d: pace %d, want %d", i+1, record.Pace, c.want)
		}
	}
}

// Records stay in their ranges whatever is observed; a larger error is believed no more; and what is believed lies between what
// is declared and what was.
func TestRecordsStayInRange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := trust.Settings{Eta: rapid.Int64Range(0, score.One).Draw(t, "eta"), Kappa: rapid.Int64Range(0, 100*score.One).Draw(t, "kappa")}
		some := rapid.Int64Range(0, score.One)
		amount := rapid.OneOf(rapid.Int64(), rapid.Int64Range(0, 9))
		var record protocol.Trust
		if rapid.Bool().Draw(t, "of a queue") {
			record = trust.Fresh(protocol.Trust{Error: some.Draw(t, "error"), History: some.Draw(t, "history"),
				Risk: rapid.Int64Range(1, math.MaxInt64).Draw(t, "risk"), Seen: 9})
		}
		for range rapid.IntRange(1, 20).Draw(t, "subjobs") {
			before := record
			o := trust.Observation{
				Declared: some.Draw(t, "declared"), Observed: some.Draw(t, "observed"), Risk: amount.Draw(t, "risk"),
				Planned: time.Duration(amount.Draw(t, "planned")), Ran: time.Duration(amount.Draw(t, "ran")),
				Predicted: quantity.Amount(amount.Draw(t, "predicted")), Peak: quantity.Amount(amount.Draw(t, "peak")),
				Theta: rapid.Int64Range(0, 500_000).Draw(t, "theta"),
			}
			s.Observe(&record, o)
			if record.Error < 0 || record.Error > score.One || record.History < 0 || record.History > score.One || record.Risk < 1 ||
				record.Pace < 0 || record.Pace > 1_000_000 || record.Seen != before.Seen+1 {
				t.Fatalf("%+v after %+v", record, o)
			}
			if o.Declared == o.Observed && record.Error > before.Error {
				t.Fatalf("an honest subjob raised the error from %d to %d", before.Error, record.Error)
			}
		}
		declared := some.Draw(t, "bid")
		if got := s.Calibrated(&record, declared); got < min(declared, record.History) || got > max(declared, record.History) {
			t.Fatalf("%d counts as %d, history %d", declared, got, record.History)
		}
		worse := record
		worse.Error = rapid.Int64Range(record.Error, score.One).Draw(t, "worse")
		if rho, less := s.Rho(&record), s.Rho(&worse); less > rho || rho > score.One || less < 0 {
			t.Fatalf("rho is %d at an error of %d and %d at %d", rho, record.Error, less, worse.Error)
		}
	})
}
