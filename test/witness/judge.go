package witness

import (
	"bufio"
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// Unit is a line of an output or of a witness: which unit, by which subjob, on which machine.
type Unit struct {
	Number        int64
	Subjob, Where string
}

// Committed is a range of a job that counts, and what its subjob has left.
type Committed struct {
	Subjob   string
	From, To int64
	Units    []Unit
}

// History is what came of the units of a job.
type History struct {
	// Units that are in the committed output, and those of them by machine.
	Units   int64
	Machine map[string]int64
	// Units that are there more than once, and not at all.
	Duplicates, Lost int64
	// Redone counts what witnesses have seen more often than once: done again after a strike.
	Redone int64
	// Wrong are the first ten things that must not be.
	Wrong []string
}

// Judge compares what is committed of a job with what there must be, and with what its witness has seen.
func Judge(job string, total int64, output []Committed, witness []Unit) History {
	h := History{Machine: map[string]int64{}}
	wrong := func(format string, args ...any) {
		if len(h.Wrong) < 10 {
			h.Wrong = append(h.Wrong, "job "+job+": "+fmt.Sprintf(format, args...))
		}
	}
	seen, times := map[Unit]bool{}, make([]int64, total)
	for _, u := range witness {
		seen[u] = true
	}
	for _, o := range output {
		found := map[int64]int64{}
		for _, u := range o.Units {
			if u.Number < o.From || u.Number >= o.To {
				continue // it was done, and does not count
			}
			found[u.Number]++
			if h.Machine[u.Where]++; u.Subjob != o.Subjob {
				wrong("the output of subjob %s has unit %d of subjob %s", o.Subjob, u.Number, u.Subjob)
			} else if !seen[u] {
				wrong("unit %d of subjob %s on %s is in the output, and its witness has not seen it", u.Number, u.Subjob, u.Where)
			}
		}
		for i := o.From; i < o.To; i++ {
			if i < 0 || i >= total {
				wrong("subjob %s has committed unit %d of %d", o.Subjob, i, total)
				continue
			}
			if times[i] += found[i]; found[i] != 1 {
				wrong("unit %d is committed by subjob %s, whose output has it %d times", i, o.Subjob, found[i])
			}
		}
	}
	for i, n := range times {
		switch {
		case n == 0:
			h.Lost++
			wrong("unit %d is in no committed output", i)
		case n > 1:
			h.Duplicates += n - 1
			wrong("unit %d is in the committed output %d times", i, n)
		}
		h.Units += min(n, 1)
	}
	h.Redone = max(0, int64(len(witness))-h.Units)
	return h
}

func parseUnits(data []byte) (all []Unit) {
	in := bufio.NewScanner(bytes.NewReader(data))
	for in.Scan() {
		f := strings.Fields(in.Text())
		if len(f) != 3 {
			continue
		}
		if n, err := strconv.ParseInt(f[0], 10, 64); err == nil {
			all = append(all, Unit{n, f[1], f[2]})
		}
	}
	return all
}
