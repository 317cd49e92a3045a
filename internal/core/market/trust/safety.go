package trust

import (
	"math"

	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/score"
	"sluice.dev/sluice/internal/core/trp"
)

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

// Evidence is the natural logarithm, in millionths, of the e-value against the promise that an excess has a chance of at most
// theta (parts per million, 1 to trp.MaxThetaPPM), after so many runs, of which excess showed one. 0 says nothing either way.
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

// remember counts a run whose peak was observed and what it says of theta.
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
