package api

import (
	"context"
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// fields collects every problem of a request, so that one answer names them all: the first maxProblems, and how many more.
type fields struct {
	problems []string
	more     int
}

func (f *fields) wrong(field, format string, args ...any) {
	if len(f.problems) == maxProblems {
		f.more++
		return
	}
	f.problems = append(f.problems, field+": "+fmt.Sprintf(format, args...))
}

// at is the place of a part of a list's element.
func at(list string, i int, part string) string { return fmt.Sprintf("%s[%d].%s", list, i, part) }

func (f *fields) err() error {
	if len(f.problems) == 0 {
		return nil
	}
	if f.more > 0 {
		f.problems = append(f.problems, fmt.Sprintf("and %d more problems", f.more))
	}
	return errkind.Errorf(errkind.Invalid, "%s", strings.Join(f.problems, "\n"))
}

// label checks a name of a job or queue.
func (f *fields) label(field, name string) string {
	switch {
	case name == "":
		f.wrong(field, "is missing; want a name such as count-words")
	case !job.ValidName(name):
		f.wrong(field, "is %.80q; want %s", name, job.NameRule)
	}
	return name
}

// job checks the name of a job that is to be there already. One that a journal of an older version brought along may have
// any name, and is found by it: else it could not be cancelled.
func (h *handler) job(ctx context.Context, f *fields, field, name string) job.ID {
	if !job.ValidID(name) {
		if _, err := h.service.Job(ctx, job.ID(name)); err == nil {
			return job.ID(name)
		}
	}
	return f.id(field, name)
}

// id checks the id of a job.
func (f *fields) id(field, name string) job.ID {
	if job.ValidID(name) {
		return job.ID(name)
	}
	return job.ID(f.label(field, name))
}

// request checks a request id.
func (f *fields) request(id string) string {
	if len(id) > MaxRequestID || strings.IndexFunc(id, func(r rune) bool { return r <= ' ' || r > '~' }) >= 0 {
		f.wrong("request_id", "is %.80q; want at most %d visible ASCII characters", id, MaxRequestID)
	}
	return id
}

// slice checks a slice's id; it may be empty only if optional.
func (f *fields) slice(id string, optional bool) job.SliceID {
	switch {
	case id == "" && !optional:
		f.wrong("slice", "is missing; ListSlices names them")
	case len(id) > 253 || strings.IndexFunc(id, func(r rune) bool { return r <= ' ' || r > '~' }) >= 0:
		f.wrong("slice", "is %.80q; want an id as ListSlices gives", id)
	}
	return job.SliceID(id)
}

// subjob checks a subjob's id; empty is the zero token.
func (f *fields) subjob(id string) job.Token {
	if id == "" {
		return job.Token{}
	}
	t, err := job.ParseToken(id)
	if err != nil {
		f.wrong("subjob", "%v", err)
	}
	return t
}

// length checks a duration that may be unset.
func (f *fields) length(field string, d *durationpb.Duration, most time.Duration) time.Duration {
	if d == nil {
		return 0
	}
	out := d.AsDuration()
	if d.CheckValid() != nil || out < 0 || out > most {
		f.wrong(field, "is %s; want 0s to %s", out, most)
		return 0
	}
	return out
}

// instant checks a moment that may be unset.
func (f *fields) instant(field string, t *timestamppb.Timestamp, unset quantity.Instant) quantity.Instant {
	if t == nil {
		return unset
	}
	if y := t.AsTime().Year(); t.CheckValid() != nil || y < 2000 || y > 2200 {
		f.wrong(field, "is outside the years 2000 to 2200")
		return unset
	}
	return quantity.At(t.AsTime())
}

// reservable are the kinds of reservations that people may make; the others are the daemon's own.
func reservable() []protocol.ReservationKind {
	return []protocol.ReservationKind{protocol.ForDrain, protocol.ForMaintenance, protocol.ForServing, protocol.ForReclaim,
		protocol.ForGeometry, protocol.ForOwner}
}

// reservation checks the kind of a reservation.
func (f *fields) reservation(kind pb.Reservation_Kind) protocol.ReservationKind {
	names := make([]string, 0, 5)
	for _, k := range reservable() {
		if reservationKind(k) == kind {
			return k
		}
		names = append(names, k.String())
	}
	f.wrong("kind", "is %q; want one of %s", pb.Word(kind), strings.Join(names, ", "))
	return 0
}
