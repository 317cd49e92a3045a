package api

import (
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/internal/core/civil"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/timeline"
	"sluice.dev/sluice/internal/edge/timezone"
)

// repeats checks how a reservation repeats, and makes it the first occurrence of its calendar where it does by a time zone's clock.
func (f *fields) repeats(m *pb.ReserveRequest, r *protocol.Reservation, now time.Time) {
	if m.Every != nil && r.Every == 0 {
		f.wrong("every", "is 0s; leave it out for once")
	}
	if m.TimeZone == "" {
		for _, x := range [][2]string{{"days", m.Days}, {"from", m.From}, {"to", m.To}} {
			if x[1] != "" {
				f.wrong(x[0], "is %.80q; it needs time_zone", x[1])
			}
		}
		if r.Every > 0 && (r.End == quantity.Never || r.Every < r.End.Sub(r.Start)) {
			f.wrong("every", "is shorter than the reservation; want at least its length, from start to end")
		}
		return
	}
	_, err := timezone.Load(m.TimeZone)
	if err != nil {
		f.wrong("time_zone", "%v", err)
	}
	h := timezone.Hours{Zone: m.TimeZone, Start: r.Start.Time(), Every: r.Every, From: f.hour("from", m.From), To: f.hour("to", m.To)}
	if h.Days, err = civil.ParseDays(m.Days); err != nil {
		f.wrong("days", "%v", err)
	}
	if r.Every > 0 && !timezone.WholeDays(r.Every) {
		f.wrong("every", "is %v; the clock of a time zone is followed by whole days: want a multiple of 24h, or no time_zone", r.Every)
	}
	if m.Every == nil && m.Days == "" {
		f.wrong("time_zone", "is for what repeats; want every, or days")
	}
	switch {
	case m.End != nil:
		h.End = r.End.Time()
	case m.To == "":
		f.wrong("end", "is missing; what repeats has one, or to")
	}
	if len(f.problems) > 0 {
		return
	}
	c, start, end, err := h.Calendar(now)
	if err != nil {
		f.wrong("every", "%v", err)
		return
	}
	r.Calendar, r.Start, r.End, r.Every = c, start, end, time.Duration(c.Step)*24*time.Hour
}

// hour checks a time of day; it may be empty.
func (f *fields) hour(field, s string) string {
	if s != "" {
		if _, err := timezone.ParseTime(s); err != nil {
			f.wrong(field, "%v", err)
		}
	}
	return s
}

// mostUpcoming is how many occurrences a reservation is shown with.
const mostUpcoming = 3

// showRepeats adds the times of a reservation that repeats.
func showRepeats(m *pb.Reservation, r *protocol.Reservation, now quantity.Instant) {
	if r.Every == 0 {
		return
	}
	c := &r.Calendar
	if !c.None() {
		m.TimeZone, m.Days, m.From = c.Zone, c.Days.String(), timezone.FormatTime(c.At)
		if c.ByClock {
			m.To = timezone.FormatTime((c.At + c.Length) % (24 * time.Hour))
		}
	}
	for len(m.Upcoming) < mostUpcoming {
		o, ok := timeline.Overlap(r, now, quantity.Never)
		if !ok {
			return
		}
		out := &pb.Occurrence{Start: stamp(o.Start), End: stamp(o.End)}
		if !c.None() {
			out.StartOffset, out.EndOffset = durationpb.New(c.Clock.Offset(o.Start)), durationpb.New(c.Clock.Offset(o.End))
		}
		m.Upcoming = append(m.Upcoming, out)
		now = o.End
	}
}
