// Package forecaster is the way from files and flags to the answer of `sluice forecast`, once for the command and for the page in a
// browser. It opens no file by itself and prints nothing.
package forecaster

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"math"
	"time"

	"github.com/spf13/pflag"

	"sluice.dev/sluice/internal/core/errkind"
	policies "sluice.dev/sluice/internal/core/policy/all"
	"sluice.dev/sluice/internal/lab/forecast"
	"sluice.dev/sluice/internal/lab/history"
	histories "sluice.dev/sluice/internal/lab/history/all"
	planners "sluice.dev/sluice/internal/lab/planner/all"
	"sluice.dev/sluice/internal/lab/scenario/play"
)

// Request is what is asked. The fields that Flags sets are named as the flags.
type Request struct {
	// Files of one cluster.
	Files []histories.File
	// More puts into the book what is in no file; nil: nothing.
	More func(*history.Book) error
	// Jobs is the owner's own backlog; nil for those that are stated.
	Jobs *Jobs
	// Zone is the time zone of clocks in the files that name none, Hours that of the hours of day that are shown; empty if nobody has said.
	Zone, Hours string
	GPUs        int
	// Days is how many of the log's last days count; 0: all.
	Days      int
	Grace     time.Duration
	Seed      uint64
	Quick     bool
	Anonymize bool
	// Workers is how many runs go at once. It has no influence on the answer.
	Workers int
	// Elsewhere plays runs in other processes, where Play does it; nil: they are played here (forecast.Options).
	Elsewhere func(ctx context.Context, worker int, run []byte) ([]byte, error)
	// Progress is called with how many of what are done, never twice at once; nil if not wanted. total is negative for what is done between
	// the files and the runs, which takes seconds each with millions of rows.
	Progress func(what string, done, total int)
}

// Jobs is a file with a list of jobs, as in a scenario.
type Jobs struct{ File, Text string }

// Flags names the request's flags, with their defaults.
func (r *Request) Flags(f *pflag.FlagSet) {
	f.StringVar(&r.Zone, "zone", "", "the time zone of clocks in the files that name none (default UTC)")
	f.StringVar(&r.Hours, "hours", "", "the time zone of the hours of day that are shown (default that of --zone)")
	f.IntVar(&r.GPUs, "gpus", 0, "how many GPUs there are, for a log that does not say where jobs ran; 0: as many as it says")
	f.IntVar(&r.Days, "days", forecast.Recent, "how many of the log's last days count, as what comes next is like what was last; 0: all")
	f.DurationVar(&r.Grace, "grace", forecast.Notice, "how long before its device is taken a filler is told (your GraceTime)")
	f.Uint64Var(&r.Seed, "seed", 1, "draws the devices that are played, and the intervals")
	f.BoolVar(&r.Quick, "quick", false, "leave out what each assumption is worth")
	f.BoolVar(&r.Anonymize, "anonymize", false, "hash the names of partitions and kinds of GPUs, with a key that is thrown away")
}

// Check finds what is wrong with a flag: an error of kind Invalid that names it.
func (r *Request) Check() error {
	if r.Grace < 0 || r.Grace > time.Hour {
		return errkind.Errorf(errkind.Invalid, "--grace %s: want 0s to 1h", r.Grace)
	}
	if r.GPUs < 0 {
		return errkind.Errorf(errkind.Invalid, "--gpus %d: want 1 or more, or 0 for what the log says", r.GPUs)
	}
	if r.Days < 0 {
		return errkind.Errorf(errkind.Invalid, "--days %d: want 1 or more, or 0 for all", r.Days)
	}
	_, _, err := r.zones()
	return err
}

// Answer reads the files and plays what is asked. Errors are of kind Invalid where a flag or what is in the files is wrong, those of
// opening a file, and the context's.
func (r *Request) Answer(ctx context.Context) (*forecast.Answer, error) {
	if err := r.Check(); err != nil {
		return nil, err
	}
	clocks, shown, err := r.zones()
	if err != nil {
		return nil, err
	}
	o := forecast.Options{Table: table(), Notice: r.Grace, Seed: r.Seed, Workers: r.Workers, Quick: r.Quick,
		Elsewhere: r.Elsewhere, Days: cmp.Or(r.Days, math.MaxInt)}
	if r.Progress != nil {
		o.Progress = func(done, total int) { r.Progress("runs", done, total) }
	}
	if r.Jobs != nil {
		own, wrong := forecast.Own(r.Jobs.File, r.Jobs.Text)
		if wrong != nil {
			return nil, wrong
		}
		o.Backlogs = []forecast.Backlog{own}
	}
	step := func(doing string) error {
		if r.Progress != nil {
			r.Progress(doing, 0, -1)
		}
		return ctx.Err()
	}
	h, err := histories.ReadWith(history.Options{Zone: clocks, GPUs: r.GPUs, Step: step}, r.More, r.Files...)
	if err != nil {
		return nil, err
	}
	if err = ctx.Err(); err != nil {
		return nil, err
	}
	log := forecast.Recorded(h)
	log.Zone = shown
	answer, err := forecast.Forecast(ctx, log, o)
	if err != nil {
		return nil, err
	}
	if r.Anonymize {
		key := make([]byte, 32)
		_, _ = rand.Read(key) // it never fails
		answer.Anonymize(key)
	}
	return answer, nil
}

// Play plays a run that was given to Elsewhere, and returns what is to be answered there.
func Play(ctx context.Context, run []byte) ([]byte, error) { return forecast.Play(ctx, table(), run) }

// zones are those of clocks, nil if nobody has said, which the answer tells where it matters, and of the hours that are shown.
func (r *Request) zones() (clocks, shown *time.Location, err error) {
	shown = time.UTC
	if r.Zone != "" {
		if clocks, err = zone("--zone", r.Zone); err != nil {
			return nil, nil, err
		}
		shown = clocks
	}
	if r.Hours != "" {
		shown, err = zone("--hours", r.Hours)
	}
	return clocks, shown, err
}

func zone(flag, name string) (*time.Location, error) {
	z, err := time.LoadLocation(name)
	if err != nil {
		return nil, errkind.Errorf(errkind.Invalid, "%s %s: it is no time zone that is known here; want a name such as "+
			"Europe/Berlin, or UTC", flag, name)
	}
	return z, nil
}

// table is what a forecast plays.
func table() play.Table {
	return play.Table{Policies: policies.Policies(), Policy: policies.ByName, Planners: planners.Kinds()}
}

// JSON writes an answer for programs.
func JSON(w io.Writer, a *forecast.Answer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(a)
}
