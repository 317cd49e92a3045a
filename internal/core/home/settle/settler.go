// Package settle ends claims and their jobs: it handles results, gives up the claims of silent nodes, follows output to its place, gives
// verdicts, and records lessons.
package settle

import (
	"fmt"
	"time"

	"sluice.dev/sluice/internal/core/home/claims"
	"sluice.dev/sluice/internal/core/home/learn"
	"sluice.dev/sluice/internal/core/home/record"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/trust"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Config configures a Settler; fields of the same names are explained where they are embedded.
type Config struct {
	Self                 protocol.Address
	Gates                protocol.Gates
	Retry, Skew, Backoff time.Duration
	MaxKills             int
	// Trust is how declarations are compared with observations; nil where nobody bids.
	Trust *trust.Settings
}

// Supply is what a Settler asks the owner of the slices.
type Supply interface {
	learn.Slices
	// Barred says that a slice's node does not offer it at the moment; false if the slice is not known.
	Barred(id job.SliceID) bool
	// Beyond says why no slice that there is could ever run what is left of a job; empty if one could.
	Beyond(j *record.Job) string
}

// Settler settles claims and ends jobs. Invariant: a job gets its verdict when no claim of it stands, and COMPLETED only when all of its
// output is known to be in its place; each job that something of is awaited has an alarm for when that is looked at again.
type Settler struct {
	cfg    Config
	book   *record.Book
	claims *claims.Claimer
	watch  record.Watcher
	supply Supply
	pauses pauses
}

// New makes a Settler.
func New(cfg Config, b *record.Book, c *claims.Claimer, w record.Watcher, s Supply) *Settler {
	return &Settler{cfg: cfg, book: b, claims: c, watch: w, supply: s}
}

const (
	// longQuiet is how long a home may have had no step before it takes it that it was paused. It is well under the skew, so a claim whose
	// end fell into a pause that is too short to be noticed has the rest of its skew.
	longQuiet = 3 * time.Second
	// mostHearing is how long after a pause no claim is given up. It is under longQuiet, else a home that has only this to wait for would
	// wait again.
	mostHearing = 2 * time.Second
)

// pauses notes when the daemon was away (SIGSTOP, a machine that was frozen), so that nodes report first after that: ends in time meanwhile
// are reported in a moment, and a node is not silent merely by the clock. A home that was idle because there was nothing to do waits as
// long, which harms nobody.
type pauses struct {
	// since is when this ledger came up: a node gets the time to report before its claims are given up. stepped is when the latest step
	// was, hearing until when no claim is given up after a pause.
	since, stepped, hearing quantity.Instant
}

func (p *pauses) step(now quantity.Instant) {
	if now > p.stepped.Add(longQuiet) {
		p.hearing = now.Add(mostHearing)
	}
	p.stepped = now
}

// acknowledge tells a node how much of a subjob counts.
func (d *Settler) acknowledge(node protocol.Address, id job.ID, t job.Token, done job.Range, out *protocol.Out) {
	counts := out.Acknowledgements.Keep(protocol.Acknowledgement{Range: done})
	d.claims.Send(out, protocol.Message{Kind: protocol.ResultAck, To: node, Token: t, Job: id, Body: counts})
}

// Surrendered sends the record of a job that is given up to another zone and has nothing outstanding. It is sent again on request.
func (d *Settler) Surrendered(j *record.Job, out *protocol.Out) {
	if j.AtRest() {
		d.claims.Send(out, protocol.Message{
			Kind: protocol.Surrendered, To: d.cfg.Gates.Of(j.ID), Job: j.ID, Epoch: j.Epoch, Generation: j.Generation, Body: j.Record(),
		})
	}
}

// Hopeless is why a job can not go on, empty if it can.
func (d *Settler) Hopeless(j *record.Job) string {
	l := j.Learned()
	last := l.LastDetail
	if last != "" {
		last = ": " + last
	}
	if l.Failures == 1 && j.Spec.MaxFailures <= 1 {
		return "its subjob ended without progress" + last
	}
	if l.Failures >= max(1, j.Spec.MaxFailures) {
		return fmt.Sprintf("%d times in a row its subjobs ended without progress%s", l.Failures, last)
	}
	if l.Kills >= max(d.cfg.MaxKills, j.Spec.MaxFailures) {
		return fmt.Sprintf("%d times in a row its subjobs were ended from outside%s", l.Kills, last)
	}
	for _, bad := range l.Suspects {
		if bad.Limit < 0 {
			return fmt.Sprintf("%s fails whenever it runs alone%s", j.Spec.Called(bad.Range.From), last)
		}
	}
	if bad, most := j.Progress().Bad(), max(16, j.Spec.Total/100); bad > most {
		return fmt.Sprintf("%d %ss were bad, more than the %d that may be skipped%s", bad, j.Spec.UnitName(), most, last)
	}
	return d.supply.Beyond(j)
}
