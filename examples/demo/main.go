// Command demo shows the whole of Sluice on one machine, with simulated slices: the four examples run twice, first cut to
// fit the windows and then as rigid blocks, on the same slices with the same time taken off the market, each from an empty
// daemon that is killed once on the way and started again. Every result is checked. It draws both timelines with one
// scale, says in words what they show, and fails if a result is wrong or if cutting did not fill more. Then three jobs bid for
// the same slices, one of them through an agent in Python, and it says who won what. Meanwhile a memory storm blows on the
// machine itself, as far as it bears one (storm.go). `make demo` runs it from the root of the clone; it uses bin/sluice, the API, and of Sluice nothing else but sdk/python.
package main

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// files are the jobs of the two sides, and of the jobs that bid.
//
//go:embed atoms.yaml blocks.yaml bids.yaml
var files embed.FS

// patience bounds one side's run; on an idle machine it takes about a minute.
const patience = 4 * time.Minute

func main() {
	if len(os.Args) > 1 && os.Args[1] == holding {
		if err := hold(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, "demo hold:", err)
			os.Exit(1)
		}
		return
	}
	// A daemon is ended with the thread that started it (see daemon.go), so this one has to stay.
	runtime.LockOSThread()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	play := run
	if len(os.Args) > 1 && os.Args[1] == "storm" {
		play = alone
	}
	if err := play(ctx, os.Stdout); err != nil {
		if ctx.Err() != nil {
			err = errors.New("interrupted; what ran was cancelled")
		}
		fmt.Fprintln(os.Stderr, "demo:", err)
		stop()
		os.Exit(1)
	}
}

// side is one way of doing the work.
type side struct {
	name, title string
	blocks      bool
	// outputs names the folder of committed output for each example's check, in a side's own folder.
	outputs func(dir string) (map[string]string, error)
}

// here says whether this is where a demo can run.
func here() error {
	for _, need := range []string{"bin/sluice", "bin/sluice-shim", "examples/items/check.sh"} {
		if _, err := os.Stat(need); err != nil {
			return fmt.Errorf("%s is not here: run `make demo` in the root of the clone", need)
		}
	}
	return nil
}

// alone is the storm without the rest: `.demo/run storm`.
func alone(ctx context.Context, out io.Writer) error {
	if err := here(); err != nil {
		return err
	}
	dir, release, err := place(".demo")
	if err != nil {
		return err
	}
	defer release()
	if err := hasten(ctx, out, dir, hasPython(ctx)); err != nil {
		return err
	}
	return storm(ctx, out, filepath.Join(dir, "storm"))
}

func hasPython(ctx context.Context) bool {
	return exec.CommandContext(ctx, "python3", "-c", "import json").Run() == nil || ctx.Err() != nil
}

// hasten measures how fast this machine is now, and says so where it is slow.
func hasten(ctx context.Context, out io.Writer, dir string, python bool) (err error) {
	if slow, err = calibrate(ctx, dir, python); err != nil {
		return err
	}
	if slow > 1 {
		fmt.Fprintf(out, "This machine is busy or slow: samples of the work took %.1f times as long as on an idle one. "+
			"All times of the demo (walltimes,\ndeclared unit times, reservations) are %.2f times as long on both sides, "+
			"the work is the same. It takes the longer.\n\n", float64(slow)/margin, float64(slow))
	}
	return nil
}

func run(ctx context.Context, out io.Writer) error {
	if err := here(); err != nil {
		return err
	}
	dir, release, err := place(".demo")
	if err != nil {
		return err
	}
	defer release()
	began := time.Now()
	fmt.Fprintf(out, `Sluice fills the gaps on GPU slices. The same work runs twice on four simulated slices of one GPU (%s): first cut to
fit the gaps, then as rigid blocks. Then three jobs bid for the same slices, and meanwhile a memory storm blows. It takes a
little over two minutes on an idle machine.

`, sizes)
	skip := map[string]bool{}
	python := hasPython(ctx)
	if !python {
		skip["train"] = true
		fmt.Fprintln(out, "There is no python3 on this machine: the job train, which is a Python program, is left out on both sides.")
	}
	if err = hasten(ctx, out, dir, python); err != nil {
		return err
	}
	sides := []side{{"atoms", "Cut to fit the windows", false, atomOutputs}, {"blocks", "Rigid blocks", true, blockOutputs}}
	var results []*result
	var wrong []error
	right := 0
	for i, s := range sides {
		title := fmt.Sprintf("%d of 3, %-12s", i+1, []string{"cut to fit", "rigid blocks"}[i])
		r, n, bad, failed := s.run(ctx, newView(out, title, box().slices), filepath.Join(dir, s.name), skip)
		if ctx.Err() != nil {
			return failed
		}
		right += n
		wrong = append(wrong, failed, bad)
		if r != nil {
			results = append(results, r)
		}
	}
	var market, weather bytes.Buffer
	blown := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // as the main one, for as long as there is a daemon
		blown <- storm(ctx, &weather, filepath.Join(dir, "storm"))
	}()
	n, err := bids(ctx, out, &market, filepath.Join(dir, "bids"), python)
	right += n
	wrong = append(wrong, err, <-blown)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	picture := filepath.Join(dir, "demo.svg")
	wrong = append(wrong, conclude(out, results, picture))
	failed := errors.Join(wrong...)
	if failed == nil {
		fmt.Fprintf(out, "  All %d results are right by their examples' own checks.\n", right)
	}
	fmt.Fprintf(out, "\n%s\n%s", market.String(), weather.String())
	opened := ""
	if reveal(out, picture) {
		opened = ", which is opened"
	}
	fmt.Fprintf(out, "\nAll of it took %s. The timelines as a picture: %s%s\n", time.Since(began).Round(time.Second), picture, opened)
	if failed != nil {
		fmt.Fprintf(out, "Everything is kept in %s.\n", dir)
		return failed
	}
	for _, name := range []string{sides[0].name, sides[1].name, "bids", "storm"} {
		if err := os.RemoveAll(filepath.Join(dir, name, "data")); err != nil {
			return fmt.Errorf("clean up: %w", err)
		}
	}
	return nil
}

// run plays a side, and counts the results that are right; bad says which are not. A side that was not all done has a result all the same.
func (s side) run(ctx context.Context, view *view, dir string, skip map[string]bool) (r *result, right int, bad, err error) {
	jobs, err := files.ReadFile(s.name + ".yaml")
	if err != nil {
		return nil, 0, nil, err
	}
	if r, err = play(ctx, view, s, dir, slow.stretch(without(string(jobs), skip))); err != nil {
		return r, 0, nil, fmt.Errorf("%s: %w; its log is %s", s.title, err, filepath.Join(dir, "log"))
	}
	at, err := s.outputs(dir)
	if err != nil {
		return r, 0, nil, err
	}
	if right, bad = check(ctx, examples(), at, skip); bad != nil {
		bad = fmt.Errorf("%s: %w", s.title, bad)
	}
	return r, right, bad, nil
}

// bids is the last part: jobs that bid. Its agent is a Python program. What it comes to is told in the end; right counts the
// results that are.
func bids(ctx context.Context, out, told io.Writer, dir string, python bool) (right int, err error) {
	fmt.Fprint(told, `Jobs that bid (mechanism jasda, examples/demo/bids.yaml)
  Three jobs wanted the same two slices. Each proposes pieces for the windows on offer and says what they are worth to it; the market
  sells what is worth most together, and holds what was declared against what is observed. The agent of frames is a Python
  program in a process of its own (examples/agents/frames/agent.py).
`)
	if !python {
		fmt.Fprintln(told, "  There is no python3 on this machine: this part is left out.")
		return 0, nil
	}
	if right, err = auction(ctx, newView(out, fmt.Sprintf("3 of 3, %-12s", "jobs bid"), market().slices), told, dir); err != nil {
		return right, fmt.Errorf("jobs that bid: %w; the daemon's log is %s", err, filepath.Join(dir, "log"))
	}
	return right, nil
}

// place finds a folder below base that no other demo works in, empties it, and holds it until release.
func place(base string) (dir string, release func(), err error) {
	for i := range 9 {
		dir = filepath.Join(base, "demo")
		if i > 0 {
			dir = fmt.Sprintf("%s-%d", dir, i+1)
		}
		if err = os.MkdirAll(dir, 0o755); err != nil {
			return "", nil, err
		}
		lock, err := os.OpenFile(dir+".lock", os.O_CREATE|os.O_RDWR, 0o644)
		if err != nil {
			return "", nil, err
		}
		if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
			_ = lock.Close()
			continue // another demo's
		}
		if err := os.RemoveAll(dir); err != nil {
			return "", nil, errors.Join(err, lock.Close())
		}
		if err := os.Mkdir(dir, 0o755); err != nil {
			return "", nil, errors.Join(err, lock.Close())
		}
		return dir, func() { _ = lock.Close() }, nil
	}
	return "", nil, fmt.Errorf("nine demos run in %s already: wait for one of them", base)
}

// without leaves the named jobs out of a file of several.
func without(file string, skip map[string]bool) string {
	var kept []string
	for _, doc := range strings.Split(file, "\n---\n") {
		_, rest, _ := strings.Cut(doc, "\nmetadata: {name: ")
		name, _, _ := strings.Cut(rest, "}")
		if !skip[name] {
			kept = append(kept, doc)
		}
	}
	return strings.Join(kept, "\n---\n")
}
