package compose

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/trace"
	"sluice.dev/sluice/internal/lab/trace/genai"
	"sluice.dev/sluice/internal/lab/trace/miso"
	"sluice.dev/sluice/internal/lab/trace/philly"
	"sluice.dev/sluice/internal/lab/workload"
)

// Files of the published traces below a folder.
const (
	PhillyFile = "philly/philly_sep-oct.csv.gz"
	MISOFile   = "miso/miso_mig_iter_summary.csv"
	GenAIFile  = "genai2026/pod_gpu_memory_used_bytes_anon.csv.gz"
)

// Published reads the parts from the traces below a folder: arrivals and durations of Philly, speeds and footprints of MISO,
// the evolution of memory of GenTD26. Errors are those of package trace, all at once; one that is not there has kind NotFound.
func Published(dir string) (Inputs, error) {
	log, err1 := readLog(filepath.Join(dir, filepath.FromSlash(PhillyFile)))
	in, err2 := Measured(dir)
	for _, err := range []error{err1, err2} {
		if err != nil {
			return Inputs{}, &errkind.Error{Kind: errkind.Of(err), Err: fmt.Errorf("published traces: %w", errors.Join(err1, err2))}
		}
	}
	in.Arrivals, in.Ends = func(seed uint64) workload.Arrivals { return &stretches{log: log, seed: seed} },
		func(seed uint64) bool { return seed == 0 }
	in.About = append([]string{fmt.Sprintf("Arrivals, durations and virtual clusters are Philly's, from the first of 100 jobs within a "+
		"day on (the trace begins with weeks of a few jobs): seed 0 has them as published, others draw stretches of %d jobs of it with "+
		"equal chance, each from anywhere (the moving-block bootstrap of Künsch, 1989, on a circle), so that bursts are kept within a "+
		"stretch.", blockJobs)}, in.About...)
	return in, nil
}

// Measured reads programs and shapes alone: speeds and footprints of MISO, the evolution of memory of GenTD26.
func Measured(dir string) (Inputs, error) {
	programs, err1 := readPrograms(filepath.Join(dir, filepath.FromSlash(MISOFile)))
	shapes, err2 := readShapes(filepath.Join(dir, filepath.FromSlash(GenAIFile)))
	for _, err := range []error{err1, err2} {
		if err != nil {
			return Inputs{}, &errkind.Error{Kind: errkind.Of(err), Err: errors.Join(err1, err2)}
		}
	}
	return Inputs{
		Programs: programs, Shapes: shapes,
		About: []string{
			"Programs are the training runs that MISO measured on the slices of an A100-40GB, each with equal chance; where one did not " +
				"run on a slice, its speed there is taken to fall in proportion to the compute slices.",
			"The peak of a program is its footprint on a whole GPU, or 94% of the memory of the smallest slice on which it truly ran if " +
				"that is less: footprints on a whole GPU hold what the allocator took and did not need.",
			"Memory evolves as that of a pod of GenTD26 over its life: steady at its median, warm at its 5% quantile, at the peak for " +
				"the share of time that it is nearer to its peak than to its median, and warm for the share that it is nearer to the 5% " +
				"quantile. That training evolves like serving, with one warm-up at the start and one burst, is assumed.",
		},
	}, nil
}

// denseJobs within a day are where a log begins to be one of a cluster in use.
const denseJobs = 100

// readLog keeps a whole log: 50,000 jobs take 3 MB.
func readLog(path string) ([]entry, error) {
	var all []arrival
	err := trace.Each(philly.Format(), path, func(r *trace.Record) error {
		if r.Job.Duration > 0 && r.Job.GPUs > 0 {
			all = append(all, arrival{r.At, entry{duration: r.Job.Duration, gpus: int(min(r.Job.GPUs, math.MaxInt32)), queue: r.Job.Queue}})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(all, func(a, b arrival) int { return int(min(max(a.at-b.at, -1), 1)) })
	begin := 0
	for begin+denseJobs < len(all) && all[begin+denseJobs].at-all[begin].at > 24*time.Hour {
		begin++
	}
	if begin+denseJobs >= len(all) {
		return nil, errkind.Errorf(errkind.Invalid, "%s: has nowhere %d jobs within a day; want the log of a cluster in use", path,
			denseJobs)
	}
	all = all[begin:]
	return gaps(all), nil
}

// usable memory of the slices of an A100-40GB in MiB, by the profiles that MISO names.
func usable(profile string) (compute int, memory quantity.Amount, ok bool) {
	digits, _, _ := strings.Cut(profile, "g.")
	compute, err := strconv.Atoi(digits)
	if err != nil {
		return 0, 0, false
	}
	mib, ok := map[int]quantity.Amount{1: 4864, 2: 9856, 3: 19968, 4: 19968, 7: 40192}[compute]
	return compute, mib << 20, ok
}

// readPrograms reads MISO's summary. A program is a model at a batch size.
func readPrograms(path string) ([]workload.Program, error) {
	var list []workload.Program
	var least []quantity.Amount
	at := map[string]int{}
	err := trace.Each(miso.Format(), path, func(r *trace.Record) error {
		m := &r.Measurement
		compute, memory, ok := usable(m.Profile)
		if !ok || m.Speed <= 0 {
			return errkind.Errorf(errkind.Invalid, "%s:%d: profile %q, speed %d; want a profile of an A100-40GB, with its whole GPU in "+
				"the lines beside", path, r.Line, m.Profile, m.Speed)
		}
		name := programName(m.Program, m.Batch)
		i, known := at[name]
		if !known {
			i = len(list)
			at[name] = i
			list = append(list, workload.Program{Name: name, Peak: quantity.Amount(m.Memory) << 20})
			least = append(least, memory)
		}
		list[i].Speeds[compute] = m.Speed
		least[i] = min(least[i], memory)
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i := range list {
		list[i].Peak = min(list[i].Peak, least[i]/100*94)
		fill(&list[i].Speeds)
	}
	return list, nil
}

func programName(model string, batch int64) string {
	return model + "-" + strconv.FormatInt(batch, 10)
}

// fill in what was not measured of one to four compute slices, in proportion to the next larger slice.
func fill(speeds *[workload.Computes]int64) {
	last := workload.Computes - 1
	for c := 4; c > 0; c-- {
		if speeds[c] == 0 {
			speeds[c] = max(1, speeds[last]*int64(c)/int64(last))
		}
		last = c
	}
}

// samplesLeast is what a pod must have been seen for its shape to mean something: an hour and a half at one in 57 s.
const samplesLeast = 100

// readShapes reads the evolution of every pod's memory.
func readShapes(path string) ([]workload.Shape, error) {
	series := map[string][]float64{}
	var order []string
	err := trace.Each(genai.Format(), path, func(r *trace.Record) error {
		if _, known := series[r.Sample.Subject]; !known {
			order = append(order, r.Sample.Subject)
		}
		series[r.Sample.Subject] = append(series[r.Sample.Subject], r.Sample.Value)
		return nil
	})
	if err != nil {
		return nil, err
	}
	var list []workload.Shape
	for _, pod := range order {
		if s, ok := shapeOf(series[pod]); ok {
			list = append(list, s)
		}
	}
	if len(list) == 0 {
		return nil, errkind.Errorf(errkind.Invalid, "%s: no pod has %d samples above 0", path, samplesLeast)
	}
	return list, nil
}

// shapeOf a series, which is sorted on return.
func shapeOf(values []float64) (workload.Shape, bool) {
	slices.Sort(values)
	n := len(values)
	if n < samplesLeast || values[n-1] <= 0 {
		return workload.Shape{}, false
	}
	peak, median, warm := values[n-1], values[n/2], values[n/20]
	low, _ := slices.BinarySearch(values, (warm+median)/2)
	high, _ := slices.BinarySearch(values, (median+peak)/2)
	return workload.Shape{
		Warm: int64(1000 * warm / peak), Steady: int64(1000 * median / peak),
		WarmShare: int64(1000 * low / n), BurstShare: int64(1000 * (n - high) / n),
	}, true
}
