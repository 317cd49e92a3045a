package cli

import (
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/command"
)

// clock is a moment for people: the time of day if it is within a day of now, else the date too; nothing if unset.
func (a *app) clock(t *timestamppb.Timestamp) string {
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

// until is how far a moment is ahead; never for none.
func (a *app) until(t *timestamppb.Timestamp) string {
	if t == nil {
		return "open"
	}
	return command.Short(t.AsTime().Sub(a.Now()))
}

// between is an estimate as a range of moments.
func (a *app) between(early, late *timestamppb.Timestamp) string {
	switch {
	case early == nil && late == nil:
		return "unknown"
	case early == nil || late == nil || early.AsTime().Equal(late.AsTime()):
		if early == nil {
			early = late
		}
		return a.clock(early)
	}
	return a.clock(early) + " to " + a.clock(late)
}

// ahead is an estimate as how far it is ahead, behind a word; nothing if it is not known.
func (a *app) ahead(word string, early, late *timestamppb.Timestamp) string {
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

// stamp is a moment for programs: RFC 3339 in UTC, nil if unset.
func stamp(t *timestamppb.Timestamp) any {
	if t == nil {
		return nil
	}
	return t.AsTime().Format(time.RFC3339Nano)
}

// seconds is a length of time for programs; 0 if unset.
func seconds(d *durationpb.Duration) any {
	return d.AsDuration().Seconds()
}

// rangeText is [from,to), nothing for an empty range.
func rangeText(r *pb.Range) string {
	if r == nil {
		return ""
	}
	return fmt.Sprintf("[%d,%d)", r.From, r.To)
}

// rangeValue is a range for programs: a pair, nil if empty.
func rangeValue(r *pb.Range) any {
	if r == nil {
		return nil
	}
	return command.Record{{Key: "from", Value: r.From}, {Key: "to", Value: r.To}}
}

// when reads a moment: now, a time of day (the next such), RFC 3339, or a length of time from now with or without +.
func when(s string, now time.Time) (time.Time, error) {
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

// lengthFlag is a flag for a length of time, as quantity.ParseDuration reads it.
type lengthFlag time.Duration

func (l *lengthFlag) String() string {
	if *l == 0 {
		return ""
	}
	return command.Short(time.Duration(*l))
}

// Set is part of pflag.Value.
func (l *lengthFlag) Set(s string) error {
	d, err := quantity.ParseDuration(s)
	*l = lengthFlag(d)
	return err
}

// Type is part of pflag.Value.
func (l *lengthFlag) Type() string { return "duration" }

// spanFlag is a lengthFlag of more than nothing: left out it is 0, given it is not.
type spanFlag struct{ lengthFlag }

// Set is part of pflag.Value.
func (l *spanFlag) Set(s string) error {
	if err := l.lengthFlag.Set(s); err != nil || l.lengthFlag > 0 {
		return err
	}
	return errkind.Errorf(errkind.Invalid, "is %s; want more than nothing, such as 30m, or leave it out", s)
}
