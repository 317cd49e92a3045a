package play

import (
	"context"
	"fmt"
	"slices"

	"sluice.dev/sluice/internal/lab/scenario"
	"sluice.dev/sluice/internal/lab/workload"
	"sluice.dev/sluice/internal/lab/workload/compose"
)

// Assumptions says in a sentence each what the generated and composed work of the scenario takes for granted; none where
// all jobs are explicit. An error means that the published traces can not be read.
func Assumptions(s *scenario.Scenario, data *Traces) ([]string, error) {
	var out []string
	seen := map[string]bool{}
	list := s.Workload.Streams
	if s.Host != nil {
		list = slices.Concat(s.Host.Streams, list)
	}
	for i := range list {
		t := &list[i]
		in, err := inputs(t, data)
		if err != nil {
			return nil, err
		}
		for _, sentence := range compose.Assumptions(in, t.Options) {
			if !seen[sentence] {
				seen[sentence] = true
				out = append(out, sentence)
			}
		}
	}
	return out, nil
}

// Account describes the generated and composed work under a seed: what its files contain, how gaps and departures were treated, and what
// was left out, a line each, with its count. It is empty where there is nothing to report.
func Account(ctx context.Context, s *scenario.Scenario, seed uint64, data *Traces) ([]string, error) {
	streams, err := openStreams(ctx, s, s.Workload.Streams, composeClasses(s), seed, data)
	if err != nil {
		return nil, err
	}
	var out []string
	for i, x := range streams {
		sum := x.Summary()
		wide, err := tooWide(s, x)
		if err != nil {
			return nil, err
		}
		lines := slices.Clone(x.counts)
		for _, c := range [...]compose.Count{
			{What: "with several GPUs: left out", Many: sum.Multi},
			{What: "fit no slice: left out", Many: sum.Unfit},
			{What: "hold more slices than any node has: sja and jasda place a job on one node and never run them, nor what waits behind " +
				"them", Many: wide},
		} {
			if c.Many > 0 {
				lines = append(lines, c)
			}
		}
		if len(lines) > 0 {
			lines = append(lines, compose.Count{What: "jobs offered", Many: sum.Jobs})
		}
		for _, c := range lines {
			text := c.String()
			if len(streams) > 1 {
				text = fmt.Sprintf("stream %d: %s", i+1, text)
			}
			out = append(out, text)
		}
	}
	return out, nil
}

// tooWide counts the jobs of a stream that hold more slices than any node has.
func tooWide(s *scenario.Scenario, x opened) (n int64, err error) {
	if x.of.Options.Multi != compose.Gang {
		return 0, nil
	}
	most := 0
	for i := range s.Nodes {
		most = max(most, len(s.Nodes[i].Slices))
	}
	var j workload.Job
	for {
		more, err := x.Next(&j)
		if !more || err != nil {
			return n, err
		}
		if j.Slices > most {
			n++
		}
	}
}
