package compose

import (
	"sluice.dev/sluice/internal/lab/workload"
	"sluice.dev/sluice/internal/lab/workload/synthetic"
)

// Synthetic has the statistics of the traces and needs none of them. All seeds are drawn, 0 too; the stream has no end.
func Synthetic() Inputs { return Generated(synthetic.Jobs{}) }

// Generated takes arrivals of a generator, whose Seed is added to that of the workload.
func Generated(g synthetic.Jobs) Inputs {
	in := Modelled()
	seed := g.Seed
	in.Arrivals = func(s uint64) workload.Arrivals {
		g := g
		g.Seed = seed + s
		return g.Open()
	}
	in.About = append([]string{
		"Arrivals and durations are drawn from distributions with the published statistics of the Philly trace: bursts by the index of " +
			"dispersion, durations by a mixture; a duration says nothing about its neighbours'.",
	}, in.About...)
	return in
}

// Modelled are programs and shapes alone, with the statistics of those that Measured reads.
func Modelled() Inputs {
	return Inputs{
		Programs: synthetic.Programs(32), Shapes: synthetic.Shapes(100),
		About: []string{
			"Programs have speeds by Amdahl's law with the means that MISO measured on the slices of an A100-40GB, and peaks of memory " +
				"spread as its footprints are, independent of the speed.",
			"Memory evolves in phases whose mean over peak has the quantiles of the pods of GenTD26; that a tenth of the progress warms " +
				"up at half the steady use and a tenth bursts is assumed.",
		},
	}
}
