package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// maps runs `sluice map` in a directory.
func (d *daemon) maps(dir string, args ...string) (out, errs string, code int) {
	d.t.Helper()
	var o, e bytes.Buffer
	c := exec.Command(filepath.Join(bin, "sluice"), append([]string{"map", "--server", d.addr, "--quiet", "--mem", "16Mi"}, args...)...)
	c.Env, c.Dir, c.Stdout, c.Stderr = append(os.Environ(), "SLUICE_TOKEN="+d.token), dir, &o, &e
	err := c.Run()
	if exit := (&exec.ExitError{}); errors.As(err, &exit) {
		code = exit.ExitCode()
	} else if err != nil {
		d.t.Fatal(err)
	}
	return o.String(), e.String(), code
}

// mapView is what a map says of what it has written.
type mapView struct {
	Job, Output, SkippedFile string
	Lines, Answered          int64
	Skipped                  []int64
}

// must runs a map that has to succeed, and returns what it has written and what it says of that.
func (d *daemon) mustMap(dir string, args ...string) (answers string, m mapView, errs string) {
	d.t.Helper()
	out, errs, code := d.maps(dir, append([]string{"-o", "json"}, args...)...)
	if code != 0 {
		d.t.Fatalf("map %q: exit %d\n%s%s", args, code, out, errs)
	}
	if err := json.Unmarshal([]byte(out), &m); err != nil {
		d.t.Fatalf("%v: %s", err, out)
	}
	file := m.Output
	if !filepath.IsAbs(file) {
		file = filepath.Join(dir, file)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		d.t.Fatal(err)
	}
	return string(data), m, errs
}

// work makes a directory to run commands in.
func work(t *testing.T, files map[string]string) string {
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestMapOutlastsItsDaemon: lines of which some are bad are answered by a program that knows nothing of Sluice, through kills of the daemon
// and of subjobs, as one run over the good ones would have answered them.
func TestMapOutlastsItsDaemon(t *testing.T) {
	t.Parallel()
	const total, bad = 5000, 20
	d := up(t, "sim:custom,mem=64Mi+64Mi+64Mi")
	var input, want, numbers strings.Builder
	for i := 1; i <= total; i++ {
		line := fmt.Sprintf("{\"n\": %d}", i)
		if i%(total/bad) == 7 {
			line = fmt.Sprintf("{\"bad\": %d}", i)
			fmt.Fprintln(&numbers, i)
		} else {
			fmt.Fprintf(&want, "answer %s\n", line)
		}
		fmt.Fprintln(&input, line)
	}
	dir := work(t, map[string]string{"in.jsonl": input.String(), "answers.txt": "older", "infer.sh": `#!/bin/sh
while read -r line; do
  case $line in *bad*) echo "can't read $line" >&2; exit 3;; esac
  echo "answer $line"
done
`})
	many := []string{"--input", "in.jsonl", "--output", "answers.txt", "--per-line", "5ms", "--parallel", "3", "--name", "many", "--",
		"./infer.sh"}
	type end struct {
		answers string
		m       mapView
	}
	over := make(chan end, 1)
	go func() {
		a, m, _ := d.mustMap(dir, many...)
		over <- end{a, m}
	}()
	for _, least := range []int64{1, 1500, 3000} {
		d.until("progress", func() bool {
			out, _, code := d.sluice("job", "many", "-o", "json")
			var j jobView
			return code == 0 && json.Unmarshal([]byte(out), &j) == nil && (j.Progress >= least || j.State == "COMPLETED")
		})
		d.kill()
		if least == 1500 {
			endBelow(filepath.Join(d.dir, "data"))
		}
		d.start()
	}
	e := <-over
	if e.answers != want.String() {
		t.Errorf("%d bytes of answers, want %d", len(e.answers), want.Len())
	}
	list, err := os.ReadFile(filepath.Join(dir, e.m.SkippedFile))
	if err != nil || string(list) != numbers.String() || len(e.m.Skipped) != bad || e.m.Answered != total-bad {
		t.Errorf("skipped %q (%v), says %+v", list, err, e.m)
	}
	// The same command again reads what is there.
	again, _, errs := d.mustMap(dir, many...)
	if says(t, errs, "job many known already, nothing changed: it is COMPLETED"); again != want.String() {
		t.Errorf("the same command wrote %d bytes, want %d", len(again), want.Len())
	}
	// With another program, or another input, these are no answers of it.
	if err := os.WriteFile(filepath.Join(dir, "infer.sh"), []byte("#!/bin/sh\nexec cat\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, errs, code := d.maps(dir, many...); code != 1 {
		t.Errorf("another program under the same name: exit %d, %s", code, errs)
	} else {
		says(t, errs, "the work directory has changed since", "another --name")
	}
	if err := os.WriteFile(filepath.Join(dir, "in.jsonl"), []byte("other\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, errs, code := d.maps(dir, "--input", "in.jsonl", "--output", "answers.txt", "--name", "many", "--", "./infer.sh"); code != 1 {
		t.Errorf("another input under the same name: exit %d, %s", code, errs)
	} else {
		says(t, errs, "with other content", "the input is another")
	}
}

// TestMapInputs: what a line is, and how it comes to the subjobs.
func TestMapInputs(t *testing.T) {
	t.Parallel()
	d := up(t, "sim:custom,mem=64Mi+64Mi")
	outside := filepath.Join(t.TempDir(), "lines.txt")
	if err := os.WriteFile(outside, []byte("a\nb\nc"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		files map[string]string
		args  []string
		want  string
		says  string
		mapView
	}{
		"csv": {map[string]string{"in.csv": "n,text\n1,\"a\nb\"\n\n2,c\n"},
			[]string{"--input", "in.csv", "--", "awk",
				`/"/ && !q {q = 1; printf "%s ", $0; next} {q = 0; if (NR > 1) print $0 "!"}`},
			"1,\"a b\"!\n2,c!\n", "the current directory goes along: 2 files, ", mapView{Answered: 2}},
		"csv for csv": {map[string]string{"in.csv": "n\n1\n2\n3\n"}, []string{"--input", "in.csv", "--answers-header", "--", "cat"},
			"n\n1\n2\n3\n", "", mapView{Answered: 3}},
		"paths": {map[string]string{"pages/b": "two\n", "pages/a": "one\n"},
			[]string{"--input", "pages/*", "--", "xargs", "-n1", "sed", "s/$/!/"}, "one!\ntwo!\n", "", mapView{Answered: 2}},
		"outside": {nil, []string{"--input", outside, "--", "cat"}, "a\nb\nc\n", "", mapView{Answered: 3}},
		"no directory": {map[string]string{"in.txt": "x\n"}, []string{"--input", "in.txt", "--no-workdir", "--", "cat"}, "x\n",
			"the input goes along: 2 files", mapView{Answered: 1}},
		"nothing": {map[string]string{"in.txt": ""}, []string{"--input", "in.txt", "--", "cat"}, "", "", mapView{}},
		"unstable": {map[string]string{"in.txt": "a\nb\nc\nd\n"}, []string{"--input", "in.txt", "--", "grep", "-v", "c"}, "a\nb\nd\n", "",
			mapView{Answered: 3, Skipped: []int64{3}}},
		"at the end": {map[string]string{"in.txt": "c\na\nb\n"}, []string{"--input", "in.txt", "--", "sh", "-c", `all=$(cat); echo "$all"`},
			"c\na\nb\n", "", mapView{Answered: 3}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := work(t, c.files)
			answers, m, errs := d.mustMap(dir, append([]string{"--output", "out"}, c.args...)...)
			if answers != c.want || m.Answered != c.Answered || fmt.Sprint(m.Skipped) != fmt.Sprint(c.Skipped) {
				t.Errorf("answers %q, want %q; says %+v", answers, c.want, m)
			}
			says(t, errs, c.says)
		})
	}
}

// TestMapRefuses: a program that can't begin fails the job rather than skipping every line, and so does a line where that is wanted.
func TestMapRefuses(t *testing.T) {
	t.Parallel()
	d := up(t, "sim:custom,mem=64Mi+64Mi")
	dir := work(t, map[string]string{"in.txt": strings.Repeat("line\n", 50) + "bad\nline\n", "out": "older",
		"few": "a\nb\nc\n", "flat.csv": "n,text\n1,a\n2,bad\n3,c\n",
		"rows.csv": "n,text\n\n1,\"a\nb\"\n2,c\n\nbad,d\n3,e\n"})
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args []string
		code int
		says []string
	}{
		"no program": {[]string{"--", "nothing-of-that-name"}, 1, []string{"FAILED", "not found in PATH"}},
		"can't begin": {[]string{"--", "sh", "-c", "echo no module named torch >&2; exit 1"}, 1,
			[]string{"FAILED", "no module named torch"}},
		"reads nothing": {[]string{"--", "seq", "3"}, 1, []string{"FAILED", "gets them on stdin"}},
		"a line is bad": {[]string{"--on-item-failure", "fail", "--", "sh", "-c",
			"while read x; do [ $x = bad ] && exit 4; echo $x; done"}, 1, []string{"FAILED", "line 51 fails", "line 51 of in.txt"}},
		"a record is bad": {[]string{"--input", "rows.csv", "--on-item-failure", "fail", "--", "awk",
			`/bad/ {exit 4} NR > 1 && !/"$/`}, 1, []string{"FAILED", "record 3 fails", "line 7 of rows.csv"}},
		"a row is bad": {[]string{"--input", "flat.csv", "--on-item-failure", "fail", "--", "awk", `/bad/ {exit 4} NR > 1`}, 1,
			[]string{"FAILED", "line 3 fails", "line 3 of flat.csv"}},
		"too many": {[]string{"--on-item-failure", "fail", "--", "sh", "-c", "cat; echo more"}, 1, []string{"FAILED", "wrote"}},
		"all lines are bad": {[]string{"--input", "few", "--", "sh", "-c", "read x; exit 3"}, 1,
			[]string{"each of the 3 lines", "sluice logs"}},
		"no input": {[]string{"--input", "none.txt", "--", "cat"}, 2, []string{"--input", "none.txt"}},
		"a pipe":   {[]string{"--input", pipe, "--", "cat"}, 2, []string{"pipe is no file"}},
		"wrong flags": {[]string{"--on-item-failure", "stop", "--format", "xml"}, 2,
			[]string{"want skip or fail", "want text or csv", "no command"}},
		"no such length": {[]string{"--per-line", "fast", "--", "cat"}, 2, []string{"--per-line"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, errs, code := d.maps(dir, append([]string{"--input", "in.txt", "--output", "out"}, c.args...)...)
			if says(t, errs, c.says...); code != c.code {
				t.Errorf("exit %d, want %d: %s", code, c.code, errs)
			}
		})
	}
	t.Cleanup(func() {
		if data, err := os.ReadFile(filepath.Join(dir, "out")); err != nil || string(data) != "older" {
			t.Errorf("the output of before is %q, %v", data, err)
		}
	})
}

// TestMapGoesOn: what was submitted without waiting, or whose waiting was interrupted, the same command waits for again.
func TestMapGoesOn(t *testing.T) {
	t.Parallel()
	d := up(t, "sim:custom,mem=64Mi")
	dir := work(t, map[string]string{"in.txt": "a\nb\nc\n"})
	gate := filepath.Join(d.dir, "gate")
	args := []string{"--input", "in.txt", "--output", "out", "--name", "later"}
	command := []string{"--", "sh", "-c", "until [ -e " + gate + " ]; do sleep 0.05; done; cat"}
	_, errs, code := d.maps(dir, append(append([]string{"-d"}, args...), command...)...)
	if says(t, errs, "the same command with --name later"); code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	d.running("later", 1)
	all := append(append([]string{"map", "--server", d.addr, "--mem", "16Mi"}, args...), command...)
	c := exec.Command(filepath.Join(bin, "sluice"), all...)
	var said logged
	c.Env, c.Dir, c.Stdout, c.Stderr = append(os.Environ(), "SLUICE_TOKEN="+d.token), dir, &said, &said
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	d.until("it waits", func() bool { return strings.Contains(said.String(), "known already") })
	if err := c.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err == nil {
		t.Error("an interrupted map ended well")
	}
	says(t, said.String(), "interrupted; the job goes on")
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if answers, _, _ := d.mustMap(dir, append(args, command...)...); answers != "a\nb\nc\n" {
		t.Errorf("answers %q", answers)
	}
	out, errs, code := d.maps(dir, "--input", "in.txt", "--output", "-", "--", "sed", "s/b/B/")
	if says(t, errs, "3 lines answered"); code != 0 || out != "a\nB\nc\n" {
		t.Errorf("to stdout: exit %d, %q", code, out)
	}
}
