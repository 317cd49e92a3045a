// Package finished fills archives with jobs that are over, through the archive's own API: as gate and zone file what ran in one
// piece, was published and is done. Benchmarks of a daemon with a million of them need them sooner than they could run.
package finished

import (
	"context"
	"fmt"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/edge/archive"
)

// Jobs says what the jobs are like.
type Jobs struct {
	// Zone they were at home in; Node and Slice they ran on.
	Zone  job.ZoneID
	Node  job.NodeID
	Slice job.SliceID
	// Specs they have in turn; only the name is filled in.
	Specs []job.Spec
	// Name of job i. The same i is the same job.
	Name func(i int) job.ID
	// They ended over Over before Now, in the order of i.
	Now  quantity.Instant
	Over time.Duration
	// Seed of what is drawn.
	Seed uint64
}

// batch is how many jobs are filed at once.
const batch = 1000

// Fill files n jobs. Nothing else may be in the archive, or it is filed besides. The gate that is to know of them counts them in a
// fact JobArchived with Count n.
func (j *Jobs) Fill(ctx context.Context, a archive.Archive, n int) error {
	parts := make([]archive.Part, 0, 2*batch)
	for i := range n {
		gate, zone, err := j.Parts(i, n)
		if err != nil {
			return err
		}
		if parts = append(parts, gate, zone); len(parts) == cap(parts) || i == n-1 {
			if err := a.File(parts); err != nil {
				return err
			}
			parts = parts[:0]
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// Parts are what gate and zone file of job i of n.
func (j *Jobs) Parts(i, n int) (gate, zone archive.Part, err error) {
	spec := j.Specs[i%len(j.Specs)]
	spec.Name = j.Name(i)
	draw := prng.New(j.Seed, uint64(i))
	ended := j.Now.Add(-j.Over + time.Duration(float64(j.Over)*float64(i)/float64(n)))
	begun := ended.Add(-500 * time.Millisecond)
	asked := begun.Add(-time.Duration(draw.Float64() * float64(time.Minute)))
	verdict := job.Verdict{State: job.Finished}
	gateAddress := protocol.Address{Role: protocol.Gate}
	if gate, err = archive.NewPart(protocol.Gate, spec.Name, 1, []protocol.Fact{
		{
			Kind: protocol.JobAccepted, Actor: gateAddress, Job: spec.Name, Generation: 1, Spec: &spec, Request: "seed-" + string(spec.Name),
			Digest: fmt.Sprintf("%016x%016x%016x%016x", draw.Uint64(), draw.Uint64(), draw.Uint64(), draw.Uint64()), Zone: j.Zone, Epoch: 1, At: asked,
		},
		{Kind: protocol.JobHomed, Actor: gateAddress, Job: spec.Name, Epoch: 1},
		{Kind: protocol.JobClosed, Actor: gateAddress, Job: spec.Name, Verdict: verdict, At: ended},
	}); err != nil {
		return gate, zone, err
	}
	whole, memory := job.Range{From: 0, To: spec.Total}, trp.Vector{8 << 30}
	r := protocol.Record{
		Job: spec.Name, Epoch: 1, Generation: 1, Spec: &spec, Queue: spec.Queue, Submitted: asked, Started: begun, Ended: ended, Served: begun,
		Verdict: verdict, Committed: job.Ranges{whole}, Attained: 8192 * 500,
		Learned: protocol.Learned{Rates: []time.Duration{time.Millisecond}, Rate: time.Millisecond, Margin: 1000, MemoryScale: 1000, Peak: memory},
		Past: []protocol.Past{{
			Claim: protocol.Claim{
				Token: job.Token{Epoch: 1, Seq: uint64(i) + 1}, Generation: 1, Node: j.Node, Slice: j.Slice, Speed: 1000, Range: whole, Start: begun, End: ended.Add(time.Second),
				Demand: memory, Plan: protocol.Plan{Run: time.Second, Wall: time.Second, Window: uint64(i) + 1, Round: uint64(i) + 1}, Asked: begun,
			},
			Committed: whole, Outcome: job.Done, RealStart: begun, RealEnd: ended, Peak: memory, Prepare: 10 * time.Millisecond,
		}},
	}
	zone, err = archive.NewPart(protocol.Zone, spec.Name, 1, []protocol.Fact{{
		Kind: protocol.HomeKept, Actor: protocol.Address{Role: protocol.Zone, ID: string(j.Zone)}, Job: spec.Name, Record: &r,
	}})
	return gate, zone, err
}
