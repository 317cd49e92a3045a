package daemon

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"sluice.dev/sluice/internal/core/departure"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/timeline"
	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/edge/membership"
	"sluice.dev/sluice/internal/face/cli/show"
)

// stayFlags say how long a machine that joins belongs to its cluster.
type stayFlags struct {
	ephemeral       bool
	until           string
	handOver, grace show.Span
	ownerless       string
}

func (f *stayFlags) add(c *cobra.Command) {
	f.handOver.Length, f.grace.Length = show.Length(departure.HandOver), show.Length(defaultGrace)
	c.Flags().BoolVar(&f.ephemeral, "ephemeral", false, "the machine is gone for good once its daemon ends, and leaves the cluster then")
	c.Flags().StringVar(&f.until, "until", "", "with --ephemeral: when it is gone at the latest, such as 2h or 2026-12-01T08:00:00Z")
	c.Flags().Var(&f.handOver, "hand-over", "how long before its end it is closed, to hand over what its last subjobs have left")
	c.Flags().Var(&f.grace, "grace", "how long an ephemeral machine's daemon takes from its signal at most, the hand-over included")
	c.Flags().StringVar(&f.ownerless, "ownerless", never, "with --ephemeral: for how long it may hear nothing of its head, until what "+
		"runs yields and it leaves, such as 60s; never: until its end")
}

// leaving is all that the flags say. Errors: those of stay.
func (f *stayFlags) leaving(given, joined bool, now time.Time) (Leaving, error) {
	s, err := f.stay(given, joined, now)
	ownerless, wrong := f.vigil(joined)
	return Leaving{Stay: s, HandOver: time.Duration(f.handOver.Length), Grace: time.Duration(f.grace.Length), Ownerless: ownerless},
		errors.Join(err, wrong)
}

// never is a length of time that is not over.
const never = "never"

// vigil is for how long the head may be silent; 0: for ever. joined: the head may know that the machine is ephemeral. Errors: Invalid.
func (f *stayFlags) vigil(joined bool) (time.Duration, error) {
	if f.ownerless == never || f.ownerless == "" {
		return 0, nil
	}
	d, err := quantity.ParseDuration(f.ownerless)
	switch {
	case err != nil:
		return 0, errkind.Errorf(errkind.Invalid, "--ownerless: %w", err)
	case d == 0:
		return 0, nil
	case d < departure.LeastOwnerless || d > departure.Longest:
		return 0, errkind.Errorf(errkind.Invalid, "--ownerless %s: want %s or more, or never", f.ownerless,
			command.Short(departure.LeastOwnerless))
	case !f.ephemeral && !joined:
		return 0, errkind.Errorf(errkind.Invalid, "--ownerless %s: only a machine that leaves for good leaves without its head: give "+
			"--ephemeral too", f.ownerless)
	}
	return d, nil
}

// atOnce is how long what runs still gets when its time is taken at once; 0: as of any node.
func (l *Leaving) atOnce(s departure.Stay) time.Duration {
	if s.Ephemeral {
		return l.Grace - l.HandOver
	}
	return 0
}

// stay is what the flags say; nil: nothing, and it is as before. given: --ephemeral is one of them. joined: the machine has joined, and may
// start again when its time is over, to hand over what it did. Errors: Invalid, all at once.
func (f *stayFlags) stay(given, joined bool, now time.Time) (*membership.Stay, error) {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	handOver, grace := time.Duration(f.handOver.Length), time.Duration(f.grace.Length)
	if grace <= handOver {
		wrong("--grace %s: want more than --hand-over, which is %s: what runs has the rest of it to leave a checkpoint",
			command.Short(grace), command.Short(handOver))
	}
	s := &membership.Stay{Ephemeral: f.ephemeral}
	if f.until != "" {
		var err error
		switch s.Until, err = show.When(f.until, now); {
		case err != nil:
			wrong("--until: %w", err)
		case !s.Ephemeral:
			wrong("--until %s: only a machine that leaves for good has an end: give --ephemeral too", f.until)
		case !joined:
			if err = s.By(now).Check(quantity.At(now), handOver); err != nil {
				wrong("--until %s: %w", f.until, err)
			}
		}
	}
	switch err := errors.Join(errs...); {
	case err != nil:
		return nil, errkind.Errorf(errkind.Invalid, "%w", err)
	case !given:
		return nil, nil
	}
	return s, nil
}

// leaves says when a machine leaves; empty: when it is removed.
func leaves(s departure.Stay) string {
	switch {
	case !s.Ephemeral:
		return ""
	case s.Until == 0:
		return "; it leaves for good once this daemon ends"
	}
	return "; it leaves for good at " + timeline.Clock(s.Until)
}
