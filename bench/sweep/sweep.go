// Package sweep is what the pages have in common that vary one setting of a scenario after the other: studies, which a file beside the
// bench lists, how they are run and kept, and their rows.
package sweep

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.yaml.in/yaml/v3"

	"sluice.dev/sluice/bench/program"
	"sluice.dev/sluice/internal/edge/strict"
	"sluice.dev/sluice/internal/lab/measure"
	"sluice.dev/sluice/internal/lab/report"
	"sluice.dev/sluice/internal/lab/scenario"
	"sluice.dev/sluice/internal/lab/scenario/outcome"
)

// Settings of one page.
type Settings struct {
	// Data is the folder of published traces, empty for none; Out the one that the page is written to, Keep that of every single result.
	Data, Out, Keep string
	// Again: results kept by an earlier run are read, and nothing is run.
	Again bool
	Seeds []uint64
	// Only these studies; none for all.
	Only    []string
	Workers int
}

// Usage is what a bench's flags say, and what holds without them.
type Usage struct {
	Name, Text, Data, Keep, Only, Seeds, Workers string
	AtOnce                                       int // runs at once
}

// Main is the main function of such a bench.
func Main(u Usage, evaluate func(context.Context, *Settings, io.Writer) error) {
	var s Settings
	var only string
	flag.StringVar(&s.Data, "data", os.Getenv("SLUICE_DATA"), u.Data)
	flag.StringVar(&s.Out, "out", "docs", fmt.Sprintf("folder to write %s.md and %[1]s/*.svg to", u.Name))
	flag.StringVar(&s.Keep, "keep", ".tmp/"+u.Name, u.Keep)
	flag.BoolVar(&s.Again, "again", false, "write the page from the results kept by the last run, without running anything")
	flag.StringVar(&u.Seeds, "seeds", u.Seeds, "seeds of every point")
	flag.StringVar(&only, "only", "", u.Only)
	flag.IntVar(&s.Workers, "workers", u.AtOnce, u.Workers)
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), u.Text)
		flag.PrintDefaults()
	}
	flag.Parse()
	program.Main(u.Name, func(ctx context.Context) (err error) {
		if s.Seeds, err = scenario.Seeds(u.Seeds); err != nil {
			return err
		}
		if only != "" {
			s.Only = strings.Split(only, ",")
		}
		return evaluate(ctx, &s, os.Stderr)
	})
}

// Known says whether all studies that are asked for are among those of these names.
func (s *Settings) Known(names []string) error {
	for _, name := range s.Only {
		if !slices.Contains(names, name) {
			return fmt.Errorf("there is no study %q; %s", name, strict.Hint(name, names))
		}
	}
	return nil
}

// Wants says whether a study is to be run.
func (s *Settings) Wants(name string) bool { return len(s.Only) == 0 || slices.Contains(s.Only, name) }

// Study varies one setting of a scenario.
type Study struct {
	Name, Title string
	// Question is what the reader is to look for.
	Question string
	Axis     Axis
	Points   Points
	// Mechanisms that run at every point, with commas between.
	Mechanisms string
	// Traced: it needs published traces.
	Traced bool
	// Charts are the metrics that are drawn.
	Charts []string
}

// Axis is a report's, with the unit as a word.
type Axis report.Axis

// UnmarshalYAML implements yaml.Unmarshaler.
func (a *Axis) UnmarshalYAML(n *yaml.Node) error {
	var in struct {
		Label, Unit string
		Log         bool
	}
	if err := n.Decode(&in); err != nil {
		return err
	}
	units := map[string]measure.Unit{"": measure.Plain, "seconds": measure.Seconds, "share": measure.Share}
	unit, known := units[in.Unit]
	if !known {
		return fmt.Errorf("line %d: there is no unit %q", n.Line, in.Unit)
	}
	*a = Axis{Label: in.Label, Unit: unit, Log: in.Log}
	return nil
}

// Point is one setting.
type Point struct {
	Label string
	X     float64
	// Base is the scenario, where it is another than the study's.
	Base string
	// Texts are replacements in the scenario (path=value), and Sets what they say.
	Texts []string     `yaml:"sets"`
	Sets  []strict.Set `yaml:"-"`
}

// Points are those of one path, or of several that have the same value, swept over values, then those of a list. Each has more
// replacements with them; in places x is the place of the point.
type Points []Point

// UnmarshalYAML implements yaml.Unmarshaler.
func (p *Points) UnmarshalYAML(n *yaml.Node) error {
	var in struct {
		Sweep, Values, With []string
		List                []Point
		Places              bool
	}
	if err := n.Decode(&in); err != nil {
		return err
	}
	for i, v := range in.Values {
		at := Point{Label: v, X: Position(v, i)}
		for _, path := range in.Sweep {
			at.Texts = append(at.Texts, path+"="+v)
		}
		*p = append(*p, at)
	}
	*p = append(*p, in.List...)
	for i := range *p {
		at := &(*p)[i]
		for _, text := range append(at.Texts, in.With...) {
			path, value, ok := strings.Cut(text, "=")
			if !ok {
				return fmt.Errorf("line %d: %q is no path=value", n.Line, text)
			}
			at.Sets = append(at.Sets, strict.Set{Path: path, Value: value})
		}
		if in.Places {
			at.X = float64(i)
		}
	}
	return nil
}

// Position of a value on an axis: seconds, a share, a number; or its place where it is a word.
func Position(v string, i int) float64 {
	if d, err := time.ParseDuration(v); err == nil {
		return d.Seconds()
	}
	if share, ok := strings.CutSuffix(v, "%"); ok {
		if x, err := strconv.ParseFloat(share, 64); err == nil {
			return x / 100
		}
	}
	if x, err := strconv.ParseFloat(v, 64); err == nil {
		return x
	}
	return float64(i)
}

// Read reads the studies of a file that is part of the program; one that can't be read is a fault of the program.
func Read[T any](text []byte) (list []T) {
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&list); err != nil {
		panic(err)
	}
	return list
}

// Each does something for each of n points, several at once. The first failure ends the others.
func Each(ctx context.Context, workers, n int, begin func(i int), do func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, n)
	turn := make(chan struct{}, max(1, workers))
	var crew sync.WaitGroup
	for i := range n {
		turn <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		begin(i)
		crew.Go(func() {
			defer func() { <-turn }()
			if errs[i] = do(ctx, i); errs[i] != nil {
				cancel()
			}
		})
	}
	crew.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return errors.New("it was stopped")
	}
	return nil
}

// Rows are the results of a study: each carries the setting that was varied.
type Rows []report.Row

// Add adds what a point gave, unless it broke an invariant.
func (r *Rows) Add(of string, axis Axis, p Point, results []outcome.Result) error {
	for _, x := range results {
		if len(x.Broken) > 0 {
			return fmt.Errorf("%s, %s, seed %d, broke an invariant: %s", p.Label, x.Mechanism, x.Seed, strings.Join(x.Broken, "; "))
		}
		r.add(of, axis, p.X, &x.Run)
	}
	return nil
}

func (r *Rows) add(of string, axis Axis, x float64, run *measure.Run) {
	*r = append(*r, report.Row{Scenario: of, Mechanism: run.Mechanism, Seed: run.Seed,
		Params: []report.Param{{Name: axis.Label, Value: x}}, Metrics: run.Metrics})
}

// Recall reads rows that were kept as JSON: the setting of a run stands behind its scenario's name.
func (r *Rows) Recall(path string, axis Axis) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	runs, err := measure.ReadJSON(f)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for i := range runs {
		name, setting, ok := strings.Cut(runs[i].Scenario, " "+axis.Label+"=")
		x, err := strconv.ParseFloat(setting, 64)
		if !ok || err != nil {
			return fmt.Errorf("%s: %q names no value of %s: it is of another version of this study; run it again", path, runs[i].Scenario,
				axis.Label)
		}
		r.add(name, axis, x, &runs[i])
	}
	return nil
}

// Xs are the settings that were run, in the order of the points.
func (r Rows) Xs() (out []float64) {
	for i := range r {
		if x := r[i].Params[0].Value; !slices.Contains(out, x) {
			out = append(out, x)
		}
	}
	return out
}

// Names are the mechanisms, in the order in which they ran.
func (r Rows) Names() (out []string) {
	for i := range r {
		if m := r[i].Mechanism; !slices.Contains(out, m) {
			out = append(out, m)
		}
	}
	return out
}

// Values of a metric at a setting, one for each seed in the order in which they were run.
func (r Rows) Values(x float64, mechanism, metric string) (out []float64) {
	for i := range r {
		if w := &r[i]; w.Mechanism == mechanism && w.Params[0].Value == x {
			out = append(out, w.Metrics.Get(metric))
		}
	}
	return out
}

// Mean of a metric at a setting over the seeds.
func (r Rows) Mean(x float64, mechanism, metric string) measure.Estimate {
	return measure.Mean(r.Values(x, mechanism, metric))
}

// Spread says whether the values of a metric differ by more than twenty times: such are drawn in decades.
func (r Rows) Spread(metric string) bool {
	low, high := 0.0, 0.0
	for _, x := range r.Xs() {
		for _, m := range r.Names() {
			if v := r.Mean(x, m, metric).Mean; v > 0 {
				if low == 0 || v < low {
					low = v
				}
				high = max(high, v)
			}
		}
	}
	return high > 20*low
}
