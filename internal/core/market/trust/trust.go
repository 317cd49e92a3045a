// Package trust holds what a job declared against what was observed (JASDA, arXiv 2510.14599, feedback and calibration): how
// far a declared score is believed, how run times turn out, and, apart from both, whether the promise of theta is kept. It
// keeps nothing itself: all of it is functions of a protocol.Trust, of a job or of its queue, which lives in facts.
//
// Numbers are integers in millionths. What is computed in floats is rounded once, so that two kinds of processor decide alike.
package trust

import (
	"math"
	"math/bits"
	"time"

	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/score"
	"sluice.dev/sluice/internal/core/trp"
)

// Settings of calibration, in millionths (market.Config has the defaults, .25 and 2).
type Settings struct {
	// Eta is the step of the means, 0 to One.
	Eta int64
	// Kappa is how steeply trust falls with error, at least 0.
	Kappa int64
}

// Observation is one subjob that has ended, seen from both sides.
type Observation struct {
	// Declared score (protocol.Bid.Score) and observed one (score.Observed), in millionths, 0 to One.
	Declared, Observed int64
	// Risk is the slice-time the subjob was sold, in milliseconds: what a wrong declaration could waste.
	Risk int64
	// Planned run time and real one; where either is 0 nothing is learned of the pace.
	Planned, Ran time.Duration
	// Predicted is the memory it was sold, the least capacity at which it is safe at Theta (parts per million); Peak is what
	// was observed. Where either is 0 nothing is known of its memory. Theta 0 counts the run without holding it against
	// anything: a queue's jobs have thetas of their own.
	Predicted, Peak quantity.Amount
	Theta           int64
}

// Fresh is the record a new job begins with: what its queue's jobs have shown so far, so that a new name is no way out of a bad
// record. Its own subjobs and the test of its memory begin at none. A queue that has shown nothing counts as without error,
// with a history of one half.
func Fresh(queue protocol.Trust) protocol.Trust {
	if queue.Seen == 0 {
		return protocol.Trust{History: score.One / 2}
	}
	return protocol.Trust{Error: queue.Error, History: queue.History, Risk: queue.Risk, Pace: queue.Pace}
}

// Rho is how far declarations are believed: exp(-Kappa x Error), in millionths, One for no error.
func (s Settings) Rho(t *protocol.Trust) int64 { return int64(math.Round(s.rho(t) * score.One)) }

// rho is at most 1. The product is rounded by itself, so that no processor joins it with what follows.
func (s Settings) rho(t *protocol.Trust) float64 {
	return math.Exp(-float64(float64(s.Kappa) * float64(t.Error) / (score.One * score.One)))
}

// Belief is how far what a job declares is believed by its record, for many declarations.
type Belief struct {
	rho     float64
	history int64
}

// Belief by a record.
func (s Settings) Belief(t *protocol.Trust) Belief { return Belief{s.rho(t), t.History} }

// In is the declared score, calibrated.
func (b Belief) In(declared int64) int64 {
	return b.history + int64(math.Round(b.rho*float64(declared-b.history)))
}

// recede is how many times slower Risk falls than it rises. A tiny honest subjob takes Eta/4 of its own risk off the typical
// Risk and the share Eta x risk/Risk off the error, so that the error falls as the fourth power of Risk does. Thus honest work
// worth four typical subjobs leaves (1-Eta)^4 of an error however it is cut: into four, or into countless ones.
const recede = 4

// Observe folds one subjob into a record.
//
// Error and History are means that move by the step Eta x min(1, Risk of the subjob / typical Risk), so that what counts is
// slice-time at risk: many tiny honest subjobs do not buy the trust for a big lie. The typical Risk is such a mean itself; it
// rises by Eta and falls four times slower, so that tiny subjobs do not make themselves typical first. With subjobs of one size
// the step is Eta, and an error decays to (1-Eta)^n of itself in n honest ones: at Eta .25 and Kappa 2 the worst record there
// is, an error of 1 (rho .135), is back at rho .5 after 4 and at .95 after 13.
func (s Settings) Observe(t *protocol.Trust, o Observation) {
	if t.Seen == 0 && t.History == 0 && t.Error == 0 {
		t.History = score.One / 2
	}
	risk := max(o.Risk, 1)
	if t.Risk == 0 {
		t.Risk = risk
	}
	step := s.Eta
	if risk < t.Risk {
		step = quantity.MulDiv(s.Eta, risk, t.Risk)
	}
	t.Error = toward(t.Error, abs(o.Declared-o.Observed), step)
	t.History = toward(t.History, o.Observed, step)
	if risk < t.Risk {
		step /= recede
	}
	t.Risk = toward(t.Risk, risk, step)
	t.Seen++
	s.pace(t, o)
	remember(t, o)
}

// slowest pace that is remembered, in parts per thousand: a thousand times the plan.
const slowest = 1_000_000

// pace learns how run times turn out. It is for people (the planned time itself is learned elsewhere), and a short run says as
// much as a long one, so it moves by Eta alone.
func (s Settings) pace(t *protocol.Trust, o Observation) {
	if o.Planned <= 0 || o.Ran <= 0 {
		return
	}
	now := min(slowest, quantity.MulDiv(int64(o.Ran), 1000, int64(o.Planned)))
	if t.Pace == 0 {
		t.Pace = now
	}
	t.Pace = toward(t.Pace, now, s.Eta)
}

// toward is the mean from, moved to x by step (millionths, 0 to One), rounded to the nearest and down where that is in doubt.
// It lies between the two and does not overflow for numbers of either size from 0 on.
func toward(from, x, step int64) int64 {
	if x >= from {
		return from + scaled(x-from, step, score.One/2-1)
	}
	return from - scaled(from-x, step, score.One/2)
}

// scaled is (d x step + half) / One rounded down, for d >= 0 and 0 <= step <= One.
func scaled(d, step, half int64) int64 {
	hi, lo := bits.Mul64(uint64(d), uint64(step))
	lo, carry := bits.Add64(lo, uint64(half), 0)
	q, _ := bits.Div64(hi+carry, lo, score.One)
	return int64(q)
}

func abs(x int64) int64 { return max(x, -x) }

// Theta is a promise: the peak of a piece passes the memory it was sold with a chance of at most theta. Whether a job keeps it
// is tested after every subjob, for as long as the job lives, so the test must hold at any time and not at a length fixed
// before: an e-process, which is a bet against the promise at fair odds or worse. Its expected gain is at most 1 as long as the
// promise is kept, whatever came before, so the chance that it ever reaches 1/alpha is at most alpha (Ville 1939; Ramdas et
// al., "Game-theoretic statistics and safe anytime-valid inference", 2023).
//
// One bet multiplies the odds of an excess by 2^i: after n runs with k excesses it stands at 2^(i k) / (1 + (2^i-1) theta)^n.
// The e-value is the mean of the bets for i = 1 to bets, which finds a rate somewhat above theta and one far above it. A mean of
// products is not updated from its logarithm alone; but as each bet depends on nothing but n and k so does the e-value, and two
// counts are all that is kept, in whatever order the runs have ended.

// Alpha is the chance that a job which keeps its promise is ever found not to, in millionths.
const Alpha = 50_000

// bets are up to 256 times the odds of theta.
const bets = 8

// Evidence is the natural logarithm, in millionths, of the e-value against the promise that an excess has a chance of at most theta (parts
// per million, 1 to trp.MaxThetaPPM), after runs of which excess showed one. 0 is no evidence either way.
func Evidence(runs, excess, theta int64) int64 {
	var logs [bets]float64
	most := math.Inf(-1)
	for i := range logs {
		raised := float64(int64(2) << i) // 2^(i+1)
		won := float64(float64(excess) * float64(float64(i+1)*math.Ln2))
		lost := float64(float64(runs) * math.Log1p(float64((raised-1)*float64(theta)/1e6)))
		logs[i] = won - lost
		most = max(most, logs[i])
	}
	var sum float64
	for _, l := range logs {
		sum += math.Exp(l - most)
	}
	return int64(math.Round((most + math.Log(sum/bets)) * score.One))
}

// remember counts a run whose peak was observed, and its evidence about theta.
func remember(t *protocol.Trust, o Observation) {
	if o.Predicted <= 0 || o.Peak <= 0 {
		return
	}
	t.Runs++
	if o.Peak > o.Predicted {
		t.Excess++
	}
	if o.Theta > 0 {
		t.Evidence = Evidence(t.Runs, t.Excess, o.Theta)
	}
}

// Unsafe says that the observed rate of excess is inconsistent with theta (parts per million): the e-value is at least 1/Alpha.
// It may be asked after every run: of jobs that keep their promise just so about 2.5% are ever accused. Its power, as the mean
// of runs until the alarm at a theta of .01: 1,260 where the true rate is twice theta, 111 at five times, 31 at ten times, 3 at
// fifty times.
func Unsafe(t *protocol.Trust, theta int64) bool {
	return t.Excess > 0 && Evidence(t.Runs, t.Excess, theta) >= alarm
}

// alarm is ln(1/Alpha) in millionths, rounded up.
const alarm = 2_995_733

// inflation is how much wider a profile's deviations are taken after an alarm, in parts per thousand: at a theta of .01 one step
// makes good for a true rate of 6 times theta, two for 15 times.
const inflation = 1500

// Inflate answers an alarm: it returns the spread to compile the job's profile with from now on (trp.Spread), in parts per
// thousand, and begins the counts anew, since they were of the narrower profile. A spread of 0 is trp.Unscaled; the widest is
// trp.MaxSpread.
func Inflate(t *protocol.Trust, spread int64) int64 {
	t.Runs, t.Excess, t.Evidence = 0, 0, 0
	return min(trp.MaxSpread, max(spread, trp.Unscaled)*inflation/1000)
}
