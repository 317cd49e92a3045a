package home

import (
	"time"

	"sluice.dev/sluice/internal/core/capture"
	"sluice.dev/sluice/internal/core/filing"
	"sluice.dev/sluice/internal/core/home/claims"
	"sluice.dev/sluice/internal/core/home/record"
	"sluice.dev/sluice/internal/core/home/settle"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/trust"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/core/trp"
)

// Config is the configuration of a ledger; what its fields mean is said of those of the same names where it is embedded.
type Config struct {
	Self protocol.Address
	// Gates that jobs come from; none: one.
	Gates protocol.Gates
	// Archive has jobs that are over leave; nil: none does.
	Archive                      *filing.Config
	Retry, AskTTL, Skew, Backoff time.Duration
	MaxKills                     int
	// Trust is how declarations are held against what was observed; nil where nobody bids.
	Trust *trust.Settings
	// Refill is how many credits of each slice are shared out in PurseTime.
	Refill    int64
	PurseTime time.Duration
}

// Supply is what a ledger asks the owner of the slices.
type Supply interface {
	// Slices is how many there are.
	Slices() int
	claims.Supply
	settle.Supply
}

// Ledger has the jobs that are at home in one place. Invariant: its parts share the book, which alone keeps what is durable, and change it
// by facts. It is not safe for concurrent use.
type Ledger struct {
	book   *record.Book
	claims *claims.Desk
	settle *settle.Desk
	lives  lives
}

// New makes a ledger without jobs.
func New(cfg Config, w Watcher, s Supply) *Ledger {
	h := &Ledger{book: record.New(record.Config{
		Self: cfg.Self, Archive: cfg.Archive, Retry: cfg.Retry, Refill: cfg.Refill, PurseTime: cfg.PurseTime,
	}, w, s)}
	h.claims = claims.New(claims.Config{Self: cfg.Self, Retry: cfg.Retry, AskTTL: cfg.AskTTL, Backoff: cfg.Backoff}, h.book, w, s)
	h.settle = settle.New(settle.Config{
		Self: cfg.Self, Gates: cfg.Gates, Retry: cfg.Retry, Skew: cfg.Skew, Backoff: cfg.Backoff, MaxKills: cfg.MaxKills, Trust: cfg.Trust,
	}, h.book, h.claims, w, s)
	h.lives = lives{gates: cfg.Gates, book: h.book, settle: h.settle, watch: w, send: h.claims.Send}
	return h
}

// Step takes in a message about a job's life, a queue, or what was sold.
func (h *Ledger) Step(now quantity.Instant, in *protocol.Message, out *protocol.Out) {
	switch in.Kind {
	case protocol.Leased:
		h.claims.Leased(in, out)
	case protocol.RedeemRefused:
		h.settle.RedeemRefused(now, in, in.Body.(*protocol.Refusal), out)
	case protocol.Running:
		h.claims.Running(in, in.Body.(*protocol.Beginning), out)
	case protocol.Report:
		if o := in.Body.(*protocol.Observation); o.Remains {
			h.settle.Remains(now, in, out)
		} else {
			h.claims.Report(now, in, o, out)
		}
	case protocol.Extended:
		h.claims.Extended(in, in.Body.(*protocol.Extension))
	case protocol.Result:
		h.settle.Result(now, in, in.Body.(*protocol.Conclusion), out)
	case protocol.Published:
		h.settle.Published(now, in, out)
	default:
		h.lives.step(now, in, out)
	}
}

// Recover is called once, after the last fact: everything outstanding is to be sent again.
func (h *Ledger) Recover(now quantity.Instant, out *protocol.Out) {
	h.book.List()
	h.claims.Recover(now)
	h.settle.Recover(now, out)
}

// The durable state (record.Book).

// Book is the durable state.
func (h *Ledger) Book() *record.Book { return h.book }

// Asks are those that are not answered, by id.
func (h *Ledger) Asks() []*Ask { return h.claims.Asks() }

// Digest is a hash of the durable state.
func (h *Ledger) Digest() uint64 { return h.book.Digest() }

// Apply folds a fact into the durable state.
func (h *Ledger) Apply(f protocol.Fact) { h.book.Apply(&f) }

// Capture implements capture.Source.
func (h *Ledger) Capture() capture.Run { return h.book.Capture() }

// Job of a name; nil if it is not here.
func (h *Ledger) Job(id job.ID) *Job { return h.book.Job(id) }

// Outsider is a job that is not at home here, for one question about it.
func (h *Ledger) Outsider(r *protocol.Record) *Job { return h.book.Outsider(r) }

// Kept is how many jobs it has a record of.
func (h *Ledger) Kept() int { return h.book.Kept() }

// Busy are the jobs with claims.
func (h *Ledger) Busy() []*Job { return h.book.Busy() }

// Waiting is how many jobs wait for their first start or their next window.
func (h *Ledger) Waiting() int { return h.book.Waiting() }

// Newest are the newest jobs that match a query, the oldest of them first, and how many more do.
func (h *Ledger) Newest(q status.JobQuery) (found []*Job, older int) { return h.book.Newest(q) }

// Queues are all queues, by name, with their jobs counted.
func (h *Ledger) Queues() []*Queue { return h.book.Queues() }

// ChangedIn marks all jobs of a queue as possibly eligible.
func (h *Ledger) ChangedIn(q *Queue) { h.book.ChangedIn(q) }

// Purse is what a queue can still pay, and what it holds when it is full.
func (h *Ledger) Purse(now quantity.Instant, q *Queue) (has, full int64) {
	return h.book.Purses.Left(now, &q.Queue)
}

// Credits is what a queue has.
func (h *Ledger) Credits(now quantity.Instant, q *Queue) int64 {
	return h.book.Purses.Refilled(now, &q.Queue).Credits
}

// What is sold (claims.Desk says more of each of these).

// Send sends a message in the ledger's name.
func (h *Ledger) Send(out *protocol.Out, m protocol.Message) { h.claims.Send(out, m) }

// NewAsk numbers an ask.
func (h *Ledger) NewAsk() uint64 { return h.claims.NewAsk() }

// TakeAsk removes an unanswered ask; nil if it is unknown.
func (h *Ledger) TakeAsk(id uint64) *Ask { return h.claims.TakeAsk(id) }

// Lapsed is the id of an ask that nobody has answered in time; 0 if there is none.
func (h *Ledger) Lapsed(now quantity.Instant) uint64 { return h.claims.Lapsed(now) }

// Abort gives up what nodes hold for an ask that comes to nothing.
func (h *Ledger) Abort(a *Ask, out *protocol.Out) { h.claims.Abort(a, out) }

// Ask has something asked of the node that offers its slice: the first of the five steps.
func (h *Ledger) Ask(now quantity.Instant, a *Ask, reservation uint64, out *protocol.Out) {
	h.claims.Ask(now, a, reservation, out)
}

// Prepared notes that one more node holds for a gang, and asks the next; false once all do.
func (h *Ledger) Prepared(in *protocol.Message, g *protocol.Grant, now quantity.Instant, out *protocol.Out) bool {
	return h.claims.Prepared(in, g, now, out)
}

// Granted turns a grant into a claim, the second of the five steps.
func (h *Ledger) Granted(now quantity.Instant, a *Ask, in *protocol.Message, g *protocol.Grant, out *protocol.Out) bool {
	return h.claims.Granted(now, a, in, g, out)
}

// Claim turns a place that a ticket has found into a claim.
func (h *Ledger) Claim(now quantity.Instant, a *Ask, t job.Token, out *protocol.Out) bool {
	return h.claims.Claim(now, a, t, out)
}

// Extend claims the longer range first, then asks the node to move the lease's end.
func (h *Ledger) Extend(
	now quantity.Instant, j *Job, c *protocol.Claim, l *Lease, r job.Range, end quantity.Instant, peak trp.Peak, out *protocol.Out,
) {
	h.claims.Extend(now, j, c, l, r, end, peak, out)
}

// NotExtended: the node has not moved the lease's end, so the claim is again what it was.
func (h *Ledger) NotExtended(in *protocol.Message, r *protocol.Refusal, out *protocol.Out) {
	h.claims.NotExtended(in, r, out)
}

// Withdraw asks a claim's node to give it up unless it has begun, or is to be moved or ended; it says whether it does.
func (h *Ledger) Withdraw(now quantity.Instant, j *Job, t job.Token, out *protocol.Out) bool {
	asked := h.claims.Withdraw(now, j, t, out)
	if asked {
		h.settle.Arm(j)
	}
	return asked
}

// BackOff notes that a job got no place that it asked for under a number, on these slices.
func (h *Ledger) BackOff(now quantity.Instant, j *Job, on []job.SliceID, ask uint64, text string) {
	h.claims.BackOff(now, j, on, ask, text)
}

// Avoiding says whether any job leaves a slice to others because of refusals.
func (h *Ledger) Avoiding() bool { return h.book.Agenda.Len(record.Avoiding) > 0 }

// LooksAnother: what is on offer of a slice is something else than before.
func (h *Ledger) LooksAnother(id job.SliceID) { h.claims.Delays.Offered(id) }

// What becomes of it (settle.Desk says more of each of these).

// Overdue does what is due, and returns when to look again.
func (h *Ledger) Overdue(now quantity.Instant, out *protocol.Out) quantity.Instant {
	return h.settle.Overdue(now, out)
}

// Next is when what was asked of nodes, or waits, is to be looked at again.
func (h *Ledger) Next(quantity.Instant) quantity.Instant { return h.settle.Next() }

// Closes is when a job that waits for nothing but its output to be in its place is over without it.
func (h *Ledger) Closes(j *Job) quantity.Instant { return h.settle.Closes(j) }

// Continue has try look at every running subjob that bids for the window behind its own by now. It returns when to look again.
func (h *Ledger) Continue(now quantity.Instant, try func(j *Job, c *protocol.Claim, l *Lease)) quantity.Instant {
	return h.settle.Continue(now, try)
}

// Expire ends a job that is worth nothing any more.
func (h *Ledger) Expire(now quantity.Instant, j *Job, why string, out *protocol.Out) {
	h.settle.Expire(now, j, why, out)
}

// Recalls implements protocol.Archivist.
func (h *Ledger) Recalls(m *protocol.Message) (name job.ID, ok bool) { return h.lives.recalls(m) }

// AnswerArchived takes a message about an archived job in; false where it is to be taken in as any other.
func (h *Ledger) AnswerArchived(in *protocol.Message, out *protocol.Out) bool {
	return h.lives.answerArchived(in, out)
}
