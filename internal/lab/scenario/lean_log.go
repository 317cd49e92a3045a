package scenario

import (
	"fmt"
	"path/filepath"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/strict"
	leanworld "sluice.dev/sluice/internal/lab/swarm/world"
	"sluice.dev/sluice/internal/lab/trace"
)

// SwarmLog is a file of requests to language models, each of which is a short task.
type SwarmLog struct {
	Format trace.Format
	// File below the folder of the data, or from the root.
	File string
	// Prompt and Output are the time for each token.
	Prompt, Output time.Duration
}

// leanArrivals reads where the short tasks of lean nodes come from, if not from a draw.
func (s *Scenario) leanArrivals(tasks strict.Object, f *leanworld.Flow) {
	v := tasks.Get("arrivals")
	if !v.Given() {
		return
	}
	for _, key := range []string{"mean", "long", "longMean", "longPatience", "batch"} {
		if x := tasks.Get(key); x.Given() {
			x.Wrong("is of tasks that are drawn; a file of arrivals has its own lengths, one after the other")
		}
	}
	o := v.Object("format", "file", "tokens")
	l := &SwarmLog{File: o.Need("file", "azure/log.csv.gz").Text("a file below --data DIR such as azure/log.csv.gz", "")}
	l.Format = s.format(o.Need("format", "azure"))
	if l.Format.Name != "" && l.Format.Kinds[0] != trace.Request {
		o.Get("format").Wrong("has no requests; take azure or mooncake")
	}
	of := o.Get("tokens").Object("prompt", "output")
	l.Prompt, l.Output = of.Get("prompt").Duration(0, time.Hour, promptToken), of.Get("output").Duration(0, time.Hour, outputToken)
	f.LongShare, f.Begun = 0, false
	s.SwarmLog = l
}

// into makes a flow of the log. A nil log leaves it as it is.
func (l *SwarmLog) into(f *leanworld.Flow, dir string) error {
	if l == nil {
		return nil
	}
	path := filepath.FromSlash(l.File)
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	var log []leanworld.Request
	var last, sum time.Duration
	_, err := trace.Read(l.Format, path, func(r *trace.Record) error {
		q := leanworld.Request{Length: time.Duration(r.Request.Input)*l.Prompt + time.Duration(r.Request.Output)*l.Output}
		if q.Length <= 0 {
			return nil
		}
		if len(log) > 0 {
			q.Gap = max(0, r.At-last)
		}
		log, last, sum = append(log, q), r.At, sum+q.Length
		return nil
	})
	switch {
	case err != nil:
		return fmt.Errorf("arrivals: %w", err)
	case len(log) < 2:
		return errkind.Errorf(errkind.Invalid, "%s has %d requests that take some time; want two", path, len(log))
	}
	f.Log, f.Mean = log, sum/time.Duration(len(log))
	return nil
}
