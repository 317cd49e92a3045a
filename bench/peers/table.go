package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"sluice.dev/sluice/bench/page"
)

// table has the results of every contestant.
type table struct {
	nodes, rounds int
	results       [][]result
	failed        []error
}

// compete runs all contestants by turns, each in a process of its own. One that fails is said to, and the others go on.
func compete(nodes, rounds int) (*table, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	t := &table{nodes: nodes, rounds: rounds, results: make([][]result, len(contestants)), failed: make([]error, len(contestants))}
	for range rounds {
		for i := range contestants {
			if t.failed[i] != nil {
				continue
			}
			var r result
			out, err := exec.Command(self, "-child", strconv.Itoa(i), "-nodes", strconv.Itoa(nodes)).Output()
			if err == nil {
				err = json.Unmarshal(out, &r)
			}
			if err != nil {
				t.failed[i] = fmt.Errorf("%s: %w", contestants[i].name, err)
				fmt.Fprintln(os.Stderr, t.failed[i])
				continue
			}
			fmt.Fprintf(os.Stderr, "%s, %s: %.0f/s, %.0f a second of processor\n", contestants[i].name, contestants[i].workName, rate(r),
				cpuRate(r))
			t.results[i] = append(t.results[i], r)
		}
	}
	return t, nil
}

func rate(r result) float64    { return float64(r.Placed) / r.Wall.Seconds() }
func cpuRate(r result) float64 { return float64(r.Placed) / r.CPU.Seconds() }

// spread is the median of a figure, and the least and largest.
type spread struct{ low, median, high float64 }

func spreadOf(list []result, f func(result) float64) spread {
	var v []float64
	for _, r := range list {
		v = append(v, f(r))
	}
	slices.Sort(v)
	return spread{v[0], v[len(v)/2], v[len(v)-1]}
}

func (s spread) String() string {
	return fmt.Sprintf("%s (%s to %s)", number(s.median), number(s.low), number(s.high))
}

// number is a figure of three digits.
func number(f float64) string {
	n, _ := strconv.ParseFloat(strconv.FormatFloat(f, 'g', 3, 64), 64)
	text := strconv.FormatFloat(n, 'f', -1, 64)
	whole, rest, _ := strings.Cut(text, ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if rest != "" {
		whole += "." + rest
	}
	return whole
}

// markdown writes the table. The ratio is that to the best of the peers with the same work, by processor time: neighbours on the machine
// do not count there.
func (t *table) markdown(w io.Writer) {
	fmt.Fprintf(w, "%d nodes of four slices, load %v, %s, medians of %d runs by turns (least and most).\n\n", t.nodes, load, machine(),
		t.rounds)
	fmt.Fprint(w, "| asks | scheduler | asks at once | placements a second of processor | a second by the clock | the decision alone, a "+
		"second | placed | times the best peer |\n|---|---|---|---|---|---|---|---|\n")
	best := map[string]float64{}
	for i, c := range contestants {
		if len(t.results[i]) > 0 && !c.ours {
			best[c.workName] = max(best[c.workName], spreadOf(t.results[i], cpuRate).median)
		}
	}
	for i, c := range contestants {
		list := t.results[i]
		if t.failed[i] != nil || len(list) == 0 {
			fmt.Fprintf(w, "| %s | %s | %d | failed | | | | |\n", c.workName, c.name, c.batch)
			continue
		}
		by, ratio, inner := spreadOf(list, cpuRate), "", ""
		if c.ours && best[c.workName] > 0 {
			ratio = number(by.median / best[c.workName])
		}
		if list[0].Inner > 0 {
			inner = number(spreadOf(list, func(r result) float64 { return float64(r.Placed) / r.Inner.Seconds() }).median)
		}
		placed := spreadOf(list, func(r result) float64 { return float64(r.Placed) / float64(r.Placed+r.Failed) })
		fmt.Fprintf(w, "| %s | %s | %d | %v | %v | %s | %.4f | %s |\n", c.workName, c.name, c.batch, by,
			number(spreadOf(list, rate).median), inner, placed.median, ratio)
	}
}

// machine is what it was measured on.
func machine() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	_, model, _ := strings.Cut(string(text), "model name\t: ")
	model, _, _ = strings.Cut(model, "\n")
	return fmt.Sprintf("%s, %d cores, %s", model, runtime.NumCPU(), runtime.Version())
}

// keep writes the table into a page, between its marks.
func (t *table) keep(file string) error {
	var out strings.Builder
	t.markdown(&out)
	return page.Between(file, "peers", out.String())
}
