// Package slurm lends batch jobs of a Slurm cluster as machines: a provider that works as an ordinary user, by sbatch, squeue, scontrol and
// scancel, or through slurmrestd (cluster). What Slurm does and what follows for this is in docs/slurm.md; the parts that are easily got
// wrong:
//
// A job's name says whose pilot it is; ids are given again after a crash. Lengths are asked for whole: of a range (--time-min) the backfill
// pass gives the least. A job is told nothing of its preemption, so its moved end is seen here. Commands end with 0 after some errors.
package slurm

import (
	"context"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/provider"
)

// Step is Slurm's unit of a length.
const Step = time.Minute

// maxIDs is how many jobs one call names.
const maxIDs = 100

// Open makes one; it asks nothing yet. Errors: Invalid with all that is wrong, Unsupported where Slurm's commands are not there, Denied
// where others may read the folder of tokens.
func Open(o Options) (*Slurm, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	s := &Slurm{o: o, now: time.Now, moved: map[moved]bool{}}
	var err error
	if o.REST != nil {
		s.cluster, err = openRestful(o)
	} else {
		s.cluster, err = openCommands(o)
	}
	if err != nil {
		return nil, err
	}
	if o.Dir != "" {
		if err := s.openTokens(); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Describe implements provider.Provider.
func (s *Slurm) Describe() string {
	text := "slurm: partition " + s.o.Partition
	if s.o.REST != nil {
		text = "slurm at " + s.o.REST.URL + ": partition " + s.o.Partition
	}
	for _, part := range []string{s.o.Gres, s.o.Constraint, s.o.Reservation} {
		if part != "" {
			text += ", " + part
		}
	}
	return text
}

// Close implements provider.Provider. Pilots go on.
func (s *Slurm) Close() error { return nil }

// Look implements provider.Provider: the queue, nodes and reservations; and once each end that was moved.
func (s *Slurm) Look(ctx context.Context) (provider.Look, error) {
	rows, err := s.cluster.queue(ctx)
	if err != nil {
		return provider.Look{}, err
	}
	seen, err := s.seen(rows)
	if err != nil {
		return provider.Look{}, err
	}
	if err = s.preempted(ctx, seen, rows); err != nil {
		return provider.Look{}, err
	}
	strangers := s.strangers(rows)
	now := s.now().UTC().Truncate(time.Second)
	s.waits(now, strangers)
	s.wanted(now, seen, rows, strangers)
	gaps, blind, err := s.gaps(ctx, rows, strangers)
	if err != nil {
		return provider.Look{}, err
	}
	s.tidy(seen)
	return provider.Look{Seen: seen, Gaps: gaps, Blind: blind}, nil
}

// preempted marks the pilots that Slurm takes back. A queue shows that only by an end before the limit, which a user or an administrator
// may have set as well: so each end of one that runs is asked about, once. What is ending stays as it was; how it ended says its state, but
// not of one that left by itself when it was told by the user signal.
func (s *Slurm) preempted(ctx context.Context, seen []provider.Seen, rows []row) error {
	limits := map[string]time.Duration{}
	for _, r := range rows {
		limits[r.id] = r.limit
	}
	s.mu.Lock()
	known := s.moved
	s.mu.Unlock()
	now := map[moved]bool{}
	var ask []moved
	for i := range seen {
		p := &seen[i]
		m := moved{p.ID, p.Began, p.End}
		switch {
		case p.State == provider.Ending:
			for k, taken := range known {
				if k.id == m.id && k.start.Equal(m.start) {
					now[k] = taken
				}
			}
		case p.State != provider.Running && !(s.o.UserSignal && p.State == provider.Ended && !p.Failed && !p.Preempted), limits[p.ID] == 0,
			m.start.IsZero(), m.end.IsZero(), !m.end.Before(m.start.Add(limits[p.ID])):
		default:
			taken, asked := known[m]
			if now[m] = taken; !asked {
				ask = append(ask, m)
			}
		}
	}
	ids := make([]string, len(ask))
	for i, m := range ask {
		ids[i] = m.id
	}
	at, err := s.cluster.preempted(ctx, ids, rows)
	if err != nil {
		return err
	}
	for _, m := range ask {
		now[m] = !at[m.id].IsZero()
	}
	for m, taken := range now {
		for i := range seen {
			if p := &seen[i]; p.ID == m.id && p.Began.Equal(m.start) && (p.State == provider.Ending || p.End.Equal(m.end)) {
				p.Preempted = p.Preempted || taken
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.moved = now
	return nil
}

// sound checks a pilot before it is asked for. Slurm takes one that is longer than its partition allows, also in a trial, and leaves it
// waiting for ever.
func (s *Slurm) sound(ctx context.Context, p provider.Pilot) error {
	if err := p.Check(Step); err != nil {
		return err
	}
	most, err := s.partition(ctx)
	if err == nil && most > 0 && p.Length > most {
		err = errkind.Errorf(errkind.Invalid, "slurm: partition %s takes jobs of at most %v, and one of %v would wait for ever",
			s.o.Partition, most, p.Length)
	}
	return err
}

// Submit implements provider.Provider.
func (s *Slurm) Submit(ctx context.Context, p provider.Pilot) error {
	if err := s.sound(ctx, p); err != nil {
		return err
	}
	token := p.Token
	var tokenFile, logFile string
	if s.o.Dir != "" {
		if err := s.putToken(p.Name, p.Token); err != nil {
			return err
		}
		token, tokenFile, logFile = "", s.path(p.Name, tokenSuffix), s.path(p.Name, logSuffix)
	}
	err := s.cluster.submit(ctx, order{p, s.o.prefix() + p.Name, s.script(p, tokenFile, logFile), token})
	if err != nil && errkind.Of(err) != errkind.Unavailable { // otherwise it may be there
		s.dropToken(p.Name)
	}
	return err
}

// Cancel implements provider.Provider. Slurm gets the ids of a fresh look, and the name with them: an id may be another job's by then.
func (s *Slurm) Cancel(ctx context.Context, names []string) error {
	if len(names) == 0 {
		return nil
	}
	rows, err := s.cluster.queue(ctx)
	if err != nil {
		return err
	}
	seen, err := s.seen(rows)
	if err != nil {
		return err
	}
	ids := map[string][]string{}
	for _, p := range seen {
		if p.State == provider.Waiting || p.State == provider.Running {
			ids[p.Name] = append(ids[p.Name], p.ID)
		}
	}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		for part := range slices.Chunk(ids[name], maxIDs) {
			if err := s.cluster.end(ctx, s.o.prefix()+name, part); err != nil {
				return err
			}
		}
		s.dropToken(name) // also of one that Slurm has lost, and may bring back
	}
	return nil
}

// Try implements provider.Provider.
func (s *Slurm) Try(ctx context.Context, p provider.Pilot) (t provider.Trial, err error) {
	if err = p.Check(Step); err != nil {
		return t, err
	}
	o := order{p, s.o.prefix() + p.Name, s.script(p, "", ""), ""}
	if err = s.sound(ctx, p); err != nil {
		if errkind.Of(err) == errkind.Unavailable {
			return t, err
		}
		t.Command, t.Why = s.cluster.words(o), err.Error()
		return t, nil
	}
	return s.cluster.try(ctx, o)
}
