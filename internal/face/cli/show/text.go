// Package show writes moments, lengths, ranges and facts for people and programs, and reads those that flags have.
package show

import (
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"strconv"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/face/cli/session"
)

// Clock is a moment for people: the time of day if it is within a day of now, else the date too; nothing if unset.
func Clock(a *session.Session, t *timestamppb.Timestamp) string {
	if t == nil {
		return ""
	}
	now := a.Now()
	at := t.AsTime().In(now.Location())
	if d := at.Sub(now); d > -24*time.Hour && d < 24*time.Hour && at.Day() == now.Day() {
		return at.Format("15:04:05")
	}
	return at.Format("2006-01-02 15:04")
}

// Until is how far a moment is ahead; never for none.
func Until(a *session.Session, t *timestamppb.Timestamp) string {
	if t == nil {
		return "open"
	}
	return command.Short(t.AsTime().Sub(a.Now()))
}

// Between is an estimate as a range of moments.
func Between(a *session.Session, early, late *timestamppb.Timestamp) string {
	switch {
	case early == nil && late == nil:
		return "unknown"
	case early == nil || late == nil || early.AsTime().Equal(late.AsTime()):
		if early == nil {
			early = late
		}
		return Clock(a, early)
	}
	return Clock(a, early) + " to " + Clock(a, late)
}

// Ahead is an estimate as how far it is ahead, behind a word; nothing if it is not known.
func Ahead(a *session.Session, word string, early, late *timestamppb.Timestamp) string {
	if early == nil && late == nil {
		return ""
	}
	if early == nil {
		early = late
	}
	if late == nil {
		late = early
	}
	in := func(t *timestamppb.Timestamp) string {
		return command.Short(max(0, t.AsTime().Sub(a.Now()).Round(time.Second)))
	}
	if from, to := in(early), in(late); from != to {
		return fmt.Sprintf("%s in %s to %s", word, from, to)
	}
	return fmt.Sprintf("%s in %s", word, in(late))
}

// Stamp is a moment for programs: RFC 3339 in UTC, nil if unset.
func Stamp(t *timestamppb.Timestamp) any {
	if t == nil {
		return nil
	}
	return t.AsTime().Format(time.RFC3339Nano)
}

// Seconds is a length of time for programs; 0 if unset.
func Seconds(d *durationpb.Duration) any {
	return d.AsDuration().Seconds()
}

// RangeText is [from,to), nothing for an empty range.
func RangeText(r *pb.Range) string {
	if r == nil {
		return ""
	}
	return fmt.Sprintf("[%d,%d)", r.From, r.To)
}

// RangeValue is a range for programs: a pair, nil if empty.
func RangeValue(r *pb.Range) any {
	if r == nil {
		return nil
	}
	return command.Record{{Key: "from", Value: r.From}, {Key: "to", Value: r.To}}
}

// When reads a moment: now, a time of day (the next such), RFC 3339, or a length of time from now with or without +.
func When(s string, now time.Time) (time.Time, error) {
	s = strings.TrimSpace(s)
	if s == "now" {
		return now, nil
	}
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return t, nil
	}
	if d, err := time.Parse("15:04", s); err == nil {
		at := time.Date(now.Year(), now.Month(), now.Day(), d.Hour(), d.Minute(), 0, 0, now.Location())
		if at.Before(now) {
			at = time.Date(now.Year(), now.Month(), now.Day()+1, d.Hour(), d.Minute(), 0, 0, now.Location())
		}
		return at, nil
	}
	// Without +, what has a colon looks like a time of day, never like Slurm's minutes and seconds.
	length, ahead := strings.CutPrefix(s, "+")
	if d, err := quantity.ParseDuration(length); err == nil && (ahead || !strings.Contains(s, ":")) {
		return now.Add(d), nil
	}
	return time.Time{}, errkind.Errorf(errkind.Invalid, "%q is no moment: want now, 18:30, +20m or 2026-03-01T18:00:00Z", s)
}

// Length is a flag for a length of time, as quantity.ParseDuration reads it.
type Length time.Duration

// String is part of pflag.Value.
func (l *Length) String() string {
	if *l == 0 {
		return ""
	}
	return command.Short(time.Duration(*l))
}

// Set is part of pflag.Value.
func (l *Length) Set(s string) error {
	d, err := quantity.ParseDuration(s)
	*l = Length(d)
	return err
}

// Type is part of pflag.Value.
func (l *Length) Type() string { return "duration" }

// Span is a lengthFlag of more than nothing: left out it is 0, given it is not.
type Span struct{ Length }

// Set is part of pflag.Value.
func (l *Span) Set(s string) error {
	if err := l.Length.Set(s); err != nil || l.Length > 0 {
		return err
	}
	return errkind.Errorf(errkind.Invalid, "is %s; want more than nothing, such as 30m, or leave it out", s)
}

// Briefly is a length that may be unknown.
func Briefly(d *durationpb.Duration) string {
	if d == nil {
		return ""
	}
	return command.Short(d.AsDuration())
}

// Lines writes facts below each other; empty ones are left out.
func Lines(a *session.Session, list [][2]string) {
	width := 0
	for _, l := range list {
		width = max(width, len(l[0]))
	}
	for _, l := range list {
		if l[1] != "" {
			fmt.Fprintf(a.Out, "%-*s  %s\n", width, l[0], command.Flat(l[1]))
		}
	}
}

// NonZero is a number, nothing for 0.
func NonZero(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// Plural is a number with what there is of it.
func Plural(n int, one, many string) string {
	switch n {
	case 0:
		return "no " + many
	case 1:
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// Percent of a share of 1.
func Percent(share float64) string { return fmt.Sprintf("%.0f%%", 100*share) }

// Decimal has two digits behind the point, and none where it is large.
func Decimal(x float64) string {
	if x >= 1000 {
		return strconv.FormatFloat(x, 'f', 0, 64)
	}
	return strconv.FormatFloat(x, 'f', 2, 64)
}

// DescribeAll is a list as programs get it.
func DescribeAll[T any](items []T, columns []command.Column[T]) []command.Record {
	out := make([]command.Record, 0, len(items))
	for _, it := range items {
		out = append(out, command.Describe(it, columns))
	}
	return out
}
