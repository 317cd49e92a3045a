package cluster

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// unitsFile is what each subjob writes its units to.
const unitsFile = "units"

// unit is a line of an output or of a witness: which unit, by which subjob, on which machine.
type unit struct {
	number        int64
	subjob, where string
}

// committed is a range of a job that counts, and what its subjob has left.
type committed struct {
	subjob   string
	from, to int64
	units    []unit
}

// history is what came of the units of a job.
type history struct {
	// units that are in the committed output, and those of them by machine.
	units   int64
	machine map[string]int64
	// Units that are there more than once, and not at all.
	duplicates, lost int64
	// redone counts what witnesses have seen more often than once: done again after a strike.
	redone int64
	wrong  []string
}

// judge compares what is committed of a job with what there must be, and with what its witness has seen.
func judge(job string, total int64, output []committed, witness []unit) history {
	h := history{machine: map[string]int64{}}
	wrong := func(format string, args ...any) {
		if len(h.wrong) < 10 {
			h.wrong = append(h.wrong, "job "+job+": "+fmt.Sprintf(format, args...))
		}
	}
	seen, times := map[unit]bool{}, make([]int64, total)
	for _, u := range witness {
		seen[u] = true
	}
	for _, o := range output {
		found := map[int64]int64{}
		for _, u := range o.units {
			if u.number < o.from || u.number >= o.to {
				continue // it was done, and does not count
			}
			found[u.number]++
			if h.machine[u.where]++; u.subjob != o.subjob {
				wrong("the output of subjob %s has unit %d of subjob %s", o.subjob, u.number, u.subjob)
			} else if !seen[u] {
				wrong("unit %d of subjob %s on %s is in the output, and its witness has not seen it", u.number, u.subjob, u.where)
			}
		}
		for i := o.from; i < o.to; i++ {
			if i < 0 || i >= total {
				wrong("subjob %s has committed unit %d of %d", o.subjob, i, total)
				continue
			}
			if times[i] += found[i]; found[i] != 1 {
				wrong("unit %d is committed by subjob %s, whose output has it %d times", i, o.subjob, found[i])
			}
		}
	}
	for i, n := range times {
		switch {
		case n == 0:
			h.lost++
			wrong("unit %d is in no committed output", i)
		case n > 1:
			h.duplicates += n - 1
			wrong("unit %d is in the committed output %d times", i, n)
		}
		h.units += min(n, 1)
	}
	h.redone = max(0, int64(len(witness))-h.units)
	return h
}

func parseUnits(data []byte) (all []unit) {
	in := bufio.NewScanner(bytes.NewReader(data))
	for in.Scan() {
		f := strings.Fields(in.Text())
		if len(f) != 3 {
			continue
		}
		if n, err := strconv.ParseInt(f[0], 10, 64); err == nil {
			all = append(all, unit{n, f[1], f[2]})
		}
	}
	return all
}

// outputs of a job that are committed, as anybody finds them: the ranges, and the folders at the head that they name.
func (c *world) outputs(job string) ([]committed, error) {
	text, err := c.insist("output", job, "-o", "json")
	if err != nil {
		return nil, err
	}
	var rows []struct {
		Subjob, Path string
		From, To     int64
	}
	if err := json.Unmarshal([]byte(text), &rows); err != nil {
		return nil, fmt.Errorf("sluice output %s: %w", job, err)
	}
	all := make([]committed, len(rows))
	for i, r := range rows {
		all[i] = committed{r.Subjob, r.From, r.To, nil}
		if r.Path == "" {
			continue // nothing was left, which is wrong, as each of these subjobs writes something
		}
		data, err := os.ReadFile(filepath.Join(r.Path, unitsFile))
		if err != nil {
			return nil, fmt.Errorf("the output of subjob %s: %w", r.Subjob, err)
		}
		all[i].units = parseUnits(data)
	}
	return all, nil
}

// history of a job, from its outputs and its witness.
func (c *world) history(job string) history {
	output, err := c.outputs(job)
	if err != nil {
		return history{wrong: []string{err.Error()}}
	}
	data, err := os.ReadFile(filepath.Join(c.witnesses, job))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return history{wrong: []string{err.Error()}}
	}
	return judge(job, unitsOfAJob, output, parseUnits(data))
}

// TestJudge: what the checker of histories sees, and what it lets pass.
func TestJudge(t *testing.T) {
	of := func(subjob, where string, from, to int64) (all []unit) {
		for i := from; i < to; i++ {
			all = append(all, unit{i, subjob, where})
		}
		return all
	}
	whole := []committed{{"a", 0, 2, of("a", "m1", 0, 2)}, {"b", 2, 4, of("b", "m2", 2, 4)}}
	both := append(of("a", "m1", 0, 2), of("b", "m2", 2, 4)...)
	for _, c := range []struct {
		what             string
		output           []committed
		witness          []unit
		duplicates, lost int64
		redone           int64
		wrong            string
	}{
		{"all of it", whole, both, 0, 0, 0, ""},
		{"done again", whole, append(of("z", "m3", 0, 3), both...), 0, 0, 3, ""},
		{"an output with more than counts", []committed{{"a", 0, 2, of("a", "m1", 0, 3)}, whole[1]},
			append(of("a", "m1", 2, 3), both...), 0, 0, 1, ""},
		{"nothing", nil, both, 0, 4, 4, "in no committed output"},
		{"a gap", whole[:1], both, 0, 2, 2, "unit 2 is in no committed output"},
		{"committed by two", append([]committed{{"c", 1, 2, of("c", "m1", 1, 2)}}, whole...), append(of("c", "m1", 1, 2), both...), 1, 0, 1,
			"unit 1 is in the committed output 2 times"},
		{"twice in one output", []committed{{"a", 0, 2, append(of("a", "m1", 0, 2), of("a", "m1", 0, 1)...)}, whole[1]}, both, 1, 0, 0,
			"has it 2 times"},
		{"an empty output", []committed{{"a", 0, 2, nil}, whole[1]}, both, 0, 2, 2, "has it 0 times"},
		{"of another subjob", []committed{{"a", 0, 2, of("b", "m1", 0, 2)}, whole[1]}, both, 0, 0, 0, "has unit 0 of subjob b"},
		{"not seen by the witness", whole, both[1:], 0, 0, 0, "its witness has not seen it"},
		{"beyond the end", append([]committed{{"c", 4, 5, of("c", "m1", 4, 5)}}, whole...), append(of("c", "m1", 4, 5), both...), 0, 0, 1,
			"has committed unit 4 of 4"},
	} {
		h := judge("j", 4, c.output, c.witness)
		if h.duplicates != c.duplicates || h.lost != c.lost || h.redone != c.redone {
			t.Errorf("%s: %d duplicates, %d lost, %d redone, want %d, %d, %d", c.what, h.duplicates, h.lost, h.redone, c.duplicates, c.lost,
				c.redone)
		}
		if all := strings.Join(h.wrong, "\n"); (all == "") != (c.wrong == "") || !strings.Contains(all, c.wrong) {
			t.Errorf("%s: found %q, want %q", c.what, all, c.wrong)
		}
	}
}
