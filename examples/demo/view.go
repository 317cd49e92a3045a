package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/internal/edge/terminal"
)

// often is how far apart the lines are where none can be drawn again.
const often = 15 * time.Second

// view shows how a part of the demo comes on: one line that is drawn again in place on a terminal, elsewhere a line now and
// then.
type view struct {
	out  io.Writer
	live *terminal.Live // nil where nothing can be drawn again
	// title of the part, slices there are, and what happened last, which stands in the line until fresh.
	title       string
	slices      int
	news        string
	fresh, next time.Duration
}

func newView(out io.Writer, title string, slices int) *view {
	v := &view{out: out, title: title, slices: slices}
	if movable(out) {
		v.live = terminal.NewLive(out)
	}
	return v
}

// movable says whether out is a terminal that can move its cursor.
func movable(out io.Writer) bool {
	return terminal.Is(out) && os.Getenv("TERM") != "dumb" && os.Getenv("TERM") != ""
}

// show draws how far the jobs are; the last time it takes the line away.
func (v *view) show(at time.Duration, jobs []*pb.Job, last bool) {
	if v.live != nil {
		if last {
			v.live.Clear()
			return
		}
		v.live.Show(v.line(at, jobs))
		return
	}
	if at >= v.next && !last {
		v.next = at.Truncate(often) + often
		fmt.Fprintln(v.out, v.line(at, jobs))
	}
}

// line says it all in one.
func (v *view) line(at time.Duration, jobs []*pb.Job) string {
	done, share := 0, 0.0
	for _, j := range jobs {
		if j.Final {
			done++
			share++
		} else if j.Total > 0 {
			share += float64(j.Progress) / float64(j.Total)
		}
	}
	share /= float64(max(1, len(jobs)))
	const width = 12 // all of it has to fit 80 columns
	n := int(width * share)
	rest := fmt.Sprintf("%d of %d jobs done, %d slices busy", done, len(jobs), min(v.slices, running(jobs)))
	if at < v.fresh && v.live != nil {
		rest = v.news
	}
	return fmt.Sprintf("%s %3.0fs [%s%s] %3.0f%%  %s", v.title, at.Seconds(), strings.Repeat("#", n), strings.Repeat(".", width-n), 100*share, rest)
}

// fresh is how long what happened stands in the line.
const fresh = 4 * time.Second

// say tells what happened: in the line, or as a line of its own.
func (v *view) say(at time.Duration, text string) {
	if v.news, v.fresh = text, at+fresh; v.live == nil {
		fmt.Fprintf(v.out, "%s %3.0fs %s\n", v.title, at.Seconds(), text)
	}
}
