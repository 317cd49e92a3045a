package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/edge/journal"
	"sluice.dev/sluice/internal/edge/journal/local"
	"sluice.dev/sluice/internal/edge/wire"
)

// seeds are the jobs that a journal or an actor is filled with: facts as the gate and the zone write them, in order of names, as
// a snapshot has them. They were submitted over the day before now, in no order.
type seeds struct {
	// set names the jobs apart from those of other seeds.
	set               string
	waiting, finished int
	zone              job.ZoneID
	now               quantity.Instant
}

// each hands over the facts of one waiting job after the other. The slice is reused.
func (s *seeds) each(to func([]protocol.Fact) error) error {
	all, err := specs()
	if err != nil {
		return err
	}
	var facts []protocol.Fact
	for i, name := range names(s.set, s.waiting) {
		facts = s.accepted(facts[:0], job.ID(name), &all[i%len(all)], i)
		if err := to(facts); err != nil {
			return err
		}
	}
	return nil
}

// accepted is a job that waits: taken by the gate, taken home by the zone, confirmed.
func (s *seeds) accepted(facts []protocol.Fact, name job.ID, spec *job.Spec, i int) []protocol.Fact {
	gate, zone := protocol.Address{Role: protocol.Gate}, protocol.Address{Role: protocol.Zone, ID: string(s.zone)}
	draw := prng.New(seed, 3, uint64(i))
	at := s.now.Add(-time.Second - time.Duration(draw.Float64()*float64(24*time.Hour)))
	return append(facts,
		protocol.Fact{Kind: protocol.JobAccepted, Actor: gate, Job: name, Epoch: 1, Generation: 1, At: at,
			Body: &protocol.Acceptance{Spec: spec, Request: "seed-" + string(name), Digest: fmt.Sprintf("%016x%016x", draw.Uint64(),
				draw.Uint64()), Zone: s.zone}},
		protocol.Fact{Kind: protocol.HomeTaken, Actor: zone, Job: name, Epoch: 1, Generation: 1, At: at,
			Body: &protocol.Taking{Spec: spec}},
		protocol.Fact{Kind: protocol.JobHomed, Actor: gate, Job: name, Epoch: 1},
	)
}

// completed is a job that ran in one piece, was published and is over, and whose verdict the gate has.
func (s *seeds) completed(facts []protocol.Fact, name job.ID, spec *job.Spec, i int) []protocol.Fact {
	facts = s.accepted(facts, name, spec, i)
	gate, zone := facts[0].Actor, facts[1].Actor
	begin, whole := facts[0].At, job.Range{From: 0, To: spec.Total}
	end := begin.Add(500 * time.Millisecond)
	token := job.Token{Epoch: 1, Seq: uint64(i) + 1}
	memory := trp.Vector{8 << 30}
	result := &job.Result{Outcome: job.Done, Progress: spec.Total, Start: begin, End: end, Peak: memory, Prepare: 10 * time.Millisecond}
	plan := protocol.Plan{Run: 500 * time.Millisecond, Wall: 500 * time.Millisecond, Window: uint64(i) + 1, Round: uint64(i) + 1}
	verdict := job.Verdict{State: job.Finished}
	return append(facts,
		protocol.Fact{Kind: protocol.Claimed, Actor: zone, Job: name, Epoch: 1, Generation: 1, Token: token, At: begin,
			Body: &protocol.Sale{Placement: protocol.Placement{Slice: "seed/gpu0", Range: whole, Start: begin, End: end.Add(time.Second),
				Demand: memory, Plan: plan}, Node: "seed", Speed: 1000}},
		protocol.Fact{Kind: protocol.Committed, Actor: zone, Job: name, Token: token, At: end,
			Body: &protocol.ClaimEnd{Range: whole, Result: result}},
		protocol.Fact{Kind: protocol.OutputPublished, Actor: zone, Job: name, Token: token},
		protocol.Fact{Kind: protocol.Ended, Actor: zone, Job: name, At: end, Body: &protocol.Final{Verdict: verdict}},
		protocol.Fact{Kind: protocol.JobClosed, Actor: gate, Job: name, At: end, Body: &protocol.Final{Verdict: verdict}},
	)
}

// seedRecord is how much is put into one record, in bytes. A step's facts are a record each in a journal that a daemon wrote;
// larger ones are written faster. There are enough of them that the daemon's first start ends with a snapshot, from which the
// restart is then measured.
const seedRecord = 4 << 10

// write appends the seeds to the journal and the archive of a data directory, which a daemon has begun and which nobody has open.
func (s *seeds) write(ctx context.Context, data string) (err error) {
	dir := filepath.Join(data, "journal")
	j, err := local.Open(dir, local.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	look := func(f protocol.Fact) error { //nolint:unparam // DecodeFacts takes one that may fail
		if f.Actor.Role == protocol.Zone {
			s.zone = job.ZoneID(f.Actor.ID)
		}
		return nil
	}
	if _, err = j.Replay(
		func(state io.Reader) error { return wire.ReadFacts(state, look) },
		func(_ journal.Position, data []byte) error { return wire.DecodeFacts(data, look) },
	); err != nil {
		return err
	}
	if s.zone == "" {
		return fmt.Errorf("the journal in %s does not name its zone: start a daemon on it once, with queues", dir)
	}
	var batch [][]byte
	size := 0
	var record []byte
	flush := func() error {
		if len(record) > 0 {
			batch, record = append(batch, record), nil
		}
		_, failed := j.Append(batch)
		batch, size = nil, 0
		return errors.Join(failed, ctx.Err())
	}
	take := func(facts []protocol.Fact) error {
		before := len(record)
		record = wire.AppendFacts(record, facts)
		size += len(record) - before
		if len(record) >= seedRecord {
			batch, record = append(batch, record), nil
		}
		if size >= journal.MaxBatch/2 {
			return flush()
		}
		return nil
	}
	over, err := s.archive(ctx, filepath.Join(data, "archive"))
	if err == nil {
		err = take(over)
	}
	if err == nil {
		err = s.each(take)
	}
	return errors.Join(err, flush())
}
