package home

import (
	"time"

	"sluice.dev/sluice/internal/core/capture"
	"sluice.dev/sluice/internal/core/filing"
	"sluice.dev/sluice/internal/core/gang"
	"sluice.dev/sluice/internal/core/home/claims"
	"sluice.dev/sluice/internal/core/home/record"
	"sluice.dev/sluice/internal/core/home/settle"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/trust"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Config configures a ledger; fields of the same names are explained where they are embedded.
type Config struct {
	Self protocol.Address
	// Gates that jobs come from; none: one.
	Gates protocol.Gates
	// Archive makes finished jobs leave; nil: none does.
	Archive                      *filing.Config
	Retry, AskTTL, Skew, Backoff time.Duration
	MaxKills                     int
	// Ports at which members of gangs may meet; zero: they are told of none.
	Ports gang.Ports
	// Trust is how declarations are compared with observations; nil where nobody bids.
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
	claims *claims.Claimer
	settle *settle.Settler
	lives  lives
}

// New makes a ledger without jobs.
func New(cfg Config, w Watcher, s Supply) *Ledger {
	h := &Ledger{book: record.New(record.Config{
		Self: cfg.Self, Archive: cfg.Archive, Retry: cfg.Retry, Refill: cfg.Refill, PurseTime: cfg.PurseTime,
	}, w, s)}
	h.claims = claims.New(claims.Config{
		Self: cfg.Self, Retry: cfg.Retry, AskTTL: cfg.AskTTL, Skew: cfg.Skew, Backoff: cfg.Backoff, Ports: cfg.Ports,
	}, h.book, w, s)
	h.settle = settle.New(settle.Config{
		Self: cfg.Self, Gates: cfg.Gates, Retry: cfg.Retry, Skew: cfg.Skew, Backoff: cfg.Backoff, MaxKills: cfg.MaxKills, Trust: cfg.Trust,
	}, h.book, h.claims, w, s)
	h.lives = lives{gates: cfg.Gates, book: h.book, settle: h.settle, watch: w, send: h.claims.Send}
	return h
}

// Step handles a message about a job's life, a queue, or a claim.
func (h *Ledger) Step(now quantity.Instant, in *protocol.Message, out *protocol.Out) {
	switch in.Kind {
	case protocol.Leased:
		h.claims.Leased(in, out)
	case protocol.RedeemRefused:
		h.settle.RedeemRefused(now, in, in.Body.(*protocol.Refusal), out)
	case protocol.Running:
		h.claims.Running(now, in, in.Body.(*protocol.Beginning), out)
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

// Book is the durable state, Claims sells, Settle settles what was sold.
func (h *Ledger) Book() *record.Book { return h.book }

// Claims see Book.
func (h *Ledger) Claims() *claims.Claimer { return h.claims }

// Settle see Book.
func (h *Ledger) Settle() *settle.Settler { return h.settle }

// Digest is a hash of the durable state.
func (h *Ledger) Digest() uint64 { return h.book.Digest() }

// Apply folds a fact into the durable state.
func (h *Ledger) Apply(f protocol.Fact) { h.book.Apply(&f) }

// Capture implements capture.Source.
func (h *Ledger) Capture() capture.Run { return h.book.Capture() }

// Kept is how many jobs it has a record of.
func (h *Ledger) Kept() int { return h.book.Kept() }

// Purse is what a queue can still pay, and what it holds when it is full.
func (h *Ledger) Purse(now quantity.Instant, q *Queue) (has, full int64) {
	return h.book.Purses.Left(now, &q.Queue)
}

// Credits is what a queue has.
func (h *Ledger) Credits(now quantity.Instant, q *Queue) int64 {
	return h.book.Purses.Refilled(now, &q.Queue).Credits
}

// What is sold (claims.Claimer says more of each of these).

// Withdraw asks a claim's node to give it up unless it has begun, or is to be moved or ended; it says whether it does.
func (h *Ledger) Withdraw(now quantity.Instant, j *Job, t job.Token, out *protocol.Out) bool {
	asked := h.claims.Withdraw(now, j, t, out)
	if asked {
		h.settle.Arm(j)
	}
	return asked
}

// Avoiding says whether any job leaves a slice to others because of refusals.
func (h *Ledger) Avoiding() bool { return h.book.Agenda.Len(record.Avoiding) > 0 }

// Removed: a slice is there no more.
func (h *Ledger) Removed(id job.SliceID) { h.claims.Delays.Removed(id) }

// LooksAnother: what is offered of a slice is something else than before.
func (h *Ledger) LooksAnother(id job.SliceID) { h.claims.Delays.LooksAnother(id) }

// What becomes of it (settle.Settler says more of each of these).

// Next is when what was asked of nodes, or waits, is to be looked at again.
func (h *Ledger) Next(quantity.Instant) quantity.Instant { return h.settle.Next() }

// Recalls implements protocol.Archivist.
func (h *Ledger) Recalls(m *protocol.Message) (name job.ID, ok bool) { return h.lives.recalls(m) }

// AnswerArchived takes a message about an archived job in; false where it is to be taken in as any other.
func (h *Ledger) AnswerArchived(in *protocol.Message, out *protocol.Out) bool {
	return h.lives.answerArchived(in, out)
}
