// Package pressure has the command that shows what nodes make of their hosts' memory.
package pressure

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/api/sluice/v1alpha1/sluicev1alpha1connect"
	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/edge/terminal"
	"sluice.dev/sluice/internal/face/cli/live"
	"sluice.dev/sluice/internal/face/cli/session"
	"sluice.dev/sluice/internal/face/cli/show"
)

// stepsShown is how many of the latest steps of a node stand in a table that is not wide.
const stepsShown = 20

// AirlockCmd is the command airlock.
func AirlockCmd(a *session.Session) *cobra.Command {
	var watch bool
	every := show.Length(time.Second)
	c := &cobra.Command{
		Use: "airlock", Aliases: []string{"pressure"}, Short: "Say what is done where memory runs out",
		Long: `Say for each node what its host's memory is like, and what is done about it: what can be
done there (full, freeze-only, observe, off) and why no more, the lines, what is suspended
for want of memory since when and until when at most, and the latest steps with their
numbers: whom they hit, and before whom, by the order of survival. -o wide shows all steps
that are kept, and the places of both in that order.

Up to the calm line nothing is done. From the severe line on nothing new begins, and the
lowest of what runs is suspended, or yields, until there is room; at the emergency line the
lowest is ended. Key airlock of the daemon's file has the lines.

With --watch it stays on the terminal and changes with the memory, until q; without a
terminal it is printed again whenever it has changed.`,
		Example: "  sluice airlock\n  sluice airlock --watch\n  sluice airlock -o wide\n  sluice airlock -o json | jq '.[] | {node, " +
			"level, stands}'",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if time.Duration(every) < 100*time.Millisecond {
				return command.Usage("--every %s: want at least 100ms", command.Short(time.Duration(every)))
			}
			c, err := a.Client()
			if err != nil {
				return err
			}
			v := &airlocks{a: a, c: c}
			if watch {
				return live.Watch(cmd.Context(), a, time.Duration(every), v)
			}
			apply, err := v.Fetch(cmd.Context())
			if err != nil {
				return err
			}
			apply()
			return v.Print(a.Out)
		},
	}
	c.Flags().BoolVarP(&watch, "watch", "w", false, "go on showing it as it changes")
	c.Flags().Var(&every, "every", "with --watch: how often to ask")
	return a.Output(c)
}

// airlocks is the view of sluice airlock.
type airlocks struct {
	live.Scrolled
	a    *session.Session
	c    sluicev1alpha1connect.SluiceServiceClient
	list []*pb.Airlock
}

func (v *airlocks) Fetch(ctx context.Context) (func(), error) {
	resp, err := v.c.ListAirlocks(ctx, connect.NewRequest(&pb.ListAirlocksRequest{}))
	if err != nil {
		return nil, err
	}
	return func() { v.list = resp.Msg.Airlocks }, nil
}

// Print writes all of it in the given format.
func (v *airlocks) Print(out io.Writer) error {
	printed := *v.a.App
	printed.Out = out
	switch printed.Format {
	case "name", "json", "yaml":
		return command.Show(&printed, v.list, AirlockColumns(v.a), (*pb.Airlock).GetNode, "no nodes")
	}
	if len(v.list) == 0 {
		fmt.Fprintln(out, "no nodes")
	}
	for i, l := range v.list {
		if i > 0 {
			fmt.Fprintln(out)
		}
		if err := showAirlock(v.a, out, l, printed.Format == "wide"); err != nil {
			return err
		}
	}
	return nil
}

func (v *airlocks) Frame(columns, rows int, notice string) []terminal.Row {
	out := []terminal.Row{live.Titled(v.a, "sluice airlock", columns)}
	if notice != "" {
		out = append(out, terminal.Row{Text: notice, Style: terminal.Bad})
	}
	var b bytes.Buffer
	_ = v.Print(&b) // a buffer takes everything
	lines := strings.Split(strings.TrimRight(b.String(), "\n"), "\n")
	room := rows - len(out)
	v.First = max(0, min(v.First, len(lines)-room))
	for i, line := range lines[v.First:] {
		if i == room-1 && len(lines)-v.First > room {
			return append(out, terminal.Row{Text: fmt.Sprintf("and %d more lines: down", len(lines)-v.First-i), Style: terminal.Faint})
		}
		out = append(out, terminal.Row{Text: line, Style: airlockStyle(line)})
	}
	return out
}

// airlockStyle is a line's, by what it begins with.
func airlockStyle(line string) terminal.Style {
	head := strings.HasPrefix(line, "GIVES WAY ") || strings.HasPrefix(line, "AT  ")
	switch {
	case head:
		return terminal.Heading
	case strings.Contains(line, ": severe") || strings.Contains(line, ": emergency"):
		return terminal.Notable
	}
	return terminal.Plain
}

// showAirlock is one node for people.
func showAirlock(a *session.Session, out io.Writer, l *pb.Airlock, wide bool) error {
	fmt.Fprintf(out, "%s: %s\n", command.Flat(l.Node), airlockState(l))
	var lines [][2]string
	if l.Level != "off" {
		lines = append(lines, [2]string{"does", fmt.Sprintf("%s (%s): %s", l.Level, l.Kind, l.Why)})
		if l.Watched {
			lines = append(lines, [2]string{"decides", "the machine's watcher, also while the daemon is dead"})
		}
	}
	if m := l.Memory; m != nil {
		lines = append(lines, [2]string{"memory", memoryText(m)},
			[2]string{"lines", fmt.Sprintf("calm below %s, severe from %s, emergency from %s", command.Size(l.CalmBytes),
				command.Size(l.SevereBytes), command.Size(l.EmergencyBytes))},
			[2]string{"swap", fmt.Sprintf("%s of subjobs moved out, room for %s more", sizeOr0(l.ParkedBytes), sizeOr0(l.RoomBytes))},
			[2]string{"gives way", fmt.Sprintf("the lowest by %s, for %s at most, %d times each", orderText(l.Order),
				command.Short(l.Timer.AsDuration()), l.Entries)},
			[2]string{"heard", show.Clock(a, l.At)})
	}
	if c := l.Counts; c != nil && (l.Memory != nil || c.Killed > 0) {
		lines = append(lines, [2]string{"so far", countsText(c)})
	}
	shown := *a.App
	shown.Out = out
	show.Lines((&session.Session{App: &shown}), lines)
	if len(l.Stands) > 0 {
		fmt.Fprintln(out)
		if err := command.Grid(out, wide, l.Stands, standColumns(a, l)); err != nil {
			return err
		}
	}
	return ShowSteps(out, l.Steps, l.Forgotten, wide, AirlockStepColumns(a))
}

// ShowSteps is a table of the latest steps, of all if it is wide, and says how many there were before.
func ShowSteps(out io.Writer, steps []*pb.AirlockStep, older int64, wide bool, columns []command.Column[*pb.AirlockStep]) error {
	if cut := len(steps) - stepsShown; !wide && cut > 0 {
		steps, older = steps[cut:], older+int64(cut)
	}
	if len(steps) == 0 {
		return nil
	}
	fmt.Fprintln(out)
	if err := command.Grid(out, wide, steps, columns); err != nil {
		return err
	}
	if older > 0 {
		fmt.Fprintf(out, "and %d before these\n", older)
	}
	return nil
}

// airlockState is what a node does now, in a sentence.
func airlockState(l *pb.Airlock) string {
	switch {
	case l.Level == "off":
		return "off, nobody looks at its memory: " + command.Flat(l.Why)
	case l.At == nil:
		return "its memory has not been looked at yet"
	case l.Old:
		return "nothing was heard of its memory for long, so nothing follows from it"
	}
	state := l.Memory.GetLevel()
	switch {
	case l.Short:
		state += "; it is short of memory, so nothing is granted and nothing begins"
	case l.Full:
		state += fmt.Sprintf("; nothing is granted until there is room for what had to leave, %s", command.Size(l.LeftBytes))
	}
	if n := len(l.Stands); n > 0 {
		state += fmt.Sprintf("; %s way", show.Plural(n, "subjob gives", "subjobs give"))
	}
	if l.Stuck != "" {
		state += fmt.Sprintf("; the lowest that runs, of job %s, can neither be suspended nor yield, "+
			"and those above it don't make up for it", command.Flat(l.Stuck))
	}
	return state
}

// memoryText is a reading for people.
func memoryText(m *pb.MemoryReading) string {
	s := fmt.Sprintf("%s of %s used (%s)", sizeOr0(m.UsedBytes), command.Size(m.CapacityBytes), Permille(m.Share))
	if m.GrowthBytes > 0 {
		s += fmt.Sprintf(", growing by %s a second", command.Size(m.GrowthBytes))
		if m.Exhausted != nil {
			s += fmt.Sprintf(", full in %s", command.Short(m.Exhausted.AsDuration().Round(100*time.Millisecond)))
		}
	}
	if m.Stall > 0 {
		s += fmt.Sprintf(", stalled for %s of the time", Permille(m.Stall))
	}
	return s
}

// Permille is a share in parts per thousand, in percent.
func Permille(n int32) string { return fmt.Sprintf("%d.%d%%", n/10, n%10) }

func orderText(order string) string {
	if order == "priority" {
		return "priority, then class"
	}
	return "class, then priority"
}

func countsText(c *pb.AirlockCounts) string {
	return fmt.Sprintf("%d suspended, %d went on, %d asked to yield, %d ended, %d killed by their supervisor or the kernel; %s in "+
		"suspension, %s over the severe line, %d decisions",
		c.Suspended, c.Recovered, c.Readdressed, c.Reclaimed, c.Killed, command.Short(c.Stood.AsDuration().Round(time.Second)),
		command.Short(c.OverLine.AsDuration().Round(time.Second)), c.Decisions)
}

// placeText is a place in the order of survival, its parts in the default order.
func placeText(p *pb.SurvivalPlace) string {
	if p.GetClass() == "" {
		return ""
	}
	s := fmt.Sprintf("%s, priority %d, value %d, ran %s, has %s", p.Class, p.Priority, p.Value,
		command.Short(p.Ran.AsDuration().Round(time.Second)), sizeOr0(p.FootprintBytes))
	if p.Outgrown {
		s = fmt.Sprintf("outgrew %s, %s", command.Size(p.PlannedBytes), s)
	}
	return s
}

func placeRecord(p *pb.SurvivalPlace) any {
	if p == nil {
		return nil
	}
	return command.Record{{Key: "outgrown", Value: p.Outgrown}, {Key: "class", Value: p.Class}, {Key: "priority", Value: p.Priority},
		{Key: "value", Value: p.Value},
		{Key: "ranSeconds", Value: show.Seconds(p.Ran)}, {Key: "footprintBytes", Value: p.FootprintBytes},
		{Key: "plannedBytes", Value: p.PlannedBytes}}
}

func readingRecord(m *pb.MemoryReading) any {
	if m == nil {
		return nil
	}
	r := command.Record{{Key: "level", Value: m.Level}, {Key: "usedBytes", Value: m.UsedBytes},
		{Key: "capacityBytes", Value: m.CapacityBytes}, {Key: "growthBytesPerSecond", Value: m.GrowthBytes},
		{Key: "share", Value: float64(m.Share) / 1000}, {Key: "stalled", Value: float64(m.Stall) / 1000}}
	if m.Exhausted != nil {
		r = append(r, command.Pair{Key: "exhaustedSeconds", Value: show.Seconds(m.Exhausted)})
	}
	return r
}

// standColumns show what Airlock does to a node's subjobs.
func standColumns(a *session.Session, l *pb.Airlock) []command.Column[*pb.Stand] {
	type stand = *pb.Stand
	return []command.Column[stand]{
		{Key: "job", Head: "GIVES WAY", Value: func(s stand) any { return s.Job }},
		{Key: "subjob", Head: "SUBJOB", Value: func(s stand) any { return s.Subjob }},
		{Key: "slice", Head: "SLICE", Value: func(s stand) any { return s.Slice }},
		{Key: "state", Head: "STATE", Value: func(s stand) any { return pb.Word(s.State) }},
		{Key: "since", Head: "SINCE", Value: func(s stand) any { return show.Stamp(s.Since) },
			Text: func(s stand) string { return show.Clock(a, s.Since) }},
		{Key: "until", Head: "UNTIL", Value: func(s stand) any { return show.Stamp(s.Until) },
			Text: func(s stand) string { return show.Clock(a, s.Until) }},
		{Key: "times", Head: "TIMES", Value: func(s stand) any { return s.Times }, Text: func(s stand) string {
			if s.Times == 0 {
				return ""
			}
			return fmt.Sprintf("%d of %d", s.Times, l.Entries)
		}},
		{Key: "residentBytes", Head: "HAS", Value: func(s stand) any { return s.ResidentBytes },
			Text: func(s stand) string { return command.Size(s.ResidentBytes) }},
		{Key: "parkedBytes", Head: "MOVED OUT", Value: func(s stand) any { return s.ParkedBytes },
			Text: func(s stand) string { return command.Size(s.ParkedBytes) }},
		{Key: "place", Head: "PLACE", Wide: true, Value: func(s stand) any { return placeRecord(s.Place) },
			Text: func(s stand) string { return placeText(s.Place) }},
		{Key: "why", Head: "WHY", Value: func(s stand) any { return s.Why }},
	}
}

// stepWords are steps for people.
//
//nolint:gochecknoglobals // a table, written to by nobody
var stepWords = map[string]string{"recovered": "went on", "readdressed": "asked to yield", "reclaimed": "ended at once",
	"refused": "can't be suspended"}

func stepWord(step string) string {
	if w := stepWords[step]; w != "" {
		return w
	}
	return step
}

// AirlockStepColumns are what was done, and why.
func AirlockStepColumns(a *session.Session) []command.Column[*pb.AirlockStep] {
	type step = *pb.AirlockStep
	return []command.Column[step]{
		{Key: "at", Head: "AT", Value: func(s step) any { return show.Stamp(s.At) },
			Text: func(s step) string { return show.Clock(a, s.At) }},
		{Key: "decision", Head: "DECISION", Value: func(s step) any { return s.Decision },
			Text: func(s step) string { return show.NonZero(s.Decision) }},
		{Key: "step", Head: "STEP", Value: func(s step) any { return s.Step }, Text: func(s step) string { return stepWord(s.Step) }},
		{Key: "job", Head: "JOB", Value: func(s step) any { return s.Job }},
		{Key: "subjob", Head: "SUBJOB", Value: func(s step) any { return s.Subjob }},
		{Key: "node", Value: func(s step) any { return s.Node }},
		{Key: "slice", Head: "SLICE", Wide: true, Value: func(s step) any { return s.Slice }},
		{Key: "reliefBytes", Head: "FREES", Value: func(s step) any { return s.ReliefBytes }, Text: func(s step) string {
			if s.Step == "recovered" { // what it takes again
				return ""
			}
			return command.Size(s.ReliefBytes)
		}},
		{Key: "memory", Value: func(s step) any { return readingRecord(s.Memory) }},
		{Key: "deficitBytes", Value: func(s step) any { return s.DeficitBytes }},
		{Key: "underwayBytes", Value: func(s step) any { return s.UnderwayBytes }},
		{Key: "coveredBytes", Value: func(s step) any { return s.CoveredBytes }},
		{Key: "place", Head: "PLACE", Wide: true, Value: func(s step) any { return placeRecord(s.Place) },
			Text: func(s step) string { return placeText(s.Place) }},
		{Key: "spared", Value: func(s step) any { return s.Spared }},
		{Key: "sparedSubjob", Value: func(s step) any { return s.SparedSubjob }},
		{Key: "sparedPlace", Head: "PLACE OF THE NEXT", Wide: true, Value: func(s step) any { return placeRecord(s.SparedPlace) },
			Text: func(s step) string { return placeText(s.SparedPlace) }},
		{Key: "below", Value: func(s step) any { return s.Below }},
		{Key: "stoodSeconds", Value: func(s step) any { return show.Seconds(s.Stood) }},
		{Key: "progress", Value: func(s step) any { return s.Progress }},
		{Key: "why", Head: "WHY", Value: func(s step) any { return s.Why }, Text: stepWhy},
	}
}

// JobStepColumns are the steps that were taken with one job's subjobs.
func JobStepColumns(a *session.Session) []command.Column[*pb.AirlockStep] {
	columns := []command.Column[*pb.AirlockStep]{{Head: "MEMORY", Text: func(s *pb.AirlockStep) string { return show.Clock(a, s.At) }}}
	for _, c := range AirlockStepColumns(a) {
		switch c.Head {
		case "STEP", "SUBJOB", "SLICE", "WHY":
			c.Wide = false
			columns = append(columns, c)
		}
	}
	return columns
}

// stepWhy is why a step was taken, in numbers.
func stepWhy(s *pb.AirlockStep) string {
	out := s.Why
	if m := s.Memory; m != nil && s.Step != "ended" {
		out += fmt.Sprintf(": %s, %s of %s", m.Level, Permille(m.Share), command.Size(m.CapacityBytes))
		if s.DeficitBytes > 0 {
			out += fmt.Sprintf(", %s too much", command.Size(s.DeficitBytes))
		}
	}
	if s.Spared != "" {
		out += fmt.Sprintf("; before %s (%s): %s", s.Spared, s.SparedSubjob, s.Below)
	}
	if s.Stood != nil {
		out += fmt.Sprintf("; after %s", command.Short(s.Stood.AsDuration().Round(100*time.Millisecond)))
	}
	if s.Step == "ended" {
		out += fmt.Sprintf(", complete up to unit %d", s.Progress)
	}
	return out
}

// sizeOr0 is a size, also where there is nothing.
func sizeOr0(n int64) string {
	if n <= 0 {
		return "0"
	}
	return command.Size(n)
}

// AirlockColumns are the properties of a node's Airlock, for programs.
func AirlockColumns(a *session.Session) []command.Column[*pb.Airlock] {
	type lock = *pb.Airlock
	c := (*pb.Airlock).GetCounts
	return []command.Column[lock]{
		{Key: "node", Value: func(l lock) any { return l.Node }},
		{Key: "level", Value: func(l lock) any { return l.Level }},
		{Key: "kind", Value: func(l lock) any { return l.Kind }},
		{Key: "why", Value: func(l lock) any { return l.Why }},
		{Key: "watched", Value: func(l lock) any { return l.Watched }},
		{Key: "at", Value: func(l lock) any { return show.Stamp(l.At) }},
		{Key: "old", Value: func(l lock) any { return l.Old }},
		{Key: "memory", Value: func(l lock) any { return readingRecord(l.Memory) }},
		{Key: "calmBytes", Value: func(l lock) any { return l.CalmBytes }},
		{Key: "severeBytes", Value: func(l lock) any { return l.SevereBytes }},
		{Key: "emergencyBytes", Value: func(l lock) any { return l.EmergencyBytes }},
		{Key: "roomBytes", Value: func(l lock) any { return l.RoomBytes }},
		{Key: "parkedBytes", Value: func(l lock) any { return l.ParkedBytes }},
		{Key: "short", Value: func(l lock) any { return l.Short }},
		{Key: "full", Value: func(l lock) any { return l.Full }},
		{Key: "leftBytes", Value: func(l lock) any { return l.LeftBytes }},
		{Key: "stuck", Value: func(l lock) any { return l.Stuck }},
		{Key: "timerSeconds", Value: func(l lock) any { return show.Seconds(l.Timer) }},
		{Key: "entries", Value: func(l lock) any { return l.Entries }},
		{Key: "order", Value: func(l lock) any { return l.Order }},
		{Key: "counts", Value: func(l lock) any {
			return command.Record{{Key: "suspended", Value: c(l).GetSuspended()}, {Key: "recovered", Value: c(l).GetRecovered()},
				{Key: "readdressed", Value: c(l).GetReaddressed()},
				{Key: "reclaimed", Value: c(l).GetReclaimed()}, {Key: "killed", Value: c(l).GetKilled()},
				{Key: "decisions", Value: c(l).GetDecisions()},
				{Key: "stoodSeconds", Value: show.Seconds(c(l).GetStood())},
				{Key: "overLineSeconds", Value: show.Seconds(c(l).GetOverLine())}}
		}},
		{Key: "stands", Value: func(l lock) any { return show.DescribeAll(l.Stands, standColumns(a, l)) }},
		{Key: "steps", Value: func(l lock) any { return show.DescribeAll(l.Steps, AirlockStepColumns(a)) }},
		{Key: "forgotten", Value: func(l lock) any { return l.Forgotten }},
	}
}
