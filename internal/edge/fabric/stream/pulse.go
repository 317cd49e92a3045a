package stream

import (
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
)

// looks is how many of the last measurements the best is taken of.
const looks = 8

// pulse makes the beats of one side, and measures by those of the other as NTP does (RFC 5905, section 8): a beat carries when it was sent,
// and of the last one heard when that was sent and how long ago it came.
type pulse struct {
	mu    sync.Mutex
	heard time.Time // the last frame of the other side
	beat  time.Time // the last beat of the other side: when it came, and what its sender's clock said
	sent  time.Time
	trips []trip // the last of them, oldest first
	// measured gets each measurement: what the other side's clock says now, and how long the way there and back took; nil: nobody.
	measured func(other time.Time, round time.Duration)
}

// trip is one measurement.
type trip struct{ round, offset time.Duration }

// next is the beat to send now.
func (p *pulse) next(now time.Time) *pb.Beat {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := &pb.Beat{Sent: timestamppb.New(now)}
	if !p.beat.IsZero() {
		b.Heard, b.Ago = timestamppb.New(p.sent), durationpb.New(now.Sub(p.beat))
	}
	return b
}

// frame notes that the other side lives.
func (p *pulse) frame(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.heard = now
}

// silent is for how long nothing was heard.
func (p *pulse) silent(now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return now.Sub(p.heard)
}

// hear takes a beat of the other side.
func (p *pulse) hear(now time.Time, b *pb.Beat) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.beat, p.sent = now, b.GetSent().AsTime()
	if b.GetHeard() == nil {
		return
	}
	// What this side's clock said when it sent the beat that the other side answers; the answer took the rest, but for what the other
	// side waited.
	began := b.GetHeard().AsTime()
	round := now.Sub(began) - b.GetAgo().AsDuration()
	if round < 0 {
		return // a clock was set meanwhile
	}
	if p.measured != nil {
		p.measured(p.sent.Add(round/2), round)
	}
	p.trips = append(p.trips, trip{round: round, offset: p.sent.Sub(now.Add(-round / 2))})
	if len(p.trips) > looks {
		p.trips = slices.Delete(p.trips, 0, 1)
	}
}

// best is the measurement with the shortest way, which says most about the clocks.
func (p *pulse) best() (t trip, last time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.trips) == 0 {
		return trip{}, p.heard
	}
	return slices.MinFunc(p.trips, func(a, b trip) int { return int(a.round - b.round) }), p.heard
}
