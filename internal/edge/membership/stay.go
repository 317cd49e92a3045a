package membership

import (
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/internal/core/departure"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/quantity"
)

// Stay is how long a machine says that it belongs to its cluster.
type Stay struct {
	// Ephemeral: it is gone for good once its daemon ends. Else until it is removed.
	Ephemeral bool
	// Until is when it is gone at the latest; zero: nobody knows. With a monotonic reading it was said as a length of time, which counts by
	// any clock; else it is of the head's clock.
	Until time.Time
}

// monotonic reports whether t has a monotonic reading.
func monotonic(t time.Time) bool { return t != t.Round(0) }

// toWire is s as it is sent now; nil of nil.
func (s *Stay) toWire() *pb.Stay {
	switch {
	case s == nil:
		return nil
	case s.Until.IsZero():
		return &pb.Stay{Ephemeral: s.Ephemeral}
	case monotonic(s.Until):
		return &pb.Stay{Ephemeral: s.Ephemeral, Within: durationpb.New(time.Until(s.Until))}
	}
	return &pb.Stay{Ephemeral: s.Ephemeral, Until: timestamppb.New(s.Until)}
}

// By is s by a clock that says now.
func (s *Stay) By(now time.Time) departure.Stay {
	is := departure.Stay{Ephemeral: s.Ephemeral}
	switch {
	case s.Until.IsZero():
	case monotonic(s.Until):
		is.Until = quantity.At(now.Add(time.Until(s.Until)))
	default:
		is.Until = quantity.At(s.Until)
	}
	return is
}

func stayFromWire(m *pb.Stay) departure.Stay {
	s := departure.Stay{Ephemeral: m.GetEphemeral()}
	if m.GetUntil() != nil {
		s.Until = quantity.At(m.GetUntil().AsTime())
	}
	return s
}

// stayOf is what a machine has said, by the head's clock. One that has joined may say an end that is over: what it did by then it has to
// hand over. Errors: Invalid.
func stayOf(m *pb.Stay, joined bool, now time.Time) (departure.Stay, error) {
	s := stayFromWire(m)
	if d := m.GetWithin(); d != nil {
		s.Until = quantity.At(now).Add(d.AsDuration())
	}
	if joined && s.Ephemeral && s.Until != 0 && s.Until <= quantity.At(now) {
		return s, nil
	}
	if err := s.Check(quantity.At(now), 0); err != nil {
		return s, errkind.Errorf(errkind.Invalid, "how long the machine is there: %w", err)
	}
	return s, nil
}
