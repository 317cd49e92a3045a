package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"connectrpc.com/connect"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
)

const (
	mib = int64(1) << 20
	// stormUnit is what the storm's sizes are counted in: at least this, and at most mostUnit where a thousandth of the memory, which lines are given in, is large.
	stormUnit, mostUnit = 128 * mib, 256 * mib
	// stormFor bounds the storm. It takes a fifth of that where other programs leave the memory as it is; a build beside it may hold some
	// hundred MiB for minutes, and so long the jobs rightly stand still.
	stormFor = 90 * time.Second
	// stormLook is how often it is looked at.
	stormLook = 250 * time.Millisecond
)

// Of the storm in units: the lines above what is in use at its start, and what the jobs have. Together they pass the severe line; the two that can be cut
// have room below the calm one once the other has ended.
const (
	stormCalm, stormSevere, stormBrink = 5.5, 6.5, 16
	trainHas, sweepHas                 = 3, 2.25
	// own is what a process has besides.
	own = 32 * mib
)

// weather is what a storm on this machine is made of.
type weather struct {
	unit                    int64
	calm, severe, emergency int64 // in parts per thousand
}

// forecast says which storm this machine bears, or why none: as far as its daemon knows its memory.
func forecast(a *pb.Airlock) (weather, error) {
	m := a.GetMemory()
	switch {
	case a.GetLevel() == "off" || a.GetLevel() == "observe":
		return weather{}, calmBecause("no subjob can be made to stand still on this machine (%s: %s)", a.GetLevel(), a.GetWhy())
	case m.GetCapacityBytes() <= 0:
		return weather{}, calmBecause("what memory this machine has is not known")
	}
	least := 2 * (m.CapacityBytes/1000 + 1)
	w := weather{unit: max(stormUnit, (least+mib-1)/mib*mib)}
	if w.unit > mostUnit {
		return weather{}, calmBecause("a thousandth of this machine's memory, in which its lines are given, is %d MiB: too much for a demo",
			m.CapacityBytes/1000/mib)
	}
	line := func(units float64) int64 {
		return (1000*(m.UsedBytes+int64(units*float64(w.unit))) + m.CapacityBytes - 1) / m.CapacityBytes
	}
	w.calm, w.severe, w.emergency = line(stormCalm), line(stormSevere), line(stormBrink)
	if w.emergency > 900 {
		return weather{}, calmBecause("%d of %d MiB of this machine's memory are in use, and a storm is to leave a tenth of it alone",
			m.UsedBytes/mib, m.CapacityBytes/mib)
	}
	return w, nil
}

// file is the daemon's: its lines are just above what is in use, and what is begun is not held against them, since most of what is below is others'. Jobs see the machine's /tmp, since this program may lie there.
func (w weather) file() string {
	line := func(permille int64) string { return fmt.Sprintf("%d.%03d", permille/1000, permille%1000) }
	return fmt.Sprintf("airlock: {calm: %s, severe: %s, emergency: %s, memory: off}\nsubjobs: {tmp: shared}\n", line(w.calm), line(w.severe), line(w.emergency))
}

// machine is a slice for each of the jobs.
func (w weather) machine() machine {
	size := func(units float64) string { return fmt.Sprintf("%dMi", w.bytes(units)/mib+2*own/mib) }
	return machine{gpus: "sim:custom,mem=" + size(trainHas) + "+" + size(sweepHas) + "+" + size(sweepHas), slices: 3, file: w.file()}
}

func (w weather) bytes(units float64) int64 { return int64(units * float64(w.unit)) }

// jobs of the storm: train has all of its memory after two seconds and can't be cut, so nothing of it may be lost; the others leak.
func (w weather) jobs(program string) string {
	const job = `apiVersion: sluice.dev/v1alpha1
kind: Job
metadata: {name: %s}
spec:
  priority: %d
  %s
  memory: %dMi
  command: [%q, hold, "%d", "%d", %s]
  grace: 2s
`
	// Their leases leave time to stand still.
	const leaks = "items: {total: 60, perItem: 400ms, grid: 1, parallelism: 1}"
	mem := func(units float64) int64 { return w.bytes(units)/mib + own/mib }
	return strings.Join([]string{
		fmt.Sprintf(job, "train", 50, "rigid: {walltime: 40s}", mem(trainHas), program, w.bytes(trainHas), w.bytes(trainHas), "9s"),
		fmt.Sprintf(job, "sweep", 5, leaks, mem(sweepHas), program, w.unit/20, w.bytes(sweepHas), "100ms"),
		fmt.Sprintf(job, "scratch", 0, leaks, mem(sweepHas), program, w.unit/20, w.bytes(sweepHas), "100ms"),
	}, "---\n")
}

// storm is the part in which memory runs out on this machine: its lines are put just above what is in use, so that some hundred MiB are a storm, and the machine
// is in no danger. A machine that bears none is told so, and that is no error.
func storm(ctx context.Context, out io.Writer, dir string) error {
	fmt.Fprint(out, `A memory storm on this machine (Airlock, docs/adr/0046-airlock.md)
`)
	err := blow(ctx, out, dir)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var none *calm
	if errors.As(err, &none) {
		fmt.Fprintf(out, "  It is left out: %v\n", err)
		return nil
	}
	if err != nil {
		fmt.Fprintf(out, "  It did not end well: %v\n", err)
		return fmt.Errorf("the storm: %w", err)
	}
	return nil
}

// calm is why a machine bears no storm.
type calm struct{ why string }

func (c *calm) Error() string { return c.why }

func calmBecause(format string, args ...any) error { return &calm{fmt.Sprintf(format, args...)} }

func blow(ctx context.Context, out io.Writer, dir string) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	if err = os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	w, before, err := look(ctx, dir)
	if err != nil {
		return err
	}
	d, err := start(ctx, dir, w.machine())
	if err != nil {
		return fmt.Errorf("%w; its log is %s", err, filepath.Join(dir, "log"))
	}
	defer d.stop()
	if err = d.sluice(ctx, dir, slow.stretch(w.jobs(program)), "submit", "-"); err != nil {
		return err
	}
	fmt.Fprintf(out, `  Three processes: train (priority 50) has %d MiB and can't be cut; sweep (5) and scratch (0) leak up to %d MiB each. The lines are put %d MiB
  (calm) and %d (severe) above what this machine has in use. %s (%s): %s.
`, w.bytes(trainHas)/mib, w.bytes(sweepHas)/mib, w.bytes(stormCalm)/mib, w.bytes(stormSevere)/mib, before.Level, before.Kind, before.Why)
	seen, err := d.follow(ctx, out, before)
	if err != nil {
		return err
	}
	seen.draw(out)
	for _, name := range []string{"scratch", "sweep"} {
		if err := d.quote(ctx, out, "MEMORY", "explain", name); err != nil {
			return err
		}
	}
	return seen.conclude(out)
}

// look starts a daemon that only looks at the memory, and says what it found.
func look(ctx context.Context, dir string) (w weather, a *pb.Airlock, err error) {
	d, err := start(ctx, dir, machine{gpus: "sim:custom,mem=64Mi", slices: 1, file: "airlock: {}\n"})
	if err != nil {
		return w, nil, fmt.Errorf("%w; its log is %s", err, filepath.Join(dir, "log"))
	}
	defer func() {
		d.stop()
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, "data"))) // the next has other slices
	}()
	for until := time.Now().Add(slow.of(5 * time.Second)); ; {
		list, err := d.ListAirlocks(ctx, connect.NewRequest(&pb.ListAirlocksRequest{}))
		if err != nil {
			return w, nil, err
		}
		if a = list.Msg.Airlocks[0]; a.At != nil || a.Level == "off" || time.Now().After(until) {
			w, err = forecast(a)
			return w, a, err
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return w, nil, err
		}
	}
}

// sight is what was seen of a storm.
type sight struct {
	// memory is what was in use beyond what was at the start, in parts of the severe line's distance from there; rows are the jobs, a letter for each look.
	memory []float64
	rows   map[string][]byte
	last   *pb.Airlock
	over   bool
	grown  int64 // what is in use in the end beyond the start
	bad    error // jobs that ended otherwise than they should
}

// follow watches the storm to its end, and shows once what a person would see in its midst.
func (d *daemon) follow(ctx context.Context, out io.Writer, before *pb.Airlock) (*sight, error) {
	s := &sight{rows: map[string][]byte{}}
	shown := false
	for began := time.Now(); time.Since(began) < slow.of(stormFor); {
		locks, err := d.ListAirlocks(ctx, connect.NewRequest(&pb.ListAirlocksRequest{}))
		if err != nil {
			return nil, err
		}
		list, err := d.ListJobs(ctx, connect.NewRequest(&pb.ListJobsRequest{}))
		if err != nil {
			return nil, err
		}
		s.take(before, locks.Msg.Airlocks[0], list.Msg.Jobs)
		if s.over {
			break
		}
		if !shown && len(s.last.Stands) > 0 && s.last.Stands[0].State == pb.Stand_SUSPENDED {
			shown = true
			fmt.Fprintf(out, "\n  After %.1fs, in its midst:  $ sluice airlock\n", time.Since(began).Seconds())
			if err := d.quote(ctx, out, "", "airlock"); err != nil {
				return nil, err
			}
		}
		if err := pause(ctx, stormLook); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// take notes one look.
func (s *sight) take(before, now *pb.Airlock, jobs []*pb.Job) {
	s.last, s.over, s.bad = now, true, failed(jobs)
	s.grown = now.GetMemory().GetUsedBytes() - before.GetMemory().GetUsedBytes()
	s.memory = append(s.memory, float64(s.grown)/float64(max(1, now.SevereBytes-before.GetMemory().GetUsedBytes())))
	still := map[string]pb.Stand_State{}
	for _, st := range now.Stands {
		still[st.Job] = st.State
	}
	for _, j := range jobs {
		mark := byte(' ')
		switch {
		case j.Final:
		case still[j.Name] == pb.Stand_YIELDING || still[j.Name] == pb.Stand_ENDING:
			mark = 'y'
		case still[j.Name] != 0:
			mark = 's'
		case j.Running > 0:
			mark = '='
		default:
			mark = '.'
		}
		s.rows[j.Name] = append(s.rows[j.Name], mark)
		s.over = s.over && j.Final
	}
}

// draw shows the memory and the jobs over time.
func (s *sight) draw(out io.Writer) {
	each := 1 + (len(s.memory)-1)/80
	thin := func(row func(i int) byte) (line []byte) {
		for i := 0; i < len(s.memory); i += each {
			line = append(line, row(i))
		}
		return line
	}
	fmt.Fprintf(out, `
  A character for each %v. Memory, as the node heard of it, in tenths of the way from the start to the severe line, # beyond that;
  = runs, s stands still, y is asked to yield, . waits:
`, time.Duration(each)*stormLook)
	fmt.Fprintf(out, "  %-8s %s\n", "memory", thin(func(i int) byte { return "0123456789#"[min(10, max(0, int(10*s.memory[i])))] }))
	for _, name := range []string{"train", "sweep", "scratch"} {
		fmt.Fprintf(out, "  %-8s %s\n", name, bytes.TrimRight(thin(func(i int) byte { return s.rows[name][i] }), " "))
	}
}

// conclude says in words what came of it.
func (s *sight) conclude(out io.Writer) error {
	c := s.last.GetCounts()
	switch {
	case !s.over:
		return fmt.Errorf("it is not over after %v: other programs of this machine have %d MiB more in use than at its start, "+
			"or the machine is too busy", slow.of(stormFor), s.grown/mib)
	case s.bad != nil:
		return s.bad
	case c.GetSuspended()+c.GetReaddressed()+c.GetReclaimed() == 0:
		fmt.Fprintln(out, "  Nothing had to stand still: other programs of this machine gave back what the storm took.")
		return nil
	}
	fmt.Fprintf(out, "  All three are complete: %d stood still, %d went on, %d were asked to yield, %d were ended.", c.GetSuspended(), c.GetRecovered(), c.GetReaddressed(), c.GetReclaimed())
	if !bytes.ContainsAny(s.rows["train"], "sy") {
		fmt.Fprint(out, " Nothing was done to train.")
	}
	fmt.Fprintln(out)
	return nil
}

// quote runs a command and shows what it says, from the line on that begins with from, up to the next empty one; all of it, if that is empty.
func (d *daemon) quote(ctx context.Context, out io.Writer, from string, args ...string) error {
	text, err := d.says(ctx, args...)
	if err != nil {
		return err
	}
	if from != "" {
		_, rest, found := strings.Cut("\n"+text, "\n"+from)
		if !found {
			return nil
		}
		text, _, _ = strings.Cut(from+rest, "\n\n")
		fmt.Fprintf(out, "\n  $ sluice %s\n", strings.Join(args, " "))
	}
	for line := range strings.Lines(strings.TrimRight(text, "\n") + "\n") {
		fmt.Fprintln(out, strings.TrimRight("    "+line, " \n"))
	}
	return nil
}
