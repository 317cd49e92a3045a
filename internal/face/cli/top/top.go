// Package top has the command that shows all of a daemon on one terminal.
package top

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/api/sluice/v1alpha1/sluicev1alpha1connect"
	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/edge/terminal"
	"sluice.dev/sluice/internal/face/cli/jobs"
	"sluice.dev/sluice/internal/face/cli/live"
	"sluice.dev/sluice/internal/face/cli/nodes"
	"sluice.dev/sluice/internal/face/cli/pressure"
	"sluice.dev/sluice/internal/face/cli/session"
	"sluice.dev/sluice/internal/face/cli/show"
)

// rateOver is the stretch of time over which rates are taken.
const rateOver = 10 * time.Second

// TopCmd is the command top.
func TopCmd(a *session.Session) *cobra.Command {
	every := show.Length(time.Second)
	c := &cobra.Command{
		Use: "top", Short: "Show jobs, slices and windows as they change",
		Long: `Show jobs, slices, windows and rates on the whole terminal, live. Keys: q quits, up and
down (or k and j) move through the jobs, space asks at once.

Without a terminal, or with -o json, one picture is printed.`,
		Example: "  sluice top\n  sluice top --every 5s\n  sluice top -o json | jq .slices",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if time.Duration(every) < 100*time.Millisecond {
				return command.Usage("--every %s: want at least 100ms", command.Short(time.Duration(every)))
			}
			c, err := a.Client()
			if err != nil {
				return err
			}
			t := &top{a: a, c: c, rates: map[string][]point{}}
			if live.FullScreen(a) {
				return live.Live(cmd.Context(), a, time.Duration(every), t)
			}
			apply, err := t.Fetch(cmd.Context())
			if err != nil {
				return err
			}
			apply()
			return t.Print()
		},
	}
	c.Flags().Var(&every, "every", "how often to ask")
	return a.Output(c)
}

// point is how many units of a job, or subjobs of all, were done at a moment.
type point struct {
	at   time.Time
	done int64
}

// top is the view of sluice top.
type top struct {
	a     *session.Session
	c     sluicev1alpha1connect.SluiceServiceClient
	about *pb.About
	jobs  []*pb.Job
	// counts are all jobs of each group.
	counts  [topGroups]int
	slices  []*pb.Slice
	windows []*pb.Window
	// airlocks of the nodes; nil where the daemon does not support them. stands are the states of subjobs that give way for memory, by
	// slice.
	airlocks []*pb.Airlock
	stands   map[string]pb.Stand_State
	// still is how many subjobs of each job are suspended.
	still map[string]int
	// rates are the points of the last rateOver by job; under the empty name subjobs committed.
	rates map[string][]point
	// committed sums what jobs have committed since the first look; subjobs is what each of those shown had at the last, looked.
	committed int64
	subjobs   map[string]int32
	looked    time.Time
	// first is the first job that is shown.
	first int
}

// topGroups is how many groups of jobs there are: those that run, wait, are paused, and are over.
const topGroups = 4

// topGroup is the states of a group, and how many of its newest jobs are shown.
func topGroup(i int) (states []pb.Job_State, most int) {
	switch i {
	case 0:
		return []pb.Job_State{pb.Job_RUNNING}, 500
	case 1:
		return []pb.Job_State{pb.Job_PENDING}, 300
	case 2:
		return []pb.Job_State{pb.Job_PAUSED}, 100
	}
	return []pb.Job_State{pb.Job_COMPLETED, pb.Job_FAILED, pb.Job_CANCELLED, pb.Job_EXPIRED, pb.Job_NEVER}, 300
}

func (t *top) Fetch(ctx context.Context) (func(), error) {
	about, err := t.c.About(ctx, connect.NewRequest(&pb.AboutRequest{}))
	if err != nil {
		return nil, err
	}
	var all []*pb.Job
	var counts [topGroups]int
	for i := range topGroups {
		states, most := topGroup(i)
		list, failed := jobs.ListJobs(ctx, t.c, &pb.ListJobsRequest{States: states}, most)
		if failed != nil {
			return nil, failed
		}
		all, counts[i] = append(all, list.Jobs...), len(list.Jobs)+int(list.Older)
	}
	parts, err := t.c.ListSlices(ctx, connect.NewRequest(&pb.ListSlicesRequest{}))
	if err != nil {
		return nil, err
	}
	windows, err := t.c.ListWindows(ctx, connect.NewRequest(&pb.ListWindowsRequest{}))
	if err != nil {
		return nil, err
	}
	memory, err := t.c.ListAirlocks(ctx, connect.NewRequest(&pb.ListAirlocksRequest{}))
	if err != nil && connect.CodeOf(err) != connect.CodeUnimplemented { // a daemon of before
		return nil, err
	}
	return func() {
		t.about, t.jobs, t.counts, t.slices, t.windows = about.Msg.About, all, counts, parts.Msg.Slices, windows.Msg.Windows
		t.airlocks, t.stands, t.still = nil, map[string]pb.Stand_State{}, map[string]int{}
		if memory != nil {
			t.airlocks = memory.Msg.Airlocks
		}
		for _, l := range t.airlocks {
			for _, s := range l.Stands {
				if t.stands[s.Slice] = s.State; s.State == pb.Stand_SUSPENDED || s.State == pb.Stand_SUSPENDING {
					t.still[s.Job]++
				}
			}
		}
		slices.SortStableFunc(t.jobs, byInterest)
		t.measure()
	}, nil
}

// byInterest puts what runs first, then what waits, then what is over, the latest first.
func byInterest(a, b *pb.Job) int {
	rank := func(j *pb.Job) int {
		switch {
		case j.Final:
			return 2
		case j.Running > 0:
			return 0
		}
		return 1
	}
	if c := cmp.Compare(rank(a), rank(b)); c != 0 || !a.Final {
		return c
	}
	return b.Ended.AsTime().Compare(a.Ended.AsTime())
}

// measure takes the points of now and forgets those that are too old.
func (t *top) measure() {
	now := t.a.Now()
	known, subjobs := map[string]bool{"": true}, map[string]int32{}
	add := func(name string, done int64) {
		list := append(t.rates[name], point{now, done})
		for len(list) > 2 && now.Sub(list[1].at) >= rateOver {
			list = list[1:]
		}
		t.rates[name] = list
	}
	for _, j := range t.jobs {
		known[j.Name] = true
		if before, seen := t.subjobs[j.Name]; seen || j.Submitted.AsTime().After(t.looked) {
			t.committed += max(0, int64(j.Subjobs-before))
		}
		if subjobs[j.Name] = j.Subjobs; !j.Final {
			add(j.Name, j.Progress+j.Reported)
		}
	}
	t.subjobs, t.looked = subjobs, now
	add("", t.committed)
	for name := range t.rates {
		if !known[name] {
			delete(t.rates, name)
		}
	}
}

// rate is how much is done in a second, over the last time; what was begun again makes it no less than 0.
func (t *top) rate(name string) (float64, bool) {
	list := t.rates[name]
	if len(list) < 2 {
		return 0, false
	}
	first, last := list[0], list[len(list)-1]
	if d := last.at.Sub(first.at).Seconds(); d > 0 {
		return max(0, float64(last.done-first.done)/d), true
	}
	return 0, false
}

// rateOf is a job's rate; before there is one, its mean since it began.
func (t *top) rateOf(j *pb.Job) string {
	if j.Final || j.Running == 0 {
		return ""
	}
	r, ok := t.rate(j.Name)
	if since := t.a.Now().Sub(j.Started.AsTime()).Seconds(); !ok && j.Started != nil && since > 0 {
		r, ok = float64(j.Progress+j.Reported)/since, true
	}
	if !ok {
		return ""
	}
	return perSecond(r)
}

func perSecond(r float64) string {
	switch {
	case r == 0:
		return "0/s"
	case r < 0.1:
		return strconv.FormatFloat(60*r, 'f', 1, 64) + "/min"
	case r < 10:
		return strconv.FormatFloat(r, 'f', 1, 64) + "/s"
	}
	return strconv.FormatFloat(r, 'f', 0, 64) + "/s"
}

func (t *top) Key(k terminal.Key) {
	step := map[terminal.Key]int{terminal.KeyUp: -1, terminal.KeyDown: 1, terminal.KeyPageUp: -10, terminal.KeyPageDown: 10}[k]
	t.first = max(0, min(t.first+step, len(t.jobs)-1))
}

// section is a table of a screen.
type section struct {
	lines []string // the heads first
	style func(i int) terminal.Style
}

func (t *top) Frame(columns, rows int, notice string) []terminal.Row {
	out := t.head(columns, notice)
	below := t.jobs[min(t.first, max(0, len(t.jobs)-1)):]
	parts := [3]section{
		{live.Tabled(t.slices, t.sliceColumns(columns)), func(i int) terminal.Style {
			if t.stands[t.slices[i].Id] != 0 {
				return terminal.Notable
			}
			return map[pb.Slice_State]terminal.Style{
				pb.Slice_RUNNING: terminal.Good, pb.Slice_QUARANTINED: terminal.Bad, pb.Slice_UNCONFIRMED: terminal.Bad,
				pb.Slice_RESERVED: terminal.Notable,
			}[t.slices[i].State]
		}},
		{live.Tabled(below, t.jobColumns(columns)), func(i int) terminal.Style { return jobs.StyleOf(below[i]) }},
		{live.Tabled(t.windows, t.windowColumns()), func(int) terminal.Style { return terminal.Plain }},
	}
	for i, lines := range heights([3]int{len(t.slices), len(below), len(t.windows)}, rows-len(out)) {
		if lines == 0 {
			continue
		}
		out = append(out, terminal.Row{}, terminal.Row{Text: parts[i].lines[0], Style: terminal.Heading})
		body := parts[i].lines[1:]
		if len(body) > lines {
			body = body[:lines-1]
		}
		for n, line := range body {
			out = append(out, terminal.Row{Text: line, Style: parts[i].style(n)})
		}
		if rest := len(parts[i].lines) - 1 - len(body); rest > 0 {
			out = append(out, terminal.Row{Text: fmt.Sprintf("and %d more", rest), Style: terminal.Faint})
		}
	}
	return out
}

// heights is how many lines the slices, jobs and windows get of room, where each part also takes a blank line and its
// heads. Jobs get what the others leave, which have a third and a quarter, and more where jobs need less.
func heights(items [3]int, room int) (lines [3]int) {
	const head = 2
	for _, i := range []int{1, 0, 2} { // on a small terminal the jobs are what is left
		if items[i] > 0 && room > head {
			lines[i] = 1
			room -= head + 1
		}
	}
	grow := func(i, most int) {
		if lines[i] > 0 {
			more := max(0, min(items[i]-lines[i], most, room))
			lines[i], room = lines[i]+more, room-more
		}
	}
	grow(0, room/3)
	grow(2, room/4)
	for _, i := range []int{1, 0, 2} {
		grow(i, room)
	}
	return lines
}

// head is what stands above the tables.
func (t *top) head(columns int, notice string) []terminal.Row {
	left := fmt.Sprintf("sluice top  %s  up %s  %s, %s", t.about.GetNode(),
		command.Short(t.about.GetUptime().AsDuration().Round(time.Second)), t.about.GetMechanism(), t.about.GetPolicy())
	right := t.a.Now().Format("15:04:05")
	title := terminal.Cut(left, columns-len(right)-2)
	title += strings.Repeat(" ", max(1, columns-len([]rune(title))-len(right))) + right
	subjobs := 0
	for _, j := range t.jobs {
		subjobs += int(j.Running)
	}
	busy := map[string]int{}
	for _, s := range t.slices {
		busy[pb.Word(s.State)]++
	}
	unanswered := 0
	for _, w := range t.windows {
		if w.State == pb.Window_UNANSWERED {
			unanswered++
		}
	}
	committed := ""
	if r, ok := t.rate(""); ok {
		committed = ", " + perSecond(r) + " committed"
	}
	rows := []terminal.Row{
		{Text: title, Style: terminal.Title},
		{Text: fmt.Sprintf("jobs     %d running  %d waiting  %s%d over", t.counts[0], t.counts[1], some(t.counts[2], "paused"),
			t.counts[3])},
		{Text: fmt.Sprintf("subjobs  %d running%s", subjobs, committed)},
		{Text: fmt.Sprintf("slices   %d of %d busy %s  %s%s%s", busy["running"], len(t.slices), bar(busy["running"], len(t.slices)),
			some(busy["reserved"], "reserved"), some(busy["idle"], "idle"), some(busy["quarantined"]+busy["unconfirmed"], "not usable"))},
		{Text: fmt.Sprintf("windows  %d on offer  %s", len(t.windows), some(unanswered, "unanswered"))},
	}
	rows = append(rows, t.memory()...)
	if trouble := t.about.GetTrouble(); trouble != "" {
		rows = append(rows, terminal.Row{Text: "TROUBLE  " + trouble, Style: terminal.Bad})
	}
	if notice != "" {
		rows = append(rows, terminal.Row{Text: notice, Style: terminal.Bad})
	}
	return rows
}

// memoryRows is how many nodes' memory stands on a screen.
const memoryRows = 4

// memory is a line for the memory of each node that looks at it.
func (t *top) memory() (rows []terminal.Row) {
	for _, l := range t.airlocks {
		if l.Memory == nil || l.Level == "off" {
			continue
		}
		if len(rows) == memoryRows {
			return append(rows[:memoryRows-1], terminal.Row{Text: "         and of more nodes: sluice airlock", Style: terminal.Faint})
		}
		state, style := l.Memory.Level, terminal.Plain
		switch {
		case l.Old:
			state = "nothing heard for long"
		case l.Short:
			state, style = state+", short", terminal.Notable
		case l.Full:
			state, style = state+", no room for what had to leave", terminal.Notable
		}
		if l.Memory.Level == "emergency" && !l.Old {
			style = terminal.Bad
		}
		used, of := int(l.Memory.UsedBytes>>20), int(l.Memory.CapacityBytes>>20)
		rows = append(rows, terminal.Row{Text: fmt.Sprintf("memory   %s %s %s  %s  %s  %s", pressure.Permille(l.Memory.Share),
			bar(min(used, of), of), command.Size(l.Memory.CapacityBytes), state,
			some(len(l.Stands), "giving way"), l.Node), Style: style})
	}
	return rows
}

// some is a number of something, nothing for none.
func some(n int, what string) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d %s  ", n, what)
}

// bar is a share of ten.
func bar(n, of int) string {
	if of == 0 {
		return ""
	}
	full := (n*10 + of/2) / of
	return "[" + strings.Repeat("#", full) + strings.Repeat(".", 10-full) + "]"
}

func (t *top) jobColumns(columns int) []command.Column[*pb.Job] {
	type job = *pb.Job
	list := []command.Column[job]{{Head: "JOB", Text: func(j job) string { return j.Name }}}
	if columns >= 120 {
		list = append(list, command.Column[job]{Head: "QUEUE", Text: func(j job) string { return j.Queue }},
			command.Column[job]{Head: "KIND", Text: func(j job) string { return pb.Word(j.Kind) }})
	}
	return append(list,
		command.Column[job]{Head: "STATE", Text: func(j job) string { return pb.Word(j.State) }},
		command.Column[job]{Head: "PROGRESS", Text: jobs.Progress},
		command.Column[job]{Head: "RATE", Text: t.rateOf},
		command.Column[job]{Head: "RUN", Text: func(j job) string {
			if n := t.still[j.Name]; n > 0 {
				return fmt.Sprintf("%d (%d still)", j.Running, n)
			}
			return show.NonZero(int64(j.Running))
		}},
		command.Column[job]{Head: "DONE IN", Text: func(j job) string {
			if j.Final {
				return ""
			}
			return strings.TrimPrefix(show.Ahead(t.a, "", j.FinishEarly, j.FinishLate), " in ")
		}},
		command.Column[job]{Head: "REASON", Text: func(j job) string { return j.Reason }},
	)
}

func (t *top) sliceColumns(columns int) []command.Column[*pb.Slice] {
	type slice = *pb.Slice
	list := []command.Column[slice]{{Head: "SLICE", Text: func(s slice) string { return s.Id }}}
	if columns >= 120 {
		list = append(list, command.Column[slice]{Head: "MODEL", Text: func(s slice) string { return s.Model }})
	}
	return append(list,
		command.Column[slice]{Head: "MEMORY", Text: func(s slice) string { return command.Size(s.MemoryBytes) }},
		command.Column[slice]{Head: "STATE", Text: func(s slice) string {
			if stands := t.stands[s.Id]; stands != 0 {
				return pb.Word(stands)
			}
			return pb.Word(s.State)
		}},
		command.Column[slice]{Head: "JOB", Text: func(s slice) string { return s.Job }},
		command.Column[slice]{Head: "LEFT", Text: func(s slice) string {
			if s.Until == nil {
				return ""
			}
			return command.Short(max(0, s.Until.AsTime().Sub(t.a.Now()).Round(time.Second)))
		}},
		command.Column[slice]{Head: "REASON", Text: func(s slice) string { return s.Reason }},
	)
}

func (t *top) windowColumns() []command.Column[*pb.Window] {
	type window = *pb.Window
	return []command.Column[window]{
		{Head: "WINDOW ON", Text: func(w window) string { return w.Slice }},
		{Head: "START", Text: func(w window) string { return show.Clock(t.a, w.Start) }},
		{Head: "LENGTH", Text: func(w window) string {
			if w.End == nil {
				return "open"
			}
			return command.Short(w.End.AsTime().Sub(w.Start.AsTime()).Round(time.Second))
		}},
		{Head: "ENDED BY", Text: func(w window) string { return pb.Word(w.Until) }},
		{Head: "STATE", Text: func(w window) string { return pb.Word(w.State) }},
		{Head: "ANSWERS", Text: func(w window) string { return fmt.Sprintf("%d of %d", w.Answers, w.Asked) }},
		{Head: "REASON", Text: func(w window) string { return w.Reason }},
	}
}

// Print writes one picture.
func (t *top) Print() error {
	a := t.a
	switch a.Format {
	case "name":
		for _, j := range t.jobs {
			fmt.Fprintln(a.Out, j.Name)
		}
		return nil
	case "json", "yaml":
		r := command.Record{{Key: "node", Value: t.about.GetNode()}, {Key: "mechanism", Value: t.about.GetMechanism()},
			{Key: "policy", Value: t.about.GetPolicy()}, {Key: "trouble", Value: t.about.GetTrouble()}}
		return a.Dump(append(r, command.Pair{Key: "jobs", Value: show.DescribeAll(t.jobs, jobs.JobColumns(a))},
			command.Pair{Key: "slices", Value: show.DescribeAll(t.slices, nodes.SliceColumns(a))},
			command.Pair{Key: "windows", Value: show.DescribeAll(t.windows, nodes.WindowColumns(a))},
			command.Pair{Key: "airlocks", Value: show.DescribeAll(t.airlocks, pressure.AirlockColumns(a))}))
	}
	const wide, tall = 160, 1 << 20
	for _, r := range t.Frame(wide, tall, "") {
		fmt.Fprintln(a.Out, strings.TrimRight(terminal.Line(r.Text), " "))
	}
	return nil
}
