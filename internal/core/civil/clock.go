// Package civil repeats time by the clock on a wall: at 08:00, also after the zone's clocks have changed.
//
// It knows no time zone and reads no file. A Clock is what a zone's clocks showed and will show, as data that the edge fills in
// (edge/timezone). All values can be compared, and mean the same on every machine and in every version, whatever time zone database
// these have.
package civil

import (
	"iter"
	"math"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/quantity"
)

const day = 24 * time.Hour

// MaxChanges bounds a clock: it is in every copy of a reservation.
const MaxChanges = 1024

// maxOffset bounds what a clock may be off UTC.
const maxOffset = day

// Change is an instant from which a clock is off UTC by Offset, ahead of it if that is positive.
type Change struct {
	At     quantity.Instant
	Offset time.Duration
}

// Clock is the changes of a zone's clocks, packed. Before the second change the first offset holds, after the last one the last for good.
// The zero value is UTC.
type Clock string

// entry is how many bytes a change takes: whole seconds of its instant and of its offset, big-endian.
const entry = 12

// Pack makes a clock of changes in order of time. The instant of the first does not count.
func Pack(changes []Change) Clock {
	b := make([]byte, 0, entry*len(changes))
	for _, c := range changes {
		b = big(b, int64(c.At)/int64(time.Second), 8)
		b = big(b, int64(c.Offset/time.Second), 4)
	}
	return Clock(b)
}

// big appends the lowest bytes of a number, the highest of them first.
func big(b []byte, n int64, size int) []byte {
	for k := size - 1; k >= 0; k-- {
		b = append(b, byte(n>>(8*k)))
	}
	return b
}

// count is how many changes there are.
func (c Clock) count() int { return len(c) / entry }

// at is when change k takes effect, Never if there is none.
func (c Clock) at(k int) quantity.Instant {
	if k >= c.count() {
		return quantity.Never
	}
	v := int64(0)
	for i := range 8 {
		v = v<<8 | int64(c[k*entry+i])
	}
	const most = math.MaxInt64 / int64(time.Second)
	return quantity.Instant(min(max(v, -most), most) * int64(time.Second))
}

// offset is what holds from change k on.
func (c Clock) offset(k int) time.Duration {
	if k >= c.count() {
		return 0
	}
	v := int32(0)
	for i := 8; i < entry; i++ {
		v = v<<8 | int32(c[k*entry+i])
	}
	return time.Duration(v) * time.Second
}

// last is the change that holds at an instant: 0 before all.
func (c Clock) last(at quantity.Instant) int {
	low, high := 0, max(0, c.count()-1) // changes up to low have been, those after high have not
	for low < high {
		if mid := (low + high + 1) / 2; c.at(mid) <= at {
			low = mid
		} else {
			high = mid - 1
		}
	}
	return low
}

// Offset is what the clock is off UTC at an instant.
func (c Clock) Offset(at quantity.Instant) time.Duration { return c.offset(c.last(at)) }

// Changes are those of the clock, in order of time.
func (c Clock) Changes() iter.Seq[Change] {
	return func(yield func(Change) bool) {
		for k := range c.count() {
			if !yield(Change{At: c.at(k), Offset: c.offset(k)}) {
				return
			}
		}
	}
}

// wall is a time on the wall: the instant at which a clock in UTC shows it.
type wall = quantity.Instant

// shows is what the clock shows at an instant.
func (c Clock) shows(at quantity.Instant) wall { return at.Add(c.Offset(at)) }

// instant is when the clock shows w: the first time, if it does so twice. A time that is skipped is as long after the last instant before
// the change as it is after what the clock showed there: 02:30 is 03:30 where 03:00 follows 02:00.
func (c Clock) instant(w wall) quantity.Instant {
	k := c.last(w.Add(-maxOffset))
	for ; ; k++ {
		if t := w.Add(-c.offset(k)); t < c.at(k+1) || k+1 >= c.count() {
			if k > 0 && t < c.at(k) {
				return w.Add(-c.offset(k - 1))
			}
			return t
		}
	}
}

// check returns what is wrong with a clock that came from elsewhere.
func (c Clock) check() error {
	if len(c)%entry != 0 || c.count() > MaxChanges {
		return errkind.Errorf(errkind.Invalid, "its clock has %d bytes; want a multiple of %d, at most %d", len(c), entry, entry*MaxChanges)
	}
	for k := range c.count() {
		if o := c.offset(k); o < -maxOffset || o > maxOffset {
			return errkind.Errorf(errkind.Invalid, "its clock is off UTC by %v; want at most %v", o, maxOffset)
		}
		if k > 0 && max(c.offset(k)-c.offset(k-1), c.offset(k-1)-c.offset(k)) > day {
			return errkind.Errorf(errkind.Invalid, "its clock jumps by more than a day, from %v off UTC to %v", c.offset(k-1), c.offset(k))
		}
		if k > 1 && c.at(k) <= c.at(k-1) {
			return errkind.Errorf(errkind.Invalid, "its clock changes at %d, not after %d", c.at(k), c.at(k-1))
		}
	}
	return nil
}
