package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"

	"sluice.dev/sluice/bench/subjob"
)

// steps is the processor time that a step of each actor takes in a small park with few jobs and in a large one with many. Both are busy,
// so that the inputs are those of a working day: submissions, results, offers, grants, what people change. A machine's node would hardly
// notice: it is measured alone, with all slices on one machine.
func (s *settings) steps(ctx context.Context, _ []string) (lines []line, err error) {
	small, large := s.slices/100, s.slices
	few, many := s.sizes[0], s.sizes[len(s.sizes)-1]
	of := []string{fmt.Sprintf("%s jobs, %s slices", size(few), size(small)), fmt.Sprintf("%s jobs, %s slices", size(many), size(large))}
	sold := 2 * large // so many that jobs end, and people act, in the large park too
	park, err := s.askAll(ctx, min(s.rounds, 3), question{Kind: "world", Waiting: few, Slices: small, Sold: sold},
		question{Kind: "world", Waiting: many, Slices: large, Sold: sold})
	if err != nil {
		return nil, err
	}
	alone, err := s.askAll(ctx, s.rounds, question{Kind: "node", Slices: small, Sold: s.sold},
		question{Kind: "node", Slices: large, Sold: s.sold})
	if err != nil {
		return nil, err
	}
	for _, actor := range []struct {
		name    string
		replies [][]reply
		of      []string
		taken   func(r *reply) taken
	}{
		{"gate", park, of, func(r *reply) taken { return r.Gate }},
		{"zone", park, of, func(r *reply) taken { return r.Zone }},
		{"node", alone, []string{size(small) + " slices", size(large) + " slices"}, func(r *reply) taken { return r.Node }},
	} {
		for _, figure := range []struct {
			name, unit string
			value      func(t taken) float64
		}{
			{"step, median", "us", func(t taken) float64 { return t.Median }},
			{"step, p99", "us", func(t taken) float64 { return t.P99 }},
			{"all steps for a sold subjob", "us", func(t taken) float64 { return t.PerSold }},
		} {
			if actor.name == "gate" && figure.name == "all steps for a sold subjob" { // it knows of no subjob
				figure.name, figure.value = "all steps for a submitted job", func(t taken) float64 { return t.PerJob }
			}
			l := line{Row: "step", Name: actor.name + ": " + figure.name, Unit: figure.unit, Ratio: 2, Target: "at most 2 times"}
			for i, replies := range actor.replies {
				l.Cells = append(l.Cells, ofAll(actor.of[i], replies, func(r *reply) float64 { return figure.value(actor.taken(r)) }))
			}
			lines = append(lines, l)
		}
	}
	return lines, nil
}

// askAll runs all questions in each round, each in a fresh process, and returns its replies by round: the state of
// the processor's caches and the load by others differ from process to process.
func (s *settings) askAll(ctx context.Context, rounds int, all ...question) ([][]reply, error) {
	out := make([][]reply, len(all))
	for range rounds {
		for i, q := range all {
			r, err := s.ask(ctx, q)
			if err != nil {
				return nil, err
			}
			out[i] = append(out[i], r)
		}
	}
	return out, nil
}

// ofAll is the cell of a figure in several replies; one that gave up gives all of them up.
func ofAll(of string, replies []reply, value func(r *reply) float64) cell {
	var values []float64
	for i := range replies {
		if r := &replies[i]; r.GaveUp != "" {
			return gaveUp(of, "%s", r.GaveUp)
		}
		values = append(values, value(&replies[i]))
	}
	return measured(of, values...)
}

// sales is what processor time a sold subjob costs the zone, from its window to its commit, with more and more jobs that wait.
func (s *settings) sales(ctx context.Context, _ []string) (lines []line, err error) {
	for _, m := range []struct {
		name  string
		jasda bool
		most  float64
	}{{"sja", false, 50}, {"jasda", true, 100}} {
		l := line{Row: "sold", Name: "sold subjob, " + m.name + ", in the zone", Unit: "us", Value: m.most,
			Target: fmt.Sprintf("%.0f us at 1M", m.most)}
		nodes := line{Row: "sold", Name: "the same in the nodes, " + m.name, Unit: "us"}
		for _, n := range s.sizes {
			r, err := s.ask(ctx, question{Kind: "world", Waiting: n, Slices: s.park, JASDA: m.jasda, Sold: s.sold})
			if err != nil {
				return nil, err
			}
			if r.GaveUp != "" {
				l.Cells = append(l.Cells, gaveUp(size(n), "%s", r.GaveUp))
				continue
			}
			l.Cells = append(l.Cells, measured(size(n), r.Zone.PerSold))
			nodes.Cells = append(nodes.Cells, measured(size(n), r.Node.PerSold))
		}
		lines = append(lines, l, nodes)
	}
	return lines, nil
}

// fleets is the simulator with larger and larger clusters, all of them busy.
func (s *settings) fleets(ctx context.Context, _ []string) ([]line, error) {
	rate := line{Row: "sim", Name: "simulator, all slices busy, one zone", Unit: "subjobs/s", More: true, Value: 5000,
		Target: "5,000 subjobs a second with 10,000 nodes"}
	busy := line{Row: "sim", Name: "the same, by a second of processor time", Unit: "subjobs/s", More: true}
	peak := line{Row: "sim", Name: "its memory at most", Unit: "GiB", Value: 1, Target: "1 GiB"}
	for _, n := range []int{s.nodes / 10, s.nodes * 3 / 10, s.nodes} {
		r, err := s.ask(ctx, question{Kind: "fleet", Nodes: n, Sold: s.simulated})
		if err != nil {
			return nil, err
		}
		of := size(n) + " nodes"
		if r.GaveUp != "" {
			rate.Cells, peak.Cells = append(rate.Cells, gaveUp(of, "%s", r.GaveUp)), append(peak.Cells, gaveUp(of, "%s", r.GaveUp))
			continue
		}
		rate.Cells, peak.Cells = append(rate.Cells, measured(of, r.PerSecond)), append(peak.Cells, measured(of, r.Peak))
		busy.Cells = append(busy.Cells, measured(of, r.PerProcessor))
	}
	return []line{rate, busy, peak}, nil
}

// subjob is how many subjobs that do nothing one machine ends in a second.
func (s *settings) subjob(ctx context.Context, _ []string) ([]line, error) {
	var own, bare, ratio, syncs []float64
	for range s.rounds {
		f, err := subjob.Measure(ctx, subjob.Settings{Bin: s.bin, Temp: s.temp, Slots: 4, Subjobs: s.noops})
		if err != nil {
			return nil, err
		}
		s.say("%.0f no-op subjobs a second, %.0f bare starts", f.PerSecond, f.BarePerSecond)
		own, bare, ratio, syncs = append(own, f.PerSecond), append(bare, f.BarePerSecond), append(ratio, f.Ratio()),
			append(syncs, f.JournalSyncs)
	}
	least := min(300, .4*measured("", bare...).Median)
	return []line{
		{
			Row: "subjob", Name: "no-op subjobs on one machine, 4 slices", Unit: "subjobs/s", More: true, Value: least,
			Cells:  []cell{measured("4 slices", own...)},
			Target: fmt.Sprintf("300 a second, or 40%% of bare fork, exec and wait of the same two programs: here %s", number(least)),
		},
		{Row: "subjob", Name: "bare fork, exec and wait of both programs", Unit: "pairs/s", More: true,
			Cells: []cell{measured("4 at once", bare...)}},
		{Row: "subjob", Name: "subjobs by bare pairs", Unit: "of 1", More: true, Cells: []cell{measured("4 slices", ratio...)}},
		{Row: "subjob", Name: "journal syncs for a no-op subjob when busy", Unit: "syncs", Value: 2, Target: "at most 2",
			Cells: []cell{measured("4 slices", syncs...)}},
	}, nil
}

// shell is what the live shell itself costs: 256 callers and a gate that says yes, beside the same code of an older commit.
func (s *settings) shell(ctx context.Context, _ []string) ([]line, error) {
	now, err := s.shellOf(ctx, ".", "now.test")
	if err != nil {
		return nil, err
	}
	l := line{Row: "shell", Name: "shell with a toy gate, 256 callers", Unit: "jobs/s", More: true, Ratio: 1.05,
		Target: "not slower than before there was growth (within 5%)"}
	work := line{Row: "shell", Name: "hashing and syncing as many bytes with nothing else", Unit: "jobs/s", More: true}
	var rates, older, bare []float64
	var before func(context.Context) (float64, error)
	if s.before != "" {
		if before, err = s.shellOf(ctx, s.before, "before.test"); err != nil {
			return nil, err
		}
	}
	for range s.rounds {
		if before != nil {
			r, err := before(ctx)
			if err != nil {
				return nil, err
			}
			older = append(older, r)
		}
		r, err := now(ctx)
		if err != nil {
			return nil, err
		}
		rates = append(rates, r)
		if r, err = s.bareShell(); err != nil {
			return nil, err
		}
		bare = append(bare, r)
	}
	work.Cells = []cell{measured("bare", bare...)}
	if before == nil {
		older = s.older(work.Cells[0].Median)
		l.Note = "before: from the baseline, by how fast the machine hashes and syncs today; -before measures it"
	}
	l.Cells = []cell{measured("before", older...), measured("now", rates...)}
	return []line{l, work}, nil
}

// older is what the baseline says of the shell of before, for a machine that does so much bare work today.
func (s *settings) older(bare float64) []float64 {
	then, was := s.baseline.find("shell", 0), s.baseline.find("shell", 1)
	if then == nil || was == nil || was.Median <= 0 {
		return nil
	}
	return []float64{then.Median * bare / was.Median}
}

// find is the first cell of line i of a row; nil if it has no value.
func (r *results) find(row string, i int) *cell {
	for k := range r.Lines {
		if l := &r.Lines[k]; l.Row == row {
			if i--; i < 0 {
				if len(l.Cells) == 0 || l.Cells[0].GaveUp != "" {
					return nil
				}
				return &l.Cells[0]
			}
		}
	}
	return nil
}

// shellOf builds the tests of a checkout's shell and returns what runs its benchmark once.
func (s *settings) shellOf(ctx context.Context, dir, name string) (func(context.Context) (float64, error), error) {
	pkg := ""
	for _, p := range []string{"internal/host", "internal/drive/host"} {
		if _, err := os.Stat(filepath.Join(dir, p, "bench_test.go")); err == nil {
			pkg = p
			break
		}
	}
	if pkg == "" {
		return nil, fmt.Errorf("%s has no benchmark of the shell (internal/host/bench_test.go)", dir)
	}
	file := filepath.Join(s.temp, name)
	if err := goTool(ctx, dir, "test", "-c", "-o", file, "./"+pkg); err != nil {
		return nil, err
	}
	figure := regexp.MustCompile(`([0-9.e+]+) jobs/s`)
	return func(ctx context.Context) (float64, error) {
		cmd := exec.CommandContext(ctx, file, "-test.run", "^$", "-test.bench", "^BenchmarkSubmit$", "-test.benchtime", "1s")
		cmd.Dir = filepath.Join(dir, pkg)
		out, err := cmd.CombinedOutput()
		m := figure.FindSubmatch(bytes.TrimSpace(out))
		if err != nil || m == nil {
			return 0, errors.Join(fmt.Errorf("%s: no figure in %q", file, out), err)
		}
		return strconv.ParseFloat(string(m[1]), 64)
	}, nil
}
