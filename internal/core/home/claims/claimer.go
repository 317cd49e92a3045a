package claims

import (
	"time"

	"sluice.dev/sluice/internal/core/gang"
	"sluice.dev/sluice/internal/core/home/backoff"
	"sluice.dev/sluice/internal/core/home/record"
	"sluice.dev/sluice/internal/core/home/standing"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Config configures a Claimer; fields of the same names are explained where they are embedded.
type Config struct {
	Self                         protocol.Address
	Retry, AskTTL, Skew, Backoff time.Duration
	// Ports at which members of gangs may meet; zero: they are told of none.
	Ports gang.Ports
}

// Supply is what a Claimer asks the owner of the slices.
type Supply interface {
	// Node that offers a slice; nothing if none does.
	Node(id job.SliceID) job.NodeID
	// Address of that node's machine, as it says; nothing if it says none.
	Address(id job.SliceID) string
}

// Claimer sells what jobs have won. Invariant: an unanswered ask counts as taken of its job and its queue until it is removed, and a claim
// is durable before its node is told to redeem it.
type Claimer struct {
	cfg    Config
	book   *record.Book
	watch  record.Watcher
	supply Supply
	asks   asks
	// Delays of jobs that were refused.
	Delays Delays
}

// New makes a Claimer without asks.
func New(cfg Config, b *record.Book, w record.Watcher, s Supply) *Claimer {
	return &Claimer{cfg: cfg, book: b, watch: w, supply: s, Delays: Delays{book: b, watch: w, retry: cfg.Retry, failed: cfg.Backoff}}
}

// Recover notes when this ledger came up.
func (d *Claimer) Recover(now quantity.Instant) { d.asks.since = now }

// Send sends a message in the ledger's name.
func (d *Claimer) Send(out *protocol.Out, m protocol.Message) {
	m.From = d.cfg.Self
	out.Effects = append(out.Effects, m)
}

// Asks are those that are not answered, by id.
func (d *Claimer) Asks() []*Ask { return d.asks.list }

// Expires is when the first of them does; Never if there is none.
func (d *Claimer) Expires() quantity.Instant {
	_, at := d.asks.first()
	return at
}

// NewAsk numbers an ask.
func (d *Claimer) NewAsk() uint64 { return d.asks.number() }

// BackOff notes that a job got no place that it asked for; ask is 0 if that was before the ledger came up. It avoids the slices it
// was refused on, none if what it was refused for is no longer on offer.
func (d *Claimer) BackOff(now quantity.Instant, j *record.Job, on []job.SliceID, ask uint64, text string) {
	d.Delays.refused(now, j, on, ask, d.asks.last, text)
}

// Silent notes that the nodes of a job's claim do not answer.
func (d *Claimer) Silent(now quantity.Instant, j *record.Job, on []job.SliceID, ask uint64) {
	d.BackOff(now, j, on, ask, backoff.Silent)
}

// Node that has a claim of one node.
func Node(c *protocol.Claim) protocol.Address {
	return protocol.Address{Role: protocol.Node, ID: string(c.Node)}
}

// standing finds the job and the claim that an answer of a node is about; nil if the claim no longer stands.
func (d *Claimer) standing(in *protocol.Message) (*record.Job, *standing.ClaimState) {
	if j := d.book.Job(in.Job); j != nil {
		if st := j.ClaimSet().State(in.Token); st != nil {
			return j, st
		}
	}
	return nil, nil
}

// halt is the message that makes a node stop a subjob. One that has ended and is being stored is not hurried.
func halt(now quantity.Instant, j *record.Job, st *standing.ClaimState, why string) *protocol.Halt {
	return &protocol.Halt{Text: why, Now: !st.Stores() && j.Ending().Hurried(now, j.Spec.Launch.Grace)}
}
