// Command limits measures what it is worth to know how wrong users' time limits are. It plays a cluster's log on a host that plans by
// limits, fills what that leaves with pilots whose lengths are chosen in several ways, and counts what of the gaps' time becomes work that
// is kept. docs/benchmarks.md explains the figures.
//
//	go run ./bench/limits -data ../shared/data -write docs/benchmarks.md
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strconv"
	"strings"
	"time"

	"sluice.dev/sluice/bench/hpc2n"
	"sluice.dev/sluice/bench/page"
	"sluice.dev/sluice/bench/program"
)

func main() { program.Main("limits", run) }

// believedNames are those of the chances at which learned ends are read, as people write them.
var believedNames = []string{".05", ".1"}

func run(context.Context) error {
	data := flag.String("data", "../shared/data", "the folder of traces")
	write := flag.String("write", "", "put the tables between the marks of this page")
	speeds := flag.String("speeds", "1,2,2.5", "how many times as fast jobs come, with commas between")
	start := flag.Duration("start", 10*time.Second, "what a pilot takes until its machine has joined")
	flag.Parse()
	if *start < 0 {
		return errors.New("-start is at least 0")
	}
	said := page.Row("load", "jobs", "users", "pilots asked for", "with an end in the plan", "it came sooner", "by a job that came later",
		"before the end learned at .05", "at .1") + "\n|---|---|---|---|---|---|---|---|---|\n"
	head := []string{"load", "longest", "pilots' ends", "pilots", "preempted"}
	for i := range works {
		head = append(head, "saves "+works[i].name)
	}
	kept := page.Row(head) + "\n" + strings.Repeat("|---", len(head)) + "|\n"
	for text := range strings.SplitSeq(*speeds, ",") {
		speed, err := strconv.ParseFloat(text, 64)
		if err != nil || !(speed > 0) {
			return fmt.Errorf("-speeds %q: want numbers above 0", text)
		}
		jobs, err := hostJobs(*data, speed)
		if err != nil {
			return err
		}
		believed := []*belief{learned(50_000), learned(100_000)}
		f := play(hpc2n.Nodes, *start, jobs, ways(believed), believed)
		busy := fmt.Sprintf("%.2f", load(jobs))
		users := map[string]bool{}
		for i := range jobs {
			users[jobs[i].user] = true
		}
		said += f.said(busy, strconv.Itoa(len(jobs)), strconv.Itoa(len(users))) + "\n"
		kept += f.kept(busy)
	}
	fmt.Print(said, "\n", kept)
	if *write == "" {
		return nil
	}
	return page.Between(*write, "limits", said+"\n"+kept)
}

// ways that are compared. The first is what Sluice does.
func ways(believed []*belief) []*way {
	const long, short = 2 * time.Hour, 30 * time.Minute
	return []*way{
		{name: "the plan's", longest: long},
		{name: "learned at " + believedNames[0], longest: long, ends: believed[0]},
		{name: "learned at " + believedNames[1], longest: long, ends: believed[1]},
		{name: "the plan's; subjobs' learned at " + believedNames[1], longest: long, ends: believed[1], subjobs: true},
		{name: "run times known", longest: long, ends: runs()},
		{name: "gaps known", longest: long, knows: true},
		{name: "the plan's", longest: short},
		{name: "the plan's; subjobs' learned at " + believedNames[1], longest: short, ends: believed[1], subjobs: true},
	}
}

// said is the line of what was claimed, behind some cells.
func (f *fill) said(cells ...string) string {
	o := &f.outcome
	share := func(n, of int) string { return fmt.Sprintf("%.0f%%", 100*float64(n)/float64(max(1, of))) }
	cells = append(cells, strconv.Itoa(o.asked), share(o.claimed, o.asked), share(o.early, o.over), share(o.newcomer, o.over))
	for _, n := range o.failed {
		cells = append(cells, share(n, o.over))
	}
	return page.Row(cells)
}

// kept are the lines of what of the gaps' time is kept.
func (f *fill) kept(load string) (text string) {
	for _, w := range f.ways {
		cells := []string{load, fmt.Sprintf("%g min", w.longest.Minutes()), w.name, strconv.Itoa(w.asked), strconv.Itoa(w.preempted)}
		for _, d := range w.kept {
			cells = append(cells, fmt.Sprintf("%.1f%%", 100*d.Seconds()/f.idle.Seconds()))
		}
		text += page.Row(cells) + "\n"
	}
	return text
}
