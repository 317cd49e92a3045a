package picture

import (
	"cmp"
	"fmt"

	"google.golang.org/protobuf/types/known/timestamppb"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/core/trp"
)

// FromWire turns the API's answer into a history. It refuses (kind Invalid) a kind or a token that this build does not
// know: a picture without them would show something else than what happened.
func FromWire(m *pb.HistoryResponse) (status.History, error) {
	h := status.History{From: instant(m.GetFrom(), 0), To: instant(m.GetTo(), 0)}
	for _, s := range m.GetSlices() {
		d := s.GetSlice()
		row := status.SliceHistory{Slice: protocol.Slice{
			ID: job.SliceID(d.GetId()), Model: d.GetModel(), Profile: d.GetProfile(),
			Capacity: trp.Vector{quantity.Amount(d.GetMemoryBytes())},
			Speed:    d.GetSpeed(), Device: d.GetDevice(), Simulated: d.GetSimulated(), Shared: d.GetShared(),
		}}
		for i, p := range s.GetSpans() {
			span, err := spanFromWire(p)
			if err != nil {
				return status.History{}, fmt.Errorf("slice %s, span %d: %w", d.GetId(), i, err)
			}
			row.Spans = append(row.Spans, span)
		}
		h.Slices = append(h.Slices, row)
	}
	return h, nil
}

func spanFromWire(p *pb.Span) (status.Span, error) {
	kind, err := kindOf(p.GetKind())
	if err != nil {
		return status.Span{}, err
	}
	until, err := kindOf(p.GetUntil())
	if err != nil {
		return status.Span{}, err
	}
	var token job.Token
	if p.GetSubjob() != "" {
		if token, err = job.ParseToken(p.GetSubjob()); err != nil {
			return status.Span{}, errkind.Errorf(errkind.Invalid, "subjob: %w", err)
		}
	}
	units := func(r *pb.Range) job.Range { return job.Range{From: r.GetFrom(), To: r.GetTo()} }
	return status.Span{
		Kind: kind, Start: instant(p.GetStart(), 0), End: instant(p.GetEnd(), quantity.Never), Job: job.ID(p.GetJob()), Token: token,
		Range: units(p.GetRange()), Committed: units(p.GetCommitted()), Outcome: cmp.Or(pb.Word(p.GetOutcome()), p.GetNote()), Until: until,
		UsedStart: instant(p.GetUsedStart(), 0), UsedEnd: instant(p.GetUsedEnd(), 0), FirstProgress: instant(p.GetFirstProgress(), 0),
	}, nil
}

// kindOf finds a kind by its word; unspecified is a window.
func kindOf(of pb.Reservation_Kind) (protocol.ReservationKind, error) {
	unknown := protocol.ReservationKind(255).String()
	for k := protocol.ReservationKind(0); k.String() != unknown; k++ {
		if k.String() == pb.Word(of) && (k != 0) == (of != 0) {
			return k, nil
		}
	}
	return 0, errkind.Errorf(errkind.Invalid, "reservation kind %v is not known to this build: use the daemon's version of sluice", of)
}

// instant of a time on the wire; missing where there is none.
func instant(t *timestamppb.Timestamp, missing quantity.Instant) quantity.Instant {
	if t == nil {
		return missing
	}
	return quantity.At(t.AsTime())
}
