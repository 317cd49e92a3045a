package picture

import (
	"reflect"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/timestamppb"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
)

// toWire is what the API does, written again for the test.
func toWire(h status.History) *pb.HistoryResponse {
	stamp := func(t quantity.Instant) *timestamppb.Timestamp {
		if t == 0 || t == quantity.Never {
			return nil
		}
		return timestamppb.New(t.Time())
	}
	units := func(r job.Range) *pb.Range { return &pb.Range{From: r.From, To: r.To} }
	m := &pb.HistoryResponse{From: stamp(h.From), To: stamp(h.To)}
	for _, s := range h.Slices {
		row := &pb.SliceHistory{Slice: &pb.Slice{Id: string(s.Slice.ID), MemoryBytes: int64(s.Slice.Capacity[0])}}
		for _, p := range s.Spans {
			token := ""
			if !p.Token.Zero() {
				token = p.Token.String()
			}
			note := p.Outcome
			if p.Kind == protocol.ForLease {
				note = ""
			}
			row.Spans = append(row.Spans, &pb.Span{
				Note: note,
				Kind: pb.Value[pb.Reservation_Kind](p.Kind.String()), Start: stamp(p.Start), End: stamp(p.End), Job: string(p.Job),
				Subjob: token, Range: units(p.Range),
				Committed: units(p.Committed), Outcome: pb.Value[pb.Subjob_Outcome](p.Outcome),
				Until: pb.Value[pb.Reservation_Kind](p.Until.String()), UsedStart: stamp(p.UsedStart), UsedEnd: stamp(p.UsedEnd),
			})
		}
		m.Slices = append(m.Slices, row)
	}
	return m
}

func TestFromWire(t *testing.T) {
	for _, p := range example() {
		got, err := FromWire(toWire(p.History))
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, p.History) {
			t.Errorf("%s came back as\n%+v, want\n%+v", p.Title, got, p.History)
		}
	}
	for k := protocol.ForLease; k <= protocol.ForHold; k++ {
		if got, err := kindOf(pb.Value[pb.Reservation_Kind](k.String())); got != k || err != nil {
			t.Errorf("kindOf(%q) = %v, %v", k, got, err)
		}
	}
	for _, span := range []*pb.Span{{Kind: 99}, {Until: 99}, {Kind: pb.Reservation_LEASE, Subjob: "x"}} {
		_, err := FromWire(&pb.HistoryResponse{Slices: []*pb.SliceHistory{{Slice: &pb.Slice{Id: "gpu0"}, Spans: []*pb.Span{{}, span}}}})
		if errkind.Of(err) != errkind.Invalid || !strings.Contains(err.Error(), "slice gpu0, span 1: ") {
			t.Errorf("%v: %v", span, err)
		}
	}
	if h, err := FromWire(nil); err != nil || len(h.Slices) != 0 {
		t.Errorf("an empty answer: %+v, %v", h, err)
	}
}
