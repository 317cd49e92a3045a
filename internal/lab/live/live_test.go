package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/history"
	"sluice.dev/sluice/internal/lab/history/all"
	"sluice.dev/sluice/internal/lab/history/record"
	"sluice.dev/sluice/internal/lab/history/slurm"
)

// begin is 40 minutes before a day ends in UTC, so that every test has two files.
var begin = time.Date(2026, 11, 28, 23, 20, 0, 0, time.UTC)

func after(minutes int) time.Time { return begin.Add(time.Duration(minutes) * time.Minute) }

// site is a Slurm of scripts: each prints a file, and writes down how it was called. Any other command on PATH fails the test.
type site struct {
	*testing.T
	dir string
}

func newSite(t *testing.T) *site {
	s := &site{t, t.TempDir()}
	bin := filepath.Join(s.dir, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	cat, err := lookPath("cat")
	if err != nil {
		t.Fatal(err)
	}
	s.write("cat", "")
	script := "#!/bin/sh\nfor a in \"$0\" \"$@\"; do printf '%s ' \"${a##*/}\"; done >> " + s.dir + "/calls\n" +
		"echo \"TZ=$TZ $SLURM_TIME_FORMAT\" >> " + s.dir + "/calls\n" +
		"case \"${0##*/} $*\" in\n" +
		"'sacct --helpformat') exec " + cat + " " + s.dir + "/fields;;\n" +
		"sacct*) f=sacct;;\nsqueue*) f=squeue;;\n'scontrol show node -o') f=nodes;;\n" +
		"'scontrol show reservation -o') f=reservations;;\n*) echo \"never to be called: $0 $*\" >&2; exit 99;;\nesac\n" +
		"if [ -s " + s.dir + "/$f.error ]; then " + cat + " " + s.dir + "/$f.error >&2; exit 1; fi\nexec " + cat + " " + s.dir + "/$f\n"
	for _, name := range []string{"sacct", "squeue", "scontrol", "sinfo", "sbatch", "srun", "scancel", "sacctmgr", "sudo"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin)
	t.Setenv("SQUEUE_PARTITION", "other")
	var fields []string // an older version, which lacks one and has others
	for _, f := range slurm.Fields() {
		if f != "Suspended" {
			fields = append(fields, f)
		}
	}
	s.write("fields", strings.Join(fields, "  ")+"\nComment   JobName\n")
	s.set(nil, nil, []string{"n1 IDLE", "n2 IDLE"}, "No reservations in the system\n")
	return s
}

func lookPath(name string) (string, error) {
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if path := filepath.Join(dir, name); filepath.IsAbs(path) {
			if _, err := os.Stat(path); err == nil {
				return path, nil
			}
		}
	}
	return "", fmt.Errorf("%s: not on PATH", name)
}

func (s *site) write(name, text string) {
	if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
		s.Fatal(err)
	}
}

// run is a run of a job on n1 in minutes behind begin; end < 0 if accounting has none.
type run struct {
	id         int
	state      string
	start, end int
	index      int
}

// printed is what sacct prints of runs: a version that has no field Suspended.
func printed(rows []run) string {
	var titles []string
	for _, f := range slurm.Fields() {
		if f != "Suspended" {
			titles = append(titles, f)
		}
	}
	text := strings.Join(titles, "\x1f") + "\n"
	for _, r := range rows {
		end := "Unknown"
		if r.end >= 0 {
			end = fmt.Sprint(after(r.end).Unix())
		}
		values := map[string]string{"JobIDRaw": fmt.Sprint(r.id), "JobID": fmt.Sprint(r.id), "User": "u", "Account": "a", "Partition": "p",
			"QOS": "q", "State": r.state, "Submit": fmt.Sprint(after(r.start).Unix()), "Eligible": fmt.Sprint(after(r.start).Unix()),
			"Start": fmt.Sprint(after(r.start).Unix()), "End": end, "Elapsed": "00:01:00", "Timelimit": "10:00:00", "AllocNodes": "1",
			"AllocTRES": "cpu=1,gres/gpu=1", "ReqTRES": "gres/gpu=1", "NodeList": "n1", "ExitCode": "0:0", "DBIndex": fmt.Sprint(r.index)}
		var fields []string
		for _, f := range slurm.Fields() {
			if f != "Suspended" {
				fields = append(fields, values[f])
			}
		}
		text += strings.Join(fields, "\x1f") + "\n"
	}
	return text
}

// set is what Slurm says from now on. queue are ids with their starts, nodes a name and a state each.
func (s *site) set(rows []run, queue [][2]int, nodes []string, reservations string) {
	s.write("sacct", printed(rows))
	text := "99|PENDING|N/A\n"
	for _, q := range queue {
		text += fmt.Sprintf("%d|RUNNING|%d\n", q[0], after(q[1]).Unix())
	}
	s.write("squeue", text)
	text = ""
	for _, n := range nodes {
		name, state, _ := strings.Cut(n, " ")
		text += "NodeName=" + name + " Arch=x86_64 CPULoad=0.31 Gres=gpu:2 State=" + state +
			" Partitions=p Reason=x y [root@2026-11-01T00:00:00]\n"
	}
	s.write("nodes", text)
	s.write("reservations", reservations)
	for _, f := range []string{"sacct", "squeue", "nodes", "reservations"} {
		s.write(f+".error", "")
	}
}

func read(o history.Options, files []File) (*history.History, error) {
	var list []all.File
	for _, f := range files {
		list = append(list, all.File{Name: f.Path, Open: f.Open})
	}
	return all.ReadFiles(o, list...)
}

// TestSlurmIsRemembered: what Slurm forgets is in the record, over a change of days and a start anew, and nothing is run but what prints.
func TestSlurmIsRemembered(t *testing.T) {
	s := newSite(t)
	path := filepath.Join(s.dir, "record")
	var w *Watch
	var told []string
	open := func() {
		d, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		w = &Watch{Source: NewSlurm(d), Dir: d, Every: time.Minute, Tell: func(x string) { told = append(told, x) }, Looked: func() {}}
	}
	look := func(from, to int) {
		for m := from; m <= to; m++ {
			if err := w.look(t.Context(), after(m)); err != nil {
				t.Fatalf("minute %d: %v", m, err)
			}
		}
	}
	open()
	idle := []string{"n1 IDLE", "n2 IDLE"}
	before := run{1, "RUNNING", -60, -1, 1}
	s.set([]run{before}, [][2]int{{1, -60}}, idle, "")
	look(0, 9)
	before.state, before.end = "COMPLETED", 9
	lost := run{2, "RUNNING", 10, -1, 2} // accounting never hears of its end
	s.set([]run{before, lost}, [][2]int{{2, 10}}, []string{"n1 MIXED", "n2 DOWN*+DRAIN"}, "")
	look(10, 19)
	const reserved = "ReservationName=r StartTime=%d EndTime=%d Nodes=n2 Users=root Comment=a b\n"
	s.set([]run{lost}, nil, idle, fmt.Sprintf(reserved, after(20).Unix(), after(500).Unix())) // and is taken back in minute 30
	look(20, 29)
	s.set([]run{lost}, nil, idle, "")
	look(30, 39)
	done := run{3, "COMPLETED", 35, 45, 3}
	s.set([]run{lost, done}, nil, idle, "")
	look(40, 49) // another day
	done.state, done.end = "REQUEUED", 49
	s.set([]run{lost, done}, nil, idle, "")
	look(50, 50)
	if err := w.Dir.Close(); err != nil {
		t.Fatal(err)
	}
	open() // nobody looks for 20 minutes, in which job 4 came and went
	s.set([]run{lost, done, {4, "COMPLETED", 55, 60, 4}}, nil, idle, "")
	look(70, 80)
	if _, err := Open(path); errkind.Of(err) != errkind.Conflict || !strings.Contains(err.Error(), "another process") {
		t.Errorf("a second record: %v", err)
	}
	if err := w.Dir.Belongs("slurm"); err != nil {
		t.Error(err)
	}
	if err := w.Dir.Belongs("kubernetes"); errkind.Of(err) != errkind.Conflict || !strings.Contains(err.Error(), "has a record of slurm") {
		t.Errorf("another source: %v", err)
	}

	files, err := w.Dir.Files()
	if err != nil || len(files) != 2 {
		t.Fatal(files, err)
	}
	h, err := read(history.Options{Zone: time.FixedZone("none", 3600)}, files)
	if err != nil {
		t.Fatal(err)
	}
	minute := func(x quantity.Instant) int { return int(x.Time().Sub(begin) / time.Minute) }
	if minute(h.From) != 0 || minute(h.To) != 80 || len(h.Devices) != 4 {
		t.Errorf("%d to %d, %d devices", minute(h.From), minute(h.To), len(h.Devices))
	}
	got := map[string][2]int{}
	for _, r := range h.Runs {
		got[r.ID] = [2]int{minute(r.Start), minute(r.End)}
	}
	if want := map[string][2]int{"1": {-60, 9}, "2": {10, 20}, "3": {35, 45}, "4": {55, 60}}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("runs %v, want %v", got, want)
	}
	var away []string
	for _, n := range h.Nodes {
		for _, a := range n.Away {
			away = append(away, fmt.Sprintf("%s %s %d-%d", n.Name, a.Why, minute(a.From), minute(a.To)))
		}
	}
	if want := []string{"n1 not recorded 50-70", "n2 down 10-20", "n2 reserved 20-30", "n2 not recorded 50-70"}; !slices.Equal(away, want) {
		t.Errorf("away %q, want %q", away, want)
	}
	for _, o := range h.Oddities {
		if strings.Contains(o.Name, "more than once") || strings.Contains(o.Name, "a record that is none") {
			t.Errorf("%+v", o)
		}
	}
	calls, err := os.ReadFile(filepath.Join(s.dir, "calls"))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(strings.TrimSpace(string(calls)), "\n") {
		words := strings.Fields(line)
		switch what := strings.Join(words[:2], " "); {
		case !strings.HasSuffix(line, "TZ=UTC %s"):
			t.Errorf("%q has another clock", line)
		case what == "sacct --helpformat", what == "sacct -a", what == "squeue -a", strings.HasPrefix(line, "scontrol show node -o "),
			strings.HasPrefix(line, "scontrol show reservation -o "):
		default:
			t.Errorf("%q was called", line)
		}
		if strings.Contains(line, "Suspended") {
			t.Errorf("%q asks for a field that this version lacks", line)
		}
	}
	if len(told) > 0 {
		t.Errorf("told %q", told)
	}
}

// TestSlurmIsAway: what a command says is said once, the time counts as not observed, and a version without what is needed is named.
func TestSlurmIsAway(t *testing.T) {
	s := newSite(t)
	d, err := Open(filepath.Join(s.dir, "record"))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	w := &Watch{Source: NewSlurm(d), Dir: d, Every: time.Minute, Looked: func() {}}
	s.write("fields", "JobIDRaw Start End")
	if err := w.look(t.Context(), after(0)); err == nil || !strings.Contains(err.Error(), "no field AllocTRES") {
		t.Error(err)
	}
	s.write("fields", strings.Join(slurm.Fields(), " "))
	s.write("sacct", strings.Join(slurm.Fields(), "\x1f")+"\n")
	for _, name := range []string{"sacct", "squeue", "nodes", "reservations"} {
		s.write(name+".error", "slurm_load_jobs error: Unable to contact\n slurm controller")
		err := w.look(t.Context(), after(0))
		if err == nil || !strings.Contains(err.Error(), "exit status 1: slurm_load_jobs error: Unable to contact slurm controller") {
			t.Errorf("%s: %v", name, err)
		}
		s.write(name+".error", "")
	}
	if err := w.look(t.Context(), after(0)); err != nil {
		t.Error(err)
	}
	if err := w.look(t.Context(), after(-5)); err == nil || !strings.Contains(err.Error(), "the clock stands before") {
		t.Error(err)
	}
	t.Setenv("PATH", s.dir)
	if err := w.look(t.Context(), after(1)); err == nil || !strings.Contains(err.Error(), "run this where Slurm's commands are") {
		t.Error(err)
	}
}

// TestSomethingElseAnswers: what prints other things than it was asked for would say that nothing runs, and that all nodes are gone. Such a
// look does not count. A row that is odd among others is kept as it was printed.
func TestSomethingElseAnswers(t *testing.T) {
	s := newSite(t)
	d, err := Open(filepath.Join(s.dir, "record"))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	w := &Watch{Source: NewSlurm(d), Dir: d, Every: time.Minute, Looked: func() {}}
	good := func() { s.set([]run{{1, "RUNNING", -60, -1, 1}}, [][2]int{{1, -60}}, []string{"n1 IDLE"}, "") }
	good()
	if err := w.look(t.Context(), after(0)); err != nil {
		t.Fatal(err)
	}
	const jobless, nodeless = "sacct -a: it printed ", "scontrol show node: it printed "
	for _, c := range []struct{ file, text, says string }{
		{"sacct", "", jobless + `"", and not the columns`},
		{"sacct", "a|b|c\n1|2|3\n", jobless + `"a|b|c", and not the columns`},
		{"sacct", "1\x1f1\x1fu\n", jobless},
		{"squeue", "1 p job u R 1:00 1 n1\n", "squeue -a: it printed \"1 p job"},
		{"nodes", "", nodeless},
		{"nodes", "n1 idle\n", nodeless + `"n1 idle", and not a node: ask it by hand`},
	} {
		good()
		s.write(c.file, c.text)
		if err := w.look(t.Context(), after(1)); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s %q: %v; want %q", c.file, c.text, err, c.says)
		}
	}
	good()
	text, err := os.ReadFile(filepath.Join(s.dir, "sacct"))
	if err != nil {
		t.Fatal(err)
	}
	s.write("sacct", string(text)+"\n2\x1f2\x1fu\n")
	for m := range 2 {
		if err := w.look(t.Context(), after(2+m)); err != nil {
			t.Fatal(err)
		}
	}
	files, err := d.Files()
	if err != nil {
		t.Fatal(err)
	}
	h, err := read(history.Options{}, files)
	if err != nil || len(h.Runs) != 1 || h.Runs[0].End != h.To || h.Nodes[0].Away != nil {
		t.Fatalf("%v, %+v", err, h)
	}
	if i := slices.IndexFunc(h.Oddities, func(o history.Oddity) bool { return o.Name == "a row with too few fields" }); i < 0 ||
		h.Oddities[i].Count != 1 {
		t.Errorf("%+v", h.Oddities)
	}
}

// TestADiskThatIsFullAtMidnight: the first look of a day that can't be written is made anew with all there is, since a file stands for
// itself.
func TestADiskThatIsFullAtMidnight(t *testing.T) {
	s := newSite(t)
	path := filepath.Join(s.dir, "record")
	d, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	w := &Watch{Source: NewSlurm(d), Dir: d, Every: time.Minute, Looked: func() {}}
	s.set([]run{{1, "RUNNING", -60, -1, 1}}, [][2]int{{1, -60}}, []string{"n1 IDLE"}, "")
	if err := w.look(t.Context(), after(39)); err != nil {
		t.Fatal(err)
	}
	next := filepath.Join(path, after(40).Format(layout)+".jsonl")
	if err := os.Symlink("/dev/full", next); err != nil {
		t.Fatal(err)
	}
	if err := w.look(t.Context(), after(40)); err == nil || !strings.Contains(err.Error(), "no space left") {
		t.Fatal(err)
	}
	if err := os.Remove(next); err != nil {
		t.Fatal(err)
	}
	if err := w.look(t.Context(), after(41)); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(next)
	if err != nil || !strings.Contains(string(text), `"begin":"slurm"`) || !strings.Contains(string(text), `"nodes":["NodeName=n1 `) ||
		!strings.Contains(string(text), `"running":[{"id":"1"`) {
		t.Errorf("%v: %s", err, text)
	}
}

// TestADiskThatIsFull: what a look found that could not be written is written by the next one, as nothing else has it: what began, what
// ended, the nodes and the reservations.
func TestADiskThatIsFull(t *testing.T) {
	s := newSite(t)
	d, err := Open(filepath.Join(s.dir, "record"))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	w := &Watch{Source: NewSlurm(d), Dir: d, Every: time.Minute, Looked: func() {}}
	s.set([]run{{1, "RUNNING", -60, -1, 1}}, [][2]int{{1, -60}}, []string{"n1 IDLE", "n2 IDLE"}, "")
	if err := w.look(t.Context(), after(0)); err != nil {
		t.Fatal(err)
	}
	full, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	disk := d.file
	d.file = full
	s.set([]run{{1, "RUNNING", -60, -1, 1}, {2, "RUNNING", 1, -1, 2}}, [][2]int{{2, 1}}, []string{"n1 DOWN"},
		fmt.Sprintf("ReservationName=r StartTime=%d EndTime=%d Nodes=n1\n", after(5).Unix(), after(500).Unix()))
	if err := w.look(t.Context(), after(1)); err == nil || !strings.Contains(err.Error(), "no space left") {
		t.Fatal(err)
	}
	d.file = disk
	if err := w.look(t.Context(), after(2)); err != nil {
		t.Fatal(err)
	}
	var got record.Line
	if err := each(disk.Name(), func(l *record.Line) bool {
		if l.At == after(2).Unix() {
			got.Jobs, got.Running, got.Ended = append(got.Jobs, l.Jobs...), append(got.Running, l.Running...), append(got.Ended, l.Ended...)
			got.Nodes, got.Gone = append(got.Nodes, l.Nodes...), append(got.Gone, l.Gone...)
			got.Reservations = cmp.Or(l.Reservations, got.Reservations)
		}
		return true
	}); err != nil {
		t.Fatal(err)
	}
	if len(got.Jobs) != 2 || !strings.HasPrefix(got.Jobs[1], "2\x1f") || len(got.Nodes) != 1 || got.Reservations == nil ||
		fmt.Sprint(got.Running, got.Ended, got.Gone) != fmt.Sprintf("[{2 %d}] [{1 %d}] [n2]", after(1).Unix(), after(-60).Unix()) {
		t.Errorf("the look behind it wrote %+v", got)
	}
}

// TestCutRecord: a record that a crash cut off anywhere is read, goes on, and loses at most the look that was being written.
func TestCutRecord(t *testing.T) {
	s := newSite(t)
	path := filepath.Join(s.dir, "record")
	look := func(from, to int) {
		d, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		w := &Watch{Source: NewSlurm(d), Dir: d, Every: time.Minute, Looked: func() {}}
		for m := from; m <= to; m++ {
			s.set([]run{{m, "COMPLETED", m - 1, m, m}}, nil, []string{"n1 IDLE"}, "")
			if err := w.look(t.Context(), after(m)); err != nil {
				t.Fatal(err)
			}
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
	look(1, 3)
	names, err := names(path)
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	whole, err := os.ReadFile(names[0])
	if err != nil {
		t.Fatal(err)
	}
	last := strings.LastIndex(string(whole[:len(whole)-1]), "\n") + 1
	for at := 1; at < len(whole); at += 41 {
		if err := os.WriteFile(names[0], whole[:at], 0o600); err != nil {
			t.Fatal(err)
		}
		look(4, 5)
		files, err := Files(path)
		if err != nil {
			t.Fatal(err)
		}
		h, err := read(history.Options{}, files)
		if err != nil {
			t.Fatalf("cut at %d: %v", at, err)
		}
		if n := len(h.Runs); n < 2 || n > 5 || at >= last && n != 5 {
			t.Errorf("cut at %d of %d: %d runs", at, len(whole), n)
		}
	}
}

// script is a source that says what a test wants.
type script struct {
	err   error
	looks int
}

func (s *script) Name() string { return "slurm" }

func (s *script) Look(context.Context, time.Time, bool) ([]record.Line, func(), error) {
	s.looks++
	return []record.Line{{Seen: true}}, func() {}, s.err
}

// TestRounds: a look each ten minutes, an answer a day while looks go on, an error once, and what it cost.
func TestRounds(t *testing.T) {
	path := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		d, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		source := &script{}
		var told []string
		answers := 0
		ctx, cancel := context.WithCancel(t.Context())
		w := &Watch{Source: source, Dir: d, Every: 10 * time.Minute, Tell: func(x string) { told = append(told, x) }, Looked: func() {},
			Answer: func(context.Context, []File) {
				answers++
				time.Sleep(2 * time.Hour) // a slow machine
			}}
		done := make(chan struct{})
		go func() { w.Run(ctx); close(done) }()
		sleep := func(d time.Duration) { time.Sleep(d); synctest.Wait() }
		sleep(24*time.Hour - time.Second)
		if source.looks != 24*6 || answers != 0 {
			t.Errorf("%d looks, %d answers", source.looks, answers)
		}
		sleep(time.Hour)
		if source.looks != 25*6 || answers != 1 {
			t.Errorf("%d looks, %d answers", source.looks, answers)
		}
		source.err = errors.New("squeue: down")
		sleep(30 * time.Minute)
		source.err = nil
		sleep(10 * time.Minute)
		want := []string{"squeue: down; trying again, and this time counts as not observed",
			"looks are answered again, after 30m0s"}
		if !slices.Equal(told, want) {
			t.Errorf("told %q, want %q", told, want)
		}
		sleep(24 * time.Hour)
		if answers != 2 {
			t.Errorf("%d answers in two days", answers)
		}
		cancel()
		<-done
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		if d, err = Open(path); err != nil || d.Days() != 2 {
			t.Errorf("%+v, %v", d, err)
		}
		_ = d.Close()
	})
}

// TestLongLinesAreSplit: whatever a look finds, no line is longer than readers keep, and nothing is lost.
func TestLongLinesAreSplit(t *testing.T) {
	long := record.Line{Begin: "slurm", Every: 60, Jobs: []string{strings.Repeat("h", 300)}, Reservations: &[]string{}}
	for i := range 3000 {
		long.Jobs = append(long.Jobs, fmt.Sprintf("%0400d", i))
		long.Nodes = append(long.Nodes, fmt.Sprintf("NodeName=n%0200d", i))
		long.Running = append(long.Running, record.Job{ID: fmt.Sprint(i), Start: 1})
	}
	var back record.Line
	pieces := split(&long)
	for _, p := range pieces {
		size := 0
		for _, x := range slices.Concat(p.Jobs, p.Nodes) {
			size += len(x)
		}
		if size > most+1000 || len(p.Running) > 1000 {
			t.Errorf("a line of %d bytes and %d jobs", size, len(p.Running))
		}
		if len(p.Jobs) > 0 {
			back.Jobs = append(back.Jobs, p.Jobs[1:]...)
		}
		back.Nodes, back.Running = append(back.Nodes, p.Nodes...), append(back.Running, p.Running...)
	}
	if !slices.Equal(back.Jobs, long.Jobs[1:]) || !slices.Equal(back.Nodes, long.Nodes) || !slices.Equal(back.Running, long.Running) ||
		pieces[len(pieces)-1].Begin != "slurm" {
		t.Errorf("%d pieces", len(pieces))
	}
}

// TestARecordThatMayNotBeRead is not taken for one that is not there.
func TestARecordThatMayNotBeRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file") // root may read every directory, but no file as one
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Files(file); errkind.Of(err) != errkind.Unavailable || !strings.Contains(err.Error(), "read the record: ") {
		t.Error(err)
	}
	if _, err := Files(file + "s"); errkind.Of(err) != errkind.NotFound || !strings.Contains(err.Error(), "holds no record") {
		t.Error(err)
	}
}
