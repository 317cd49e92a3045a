package watch

import (
	"sluice.dev/sluice/internal/core/airlock"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
)

// Board is what the watcher tells the daemon: what the machine's memory is like, and what it is doing with each subjob. It says what is,
// not what was done: whoever missed a hundred of them knows all from the next.
type Board struct {
	// Life of the watcher that wrote it.
	Life uint64
	// At is when, by the node's clock.
	At                           quantity.Instant
	Capacity, Used, Growth, Room quantity.Amount
	Stall                        int64
	Level                        airlock.Level
	Stands                       []Stand
}

// Stand is what the watcher knows of one subjob, and does with it.
type Stand struct {
	Token                    job.Token
	Since, Resumed           quantity.Instant
	Resident, Parked, Growth quantity.Amount
	State                    airlock.State
	Entries                  uint8
	// Cause of the last step, 0: there was none.
	Cause airlock.Cause
}

const (
	boardHead  = 8
	standWords = 7
	boardWords = boardHead + airlock.MaxTasks*standWords
)

// encode appends the board's words to room.
func (b *Board) encode(room []uint64) []uint64 {
	w := append(room, b.Life, uint64(b.At), uint64(b.Capacity), uint64(b.Used), uint64(b.Growth), uint64(b.Room), uint64(b.Stall),
		uint64(b.Level))
	for i := range b.Stands[:min(len(b.Stands), airlock.MaxTasks)] {
		s := &b.Stands[i]
		w = append(w, uint64(s.Token.Epoch)|uint64(s.State)<<32|uint64(s.Entries)<<40|uint64(s.Cause)<<48, s.Token.Seq, uint64(s.Since),
			uint64(s.Resumed),
			uint64(s.Resident), uint64(s.Parked), uint64(s.Growth))
	}
	return w
}

// decode reads words into a board, and says whether they are one.
func (b *Board) decode(w []uint64) bool {
	if len(w) < boardHead || (len(w)-boardHead)%standWords != 0 || len(w) > boardWords || w[7] > uint64(airlock.Emergency) {
		return false
	}
	amount := func(i int) quantity.Amount { return quantity.Amount(w[i]) }
	*b = Board{
		Life: w[0], At: quantity.Instant(w[1]), Capacity: amount(2), Used: amount(3), Growth: amount(4), Room: amount(5),
		Stall: int64(w[6]), Level: airlock.Level(w[7]), Stands: b.Stands[:0],
	}
	for w = w[boardHead:]; len(w) > 0; w = w[standWords:] {
		state, cause := w[0]>>32&0xff, w[0]>>48
		s := Stand{
			Token: job.Token{Epoch: uint32(w[0]), Seq: w[1]}, Since: quantity.Instant(w[2]), Resumed: quantity.Instant(w[3]),
			Resident: amount(4), Parked: amount(5), Growth: amount(6), State: airlock.State(state), Entries: uint8(w[0] >> 40),
			Cause: airlock.Cause(cause),
		}
		if state >= airlock.States || cause >= airlock.Causes || s.Resident < 0 || s.Parked < 0 ||
			len(b.Stands) > 0 && b.Stands[len(b.Stands)-1].Token.Compare(s.Token) >= 0 {
			b.Stands = b.Stands[:0]
			return false
		}
		b.Stands = append(b.Stands, s)
	}
	return true
}

// Of is what the board says of a subjob; false: nothing.
func (b *Board) Of(t job.Token) (*Stand, bool) {
	low, high := 0, len(b.Stands)
	for low < high {
		if mid := (low + high) / 2; b.Stands[mid].Token.Compare(t) < 0 {
			low = mid + 1
		} else {
			high = mid
		}
	}
	if low < len(b.Stands) && b.Stands[low].Token == t {
		return &b.Stands[low], true
	}
	return nil, false
}
