// Package learn folds what subjobs show into what is known of their jobs: how long a unit takes, how much memory, what fails, how far a
// declaration can be believed; and, over the jobs of a queue that name one template, into what the next of them will need. Its functions
// know no ledger: they map what is known and a result to what is known now.
package learn

import (
	"sluice.dev/sluice/internal/core/digest"
	"sluice.dev/sluice/internal/core/forecast"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/status"
)

// Lessons are what was learned of one job. Invariant: sum is the hash of it, made anew only where the long part of it, the profile,
// has changed.
type Lessons struct {
	known protocol.Learned
	// safe is the hash of known.Safe.
	safe uint64
}

// nothing was learned of a job that has no Lessons; it is only read.
var nothing protocol.Learned //nolint:gochecknoglobals // read-only by use

// nothingSafe is the hash of its profile.
var nothingSafe = safeSum(&nothing) //nolint:gochecknoglobals // read-only by use

func safeSum(l *protocol.Learned) uint64 { return digest.Optional(digest.New(), l.Safe).Sum() }

// Known is what was learned, for reading.
func (s *Lessons) Known() *protocol.Learned {
	if s == nil {
		return &nothing
	}
	return &s.known
}

// Learned replaces what was learned. The receiver may be nil.
func (s *Lessons) Learned(l *protocol.Learned) *Lessons {
	switch {
	case s == nil:
		s = &Lessons{safe: safeSum(l)}
	case s.known.Safe != l.Safe:
		s.safe = safeSum(l)
	}
	s.known = *l
	return s
}

// Forgive forgets what has gone wrong: another life of the job begins.
func (s *Lessons) Forgive() {
	if s != nil {
		s.known.Failures, s.known.Kills, s.known.LastDetail, s.known.Suspects = 0, 0, "", nil
	}
}

// Mix adds it to a digest.
func (s *Lessons) Mix(h digest.Hash) digest.Hash {
	l, safe := s.Known(), nothingSafe
	if s != nil {
		safe = s.safe
	}
	h = digest.Numbers(digest.Numbers(h, l.Rates), l.Prepares).Int(int64(l.Prepare), int64(l.Rate), l.Margin, l.MemoryScale,
		int64(l.Failures), int64(l.FailedAt), int64(l.Kills), int64(l.KilledAt), l.Spread, l.Runs)
	h = l.Trust.Mix(l.Peak.Mix(h)).Text(l.LastDetail).Int(int64(len(l.Suspects)))
	for _, s := range l.Suspects {
		h = s.Range.Mix(h).Int(s.Limit)
	}
	if l.Busy != 0 { // as it was before this was learned
		h = h.Int(l.Busy)
	}
	if l.Trials|l.Sampled|int64(l.Start) != 0 { // the same
		h = h.Text("untimed").Int(l.Trials, l.Sampled, int64(l.Start))
	}
	return h.Int(int64(safe))
}

// Profile says where a job's profile is from.
func (s *Lessons) Profile(theta int64) status.Profile {
	l := s.Known()
	p := status.Profile{Source: forecast.Declared, Runs: l.Runs, Spread: l.Spread}
	if _, enough := forecast.Rank(int(p.Runs), theta); enough && p.Runs > 0 {
		p.Source = forecast.Taught
	}
	return p
}
