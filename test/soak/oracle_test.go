package soak

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// workload is what was submitted: the oracle knows what must come out.
type workload struct {
	name, kind string
	total      int64
	// hostile is the kind of a hostile job; nil: an ordinary one.
	hostile *hostility
}

// values lists what each unit must have published.
func (j workload) values() []string {
	out := make([]string, j.total)
	var state [32]byte
	for i := range j.total {
		if j.kind == "steps" {
			state = chain(state, i)
			out[i] = hex.EncodeToString(state[:8])
		} else {
			out[i] = value(j.name, i)
		}
	}
	return out
}

// checkOutput reads a job's published folders, whose names say which units they hold, and returns everything wrong.
func checkOutput(data string, j workload) (wrong []string) {
	root := filepath.Join(data, "output", j.name)
	folders, err := os.ReadDir(root)
	if err != nil {
		return []string{fmt.Sprintf("job %s: nothing is published: %v", j.name, err)}
	}
	times := make([]int, j.total)
	want := j.values()
	for _, f := range folders {
		if strings.HasPrefix(f.Name(), ".") {
			continue // the executor's own notes
		}
		a, b, ok := strings.Cut(f.Name(), "-")
		from, err1 := strconv.ParseInt(a, 10, 64)
		to, err2 := strconv.ParseInt(b, 10, 64)
		if !ok || err1 != nil || err2 != nil || from < 0 || to > j.total || from >= to {
			wrong = append(wrong, fmt.Sprintf("job %s: folder %s names no range of units", j.name, f.Name()))
			continue
		}
		lines := readUnits(filepath.Join(root, f.Name(), "units"))
		for i := from; i < to; i++ {
			times[i]++
			if got := lines[i]; got != want[i] {
				wrong = append(wrong, fmt.Sprintf("job %s: folder %s has %q for unit %d, want %q", j.name, f.Name(), got, i, want[i]))
				break
			}
		}
	}
	for i, n := range times {
		if n != 1 {
			wrong = append(wrong, fmt.Sprintf("job %s: unit %d is published %d times", j.name, i, n))
			if len(wrong) > 10 {
				break
			}
		}
	}
	return wrong
}

// checkNone returns what a job has published that must publish nothing.
func checkNone(data string, j workload) (wrong []string) {
	folders, err := os.ReadDir(filepath.Join(data, "output", j.name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return []string{fmt.Sprintf("job %s: %v", j.name, err)}
	}
	for _, f := range folders {
		if !strings.HasPrefix(f.Name(), ".") {
			wrong = append(wrong, fmt.Sprintf("job %s: %s is published, though nothing of it counts", j.name, f.Name()))
		}
	}
	return wrong
}

func readUnits(path string) map[int64]string {
	lines := map[int64]string{}
	data, err := os.ReadFile(path)
	if err != nil {
		return lines
	}
	for line := range strings.Lines(string(data)) {
		i, v, ok := strings.Cut(strings.TrimSpace(line), " ")
		if n, err := strconv.ParseInt(i, 10, 64); ok && err == nil {
			lines[n] = v
		}
	}
	return lines
}

// event is a line of the executor's own event file, written by the supervisors.
type event struct {
	What, Token, Job, Slice, Outcome string
	From, To, Boot                   int64
}

// readEvents reads the file and, before it, the one it was begun after.
func readEvents(data string) ([]event, error) {
	var all []event
	path := filepath.Join(data, "executor-events.jsonl")
	old, err := os.ReadFile(path + ".1")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	now, err := os.ReadFile(path)
	if err != nil && (old == nil || !errors.Is(err, fs.ErrNotExist)) { // between the two there is a moment without it
		return nil, err
	}
	for line := range bytes.Lines(slices.Concat(old, []byte("\n"), now)) { // the old one may end with a line that was cut off
		var e event
		if json.Unmarshal(line, &e) == nil && e.Token != "" {
			all = append(all, e)
		}
	}
	return all, nil
}

// checkEvents returns every pair of subjobs whose recorded lives overlap on a slice, and every subjob that started or ended twice. One
// that still runs has no recorded end: the samples of /proc judge it.
func checkEvents(all []event) (wrong []string) {
	type life struct {
		token      string
		start, end int64
	}
	lives := map[string][]life{}
	ends, starts := map[string]int64{}, map[string]int{}
	for _, e := range all {
		if e.What != "end" {
			continue
		}
		if _, twice := ends[e.Token]; twice {
			wrong = append(wrong, fmt.Sprintf("subjob %s ended twice", e.Token))
		}
		ends[e.Token] = e.Boot
	}
	for _, e := range all {
		if e.What != "start" {
			continue
		}
		if starts[e.Token]++; starts[e.Token] > 1 {
			wrong = append(wrong, fmt.Sprintf("subjob %s was started %d times", e.Token, starts[e.Token]))
		}
		if end, ok := ends[e.Token]; ok {
			lives[e.Slice] = append(lives[e.Slice], life{e.Token, e.Boot, end})
		}
	}
	wrong = append(wrong, checkTwice(all)...)
	for slice, ls := range lives {
		slices.SortFunc(ls, func(a, b life) int { return int(min(1, max(-1, a.start-b.start))) })
		for i := 1; i < len(ls); i++ {
			if ls[i].start < ls[i-1].end {
				wrong = append(wrong, fmt.Sprintf("slice %s: subjob %s started %d ms before %s ended", slice, ls[i].token,
					(ls[i-1].end-ls[i].start)/1e6, ls[i-1].token))
			}
		}
	}
	return wrong
}

// checkTwice returns every pair of subjobs that both did the same work of a job to its end: it was sold twice.
func checkTwice(all []event) (wrong []string) {
	done := map[string][]event{}
	for _, e := range all {
		if e.What != "end" || e.Outcome != "done" {
			continue
		}
		for _, o := range done[e.Job] {
			if e.From < o.To && o.From < e.To {
				wrong = append(wrong, fmt.Sprintf("job %s: subjobs %s [%d,%d) and %s [%d,%d) both did the same work", e.Job, o.Token,
					o.From, o.To, e.Token, e.From, e.To))
			}
		}
		done[e.Job] = append(done[e.Job], e)
	}
	return wrong
}
