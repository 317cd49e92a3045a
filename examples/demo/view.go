package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	pb "sluice.dev/sluice/internal/edge/wire/sluice/v1alpha1"
)

// view shows how jobs come on: on a terminal a few lines that are drawn again in place, elsewhere one line a second.
type view struct {
	out  io.Writer
	tty  bool
	next time.Duration
	// drawn lines that the next picture goes over.
	drawn int
	// slices there are.
	slices int
}

func newView(out io.Writer, slices int) *view {
	return &view{out: out, tty: terminal(out), slices: slices}
}

// terminal says whether out is one that can move its cursor.
func terminal(out io.Writer) bool {
	f, ok := out.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" || os.Getenv("TERM") == "" {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && info.Mode()&os.ModeDevice != 0
}

// show draws the jobs once a second, and at the end.
func (v *view) show(at time.Duration, jobs []*pb.Job, last bool) {
	if at < v.next && !last {
		return
	}
	v.next = at.Truncate(time.Second) + time.Second
	if !v.tty {
		var all []string
		done, waiting := 0, 0
		for _, j := range jobs {
			switch said := stand(j); said {
			case "done":
				done++
			case "waits":
				waiting++
			default:
				all = append(all, j.Name+" "+said)
			}
		}
		all = append(all, fmt.Sprintf("%d jobs done, %d wait, %d of %d slices busy", done, waiting, running(jobs), v.slices))
		fmt.Fprintf(v.out, "%4.0fs  %s\n", at.Seconds(), strings.Join(all, ", "))
		return
	}
	v.back()
	for _, j := range jobs {
		fmt.Fprintf(v.out, "%4.0fs  %-14s %s %-8s %d running\x1b[K\n", at.Seconds(), j.Name, bar(j), stand(j), j.Running)
	}
	if v.drawn = len(jobs); last {
		v.drawn = 0
	}
}

// say adds a line that stays.
func (v *view) say(at time.Duration, text string) {
	v.back()
	v.drawn = 0
	rest := ""
	if v.tty {
		rest = "\x1b[J" // what was drawn before is gone
	}
	fmt.Fprintf(v.out, "%4.0fs  ** %s%s\n", at.Seconds(), text, rest)
}

func (v *view) back() {
	if v.drawn > 0 {
		fmt.Fprintf(v.out, "\x1b[%dA", v.drawn)
	}
}

// stand is how far a job came, in a word.
func stand(j *pb.Job) string {
	switch {
	case j.Final:
		return "done"
	case j.Total > 1:
		return fmt.Sprintf("%d%%", 100*j.Progress/j.Total)
	case j.Running > 0:
		return "runs"
	}
	return "waits"
}

// bar is a job's committed share.
func bar(j *pb.Job) string {
	const width = 30
	n := 0
	if j.Total > 0 {
		n = int(width * j.Progress / j.Total)
	}
	return "[" + strings.Repeat("#", n) + strings.Repeat(".", width-n) + "]"
}
