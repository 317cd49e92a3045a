package reserve

import (
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/internal/core/civil"
	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/edge/timezone"
	"sluice.dev/sluice/internal/face/cli/session"
	"sluice.dev/sluice/internal/face/cli/show"
)

// hours are the flags for a reservation's times, as they were typed.
type hours struct {
	start, end, days, zone string
	length, every          show.Span
}

// fill sets the times of a request from the flags.
func fill(a *session.Session, m *pb.ReserveRequest, h *hours) error {
	if h.end != "" && h.length.Length != 0 {
		return command.Usage("--for and --end say the same: give one")
	}
	now := a.Now()
	if h.zone != "" {
		loc, err := timezone.Load(h.zone)
		if err != nil {
			return command.Usage("--zone: %w", err)
		}
		now = now.In(loc)
	}
	if err := repeat(a, m, h, now); err != nil {
		return err
	}
	from, end := now, time.Time{}
	var err error
	if h.start != "" {
		if from, err = show.When(h.start, now); err != nil {
			return command.Usage("--start: %w", err)
		}
		m.Start = timestamppb.New(from)
	}
	switch {
	case h.length.Length != 0:
		end = from.Add(time.Duration(h.length.Length))
	case h.end != "":
		if end, err = show.When(h.end, now); err != nil {
			return command.Usage("--end: %w", err)
		}
		if timeOfDay(h.end) && !end.After(from) { // the next one after the start
			if end, err = show.When(h.end, from.In(now.Location())); err != nil {
				return command.Usage("--end: %w", err)
			}
		}
		if !end.After(from) {
			return command.Usage("--end %s is not after the start, %s", end.Format(time.RFC3339), from.Format(time.RFC3339))
		}
	default:
		return nil
	}
	m.Start, m.End = timestamppb.New(from), timestamppb.New(end)
	if m.TimeZone == "" {
		return nil
	}
	// A time of day is sent as it was typed: the moment changes where a change of clocks skips it.
	if timeOfDay(h.start) {
		m.From = strings.TrimSpace(h.start)
	}
	switch {
	case timeOfDay(h.end):
		m.To, m.End = strings.TrimSpace(h.end), nil
	case h.end != "":
		m.To = end.In(now.Location()).Format(time.TimeOnly)
	}
	return nil
}

// repeat sets how a request repeats, and by which time zone's clock.
func repeat(a *session.Session, m *pb.ReserveRequest, h *hours, now time.Time) error {
	every := time.Duration(h.every.Length)
	if every != 0 {
		m.Every = durationpb.New(every)
	}
	days, err := civil.ParseDays(h.days)
	switch {
	case err != nil:
		return command.Usage("--days: %w", err)
	case h.days != "" && every != 0 && every != 24*time.Hour:
		return command.Usage("--days is what repeats each 24h: leave --every out")
	case every == 0 && h.days == "":
		return nil
	case h.end == "" && h.length.Length == 0:
		return command.Usage("what repeats has an end: give --for or --end")
	case h.days == "" && !timezone.WholeDays(every):
		fmt.Fprintf(a.Err, "sluice: every %s is elapsed time: it doesn't follow clocks that change, as whole days would\n",
			command.Short(every))
		return nil
	}
	if m.Days = days.String(); m.Every == nil {
		m.Every = durationpb.New(24 * time.Hour)
	}
	if m.TimeZone = h.zone; m.TimeZone == "" {
		var why string
		if m.TimeZone, why = timezone.Caller(now); why != "" {
			fmt.Fprintf(a.Err, "sluice: %s: it repeats by a clock that is always at %s; --zone names the time zone\n", why, m.TimeZone)
		}
	}
	return nil
}

// timeOfDay reports whether a moment was typed as one.
func timeOfDay(s string) bool {
	_, err := time.Parse("15:04", strings.TrimSpace(s))
	return err == nil
}

// sayRepeats tells a person how what was reserved repeats.
func sayRepeats(a *session.Session, list []*pb.Reservation) {
	for _, r := range list {
		if r.TimeZone == "" {
			continue
		}
		fmt.Fprintf(a.Err, "sluice: it repeats %s; next: %s\n", repeats(r), upcoming(r))
		return // the others are on other slices
	}
}

// repeats is how a reservation repeats, for people.
func repeats(r *pb.Reservation) string {
	every := "every " + command.Short(r.Every.AsDuration())
	if r.TimeZone == "" {
		return every
	}
	switch {
	case r.Days != "":
		every = r.Days
	case r.Every.AsDuration() == 24*time.Hour:
		every = "daily"
	}
	until := ""
	if r.To != "" {
		until = "-" + r.To
	}
	return every + " " + r.From + until + " " + r.TimeZone
}

// upcoming are the next times of a reservation by the clock of its time zone, for people.
func upcoming(r *pb.Reservation) string {
	var list []string
	for _, o := range r.Upcoming {
		list = append(list, inZone(o.Start, o.StartOffset).Format("Mon 2006-01-02 15:04"))
	}
	return strings.Join(list, ", ")
}

// inZone is a moment by a clock that is off UTC.
func inZone(t *timestamppb.Timestamp, offset *durationpb.Duration) time.Time {
	at := t.AsTime()
	if d := offset.AsDuration(); d != 0 {
		at = at.In(time.FixedZone("", int(d/time.Second)))
	}
	return at
}

// Reserved is a reservation for people.
func Reserved(a *session.Session, r *pb.Reservation) string {
	if len(r.Upcoming) == 0 {
		return fmt.Sprintf("%d:%s %s+%s", r.Id, pb.Word(r.Kind), show.Clock(a, r.Start), held(r))
	}
	o := r.Upcoming[0]
	if r.TimeZone == "" {
		return fmt.Sprintf("%d:%s %s+%s %s", r.Id, pb.Word(r.Kind), show.Clock(a, o.Start), held(r), repeats(r))
	}
	return fmt.Sprintf("%d:%s +%s %s (%s)", r.Id, pb.Word(r.Kind), held(r), repeats(r), upcoming(r))
}

// ReservationFields are those of a reservation for programs.
func ReservationFields(r *pb.Reservation) command.Record {
	next := make([]command.Record, 0, len(r.Upcoming))
	for _, o := range r.Upcoming {
		next = append(next, command.Record{
			{Key: "start", Value: inZone(o.Start, o.StartOffset).Format(time.RFC3339)},
			{Key: "end", Value: inZone(o.End, o.EndOffset).Format(time.RFC3339)},
		})
	}
	return command.Record{
		{Key: "id", Value: r.Id}, {Key: "kind", Value: pb.Word(r.Kind)},
		{Key: "start", Value: show.Stamp(r.Start)}, {Key: "end", Value: show.Stamp(r.End)},
		{Key: "everySeconds", Value: show.Seconds(r.Every)},
		{Key: "zone", Value: r.TimeZone}, {Key: "days", Value: r.Days}, {Key: "from", Value: r.From}, {Key: "to", Value: r.To},
		{Key: "upcoming", Value: next}, {Key: "job", Value: r.Job}, {Key: "subjob", Value: r.Subjob},
		{Key: "source", Value: r.Source}, {Key: "truncate", Value: r.Truncate},
	}
}

// reservationColumns show a reservation by its id, and to programs all of it.
func reservationColumns() []command.Column[*pb.Reservation] {
	columns := []command.Column[*pb.Reservation]{{Key: "id", Head: "RESERVATION", Value: func(r *pb.Reservation) any { return r.Id }},
		{Key: "slice", Value: func(r *pb.Reservation) any { return r.Slice }}}
	for i, f := range ReservationFields(&pb.Reservation{}) {
		if f.Key != "id" {
			columns = append(columns, command.Column[*pb.Reservation]{Key: f.Key,
				Value: func(r *pb.Reservation) any { return ReservationFields(r)[i].Value }})
		}
	}
	return columns
}

// held is how long a reservation is.
func held(r *pb.Reservation) string {
	if r.End == nil {
		return "open"
	}
	return command.Short(r.End.AsTime().Sub(r.Start.AsTime()))
}
