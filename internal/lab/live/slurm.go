package live

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"sluice.dev/sluice/internal/lab/history/record"
	"sluice.dev/sluice/internal/lab/history/slurm"
)

// Slurm asks Slurm's own commands. It runs sacct, squeue and scontrol show, and nothing else.
type Slurm struct {
	// Run runs a command and returns what it prints.
	Run func(ctx context.Context, name string, args ...string) ([]byte, error)

	fields []string // that this version of sacct has; nil before it was asked
	// What was kept: when accounting was asked last, and when as far back as a day; the rows that stand in the record, by rowKey, with when
	// sacct printed them last; nodes by name; reservations; the queue.
	asked, far   time.Time
	rows         map[string]time.Time
	nodes        map[string]string
	reservations []string
	running      map[string]record.Job
}

// NewSlurm goes on where a record ended.
func NewSlurm(d *Dir) *Slurm {
	return &Slurm{Run: Command, asked: d.last, running: d.running, rows: d.rows}
}

// Name is part of Source.
func (s *Slurm) Name() string { return "slurm" }

// Command runs a command of Slurm with clocks in UTC and without what users set to see less.
func Command(ctx context.Context, name string, args ...string) ([]byte, error) {
	c := exec.CommandContext(ctx, name, args...)
	for _, pair := range os.Environ() {
		key, _, _ := strings.Cut(pair, "=")
		if !strings.HasPrefix(key, "SQUEUE_") && !strings.HasPrefix(key, "SACCT_") && !strings.HasPrefix(key, "SCONTROL_") {
			c.Env = append(c.Env, pair)
		}
	}
	c.Env = append(c.Env, "TZ=UTC", "SLURM_TIME_FORMAT=%s", "LC_ALL=C")
	c.WaitDelay = time.Second // a child of it may keep the pipe
	var said bytes.Buffer
	c.Stderr = &said
	out, err := c.Output()
	if err == nil {
		return out, nil
	}
	line := name + " " + args[0]
	if name == "scontrol" {
		line = strings.Join(append([]string{name}, args...), " ")
	}
	switch text := strings.TrimSpace(said.String()); {
	case ctx.Err() != nil && errors.Is(context.Cause(ctx), context.DeadlineExceeded):
		return nil, fmt.Errorf("%s: no answer in time: ask it by hand whether Slurm's daemons answer", line)
	case errors.Is(err, exec.ErrNotFound):
		return nil, fmt.Errorf("%s: %w: run this where Slurm's commands are, or put them on PATH", line, err)
	case text != "":
		return nil, fmt.Errorf("%s: %w: %s", line, err, strings.Join(strings.Fields(text), " "))
	}
	return nil, fmt.Errorf("%s: %w", line, err)
}

// How far back accounting is asked: it hears of ends late, and more so behind an outage of its daemon.
const (
	overlap    = 10 * time.Minute
	farOverlap = 25 * time.Hour
)

// Look is part of Source.
func (s *Slurm) Look(ctx context.Context, now time.Time, anew bool) (lines []record.Line, keep func(), err error) {
	if s.fields == nil {
		if err = s.known(ctx); err != nil {
			return nil, nil, err
		}
	}
	from, far := now, s.far
	if !s.asked.IsZero() {
		from = s.asked
	}
	if from = from.Add(-overlap); now.Sub(s.far) >= time.Hour {
		from, far = minTime(from, now.Add(-farOverlap)), now
	}
	const clock = "2006-01-02T15:04:05"
	dump := slurm.Arguments(record.Delimiter, from.UTC().Format(clock), now.UTC().Format(clock), s.fields)
	accounting, err := s.Run(ctx, "sacct", dump...)
	if err != nil {
		return nil, nil, err
	}
	queue, err := s.Run(ctx, "squeue", "-a", "-h", "-o", "%A|%T|%S")
	if err != nil {
		return nil, nil, err
	}
	nodes, err := s.Run(ctx, "scontrol", "show", "node", "-o")
	if err != nil {
		return nil, nil, err
	}
	reserved, err := s.Run(ctx, "scontrol", "show", "reservation", "-o")
	if err != nil {
		return nil, nil, err
	}
	next := &Slurm{Run: s.Run, fields: s.fields, asked: now, far: far, rows: map[string]time.Time{}, nodes: map[string]string{}}
	for key, at := range s.rows {
		if now.Sub(at) < 2*farOverlap { // behind it sacct prints the row no more
			next.rows[key] = at
		}
	}
	jobs, err := next.account(string(accounting), now)
	if err != nil {
		return nil, nil, err
	}
	running, ended, waiting, err := next.queue(string(queue), s.running)
	if err != nil {
		return nil, nil, err
	}
	if anew {
		running = next.all()
	}
	changed, gone, err := next.describe(string(nodes), s.nodes, anew)
	if err != nil {
		return nil, nil, err
	}
	lines = append(lines, record.Line{Jobs: jobs}, record.Line{Running: running}, record.Line{Ended: ended},
		record.Line{Nodes: changed}, record.Line{Gone: gone})
	for line := range strings.Lines(string(reserved)) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "ReservationName=") {
			next.reservations = append(next.reservations, cut(line, "ReservationName", "StartTime", "EndTime", "Nodes"))
		}
	}
	slices.Sort(next.reservations)
	if anew || !slices.Equal(next.reservations, s.reservations) {
		list := append([]string{}, next.reservations...)
		lines = append(lines, record.Line{Reservations: &list})
	}
	return append(lines, record.Line{Seen: true, Waiting: waiting}), func() { *s = *next }, nil
}

func minTime(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// known asks which fields this version of sacct has: one that it does not know would lose all rows.
func (s *Slurm) known(ctx context.Context) error {
	text, err := s.Run(ctx, "sacct", "--helpformat")
	if err != nil {
		return err
	}
	has := map[string]bool{}
	for word := range strings.FieldsSeq(string(text)) {
		has[strings.ToLower(word)] = true
	}
	var fields []string
	for _, name := range slurm.Fields() {
		if has[strings.ToLower(name)] {
			fields = append(fields, name)
		}
	}
	for _, name := range []string{"JobIDRaw", "Start", "End", "AllocTRES"} {
		if !slices.Contains(fields, name) {
			return fmt.Errorf("sacct --helpformat: this version has no field %s, without which there is no record", name)
		}
	}
	s.fields = fields
	return nil
}

// unasked is the error for what a command printed where something else was asked, such as a script in its place that prints columns of its
// own. Read as an answer it would say that nothing runs.
func unasked(command, text, want string) error {
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return fmt.Errorf("%s: it printed %.60q, and not %s: ask it by hand, and see what stands in its place on PATH", command, first, want)
}

// account finds the rows that are new.
func (s *Slurm) account(text string, now time.Time) (rows []string, err error) {
	header := strings.Join(s.fields, record.Delimiter)
	first, below, _ := strings.Cut(text, "\n")
	titles := strings.Split(strings.TrimSpace(first), record.Delimiter)
	if len(titles) != len(s.fields) || !strings.EqualFold(titles[0], s.fields[0]) {
		return nil, unasked("sacct -a", text, "the columns that it was asked for")
	}
	for line := range strings.Lines(below) {
		line = strings.TrimRight(line, "\r\n")
		key, ok := rowKey(s.fields, line)
		if !ok {
			continue
		}
		if _, is := s.rows[key]; !is {
			rows = append(rows, line)
		}
		s.rows[key] = now
	}
	if rows != nil {
		rows = append([]string{header}, rows...)
	}
	return rows, nil
}

// queue reads who holds devices by the queue's word, and how many wait, and compares with who did.
func (s *Slurm) queue(text string, before map[string]record.Job) (running, ended []record.Job, waiting int, err error) {
	s.running = map[string]record.Job{}
	for line := range strings.Lines(text) {
		fields := strings.Split(strings.TrimSpace(line), "|")
		if len(fields) == 1 && fields[0] == "" {
			continue
		}
		if len(fields) != 3 {
			return nil, nil, 0, unasked("squeue -a", line, "a job's id, state and start")
		}
		start, ok := instant(fields[2])
		switch {
		case fields[1] == "PENDING" || fields[1] == "CONFIGURING" && !ok:
			waiting++
		case ok:
			s.running[fields[0]] = record.Job{ID: fields[0], Start: start}
		}
	}
	for _, j := range s.all() {
		if before[j.ID] != j {
			running = append(running, j)
		}
	}
	for id, j := range before { //sluice:sorted below
		if s.running[id] != j {
			ended = append(ended, j)
		}
	}
	byID(ended)
	return running, ended, waiting, nil
}

func (s *Slurm) all() (out []record.Job) {
	for _, j := range s.running { //sluice:sorted below
		out = append(out, j)
	}
	byID(out)
	return out
}

func byID(jobs []record.Job) {
	slices.SortFunc(jobs, func(a, b record.Job) int { return strings.Compare(a.ID, b.ID) })
}

// instant is seconds since 1970, or the same as older versions print it whatever SLURM_TIME_FORMAT says.
func instant(text string) (int64, bool) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n, n > 0
	}
	t, err := time.Parse("2006-01-02T15:04:05", text)
	return t.Unix(), err == nil
}

// describe finds which nodes are new or not as they were.
func (s *Slurm) describe(text string, before map[string]string, anew bool) (changed, gone []string, err error) {
	for line := range strings.Lines(text) {
		line = cut(line, "NodeName", "Gres", "State", "Partitions")
		first, _, _ := strings.Cut(line, " ")
		if name, is := strings.CutPrefix(first, "NodeName="); is {
			s.nodes[name] = line
		}
	}
	if len(s.nodes) == 0 {
		return nil, nil, unasked("scontrol show node", text, "a node")
	}
	for name, line := range s.nodes { //sluice:sorted below
		if anew || before[name] != line {
			changed = append(changed, line)
		}
	}
	for name := range before { //sluice:sorted below
		if s.nodes[name] == "" && !anew {
			gone = append(gone, name)
		}
	}
	slices.Sort(changed)
	slices.Sort(gone)
	return changed, gone, nil
}

// cut leaves of a line of scontrol the values of these keys, which have no blanks. What a state has behind it in time (a node that is
// allocated or not) is no change that is read.
func cut(line string, keys ...string) string {
	var out []string
	for word := range strings.FieldsSeq(line) {
		if key, value, is := strings.Cut(word, "="); is && slices.Contains(keys, key) {
			if key == "State" {
				for _, busy := range []string{"ALLOCATED", "MIXED", "COMPLETING"} {
					value = strings.ReplaceAll(value, busy, "IDLE")
				}
				value = strings.ReplaceAll(value, "IDLE+IDLE", "IDLE")
			}
			out = append(out, key+"="+value)
		}
	}
	return strings.Join(out, " ")
}
