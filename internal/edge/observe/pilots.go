package observe

import (
	"github.com/prometheus/client_golang/prometheus"

	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/core/supply"
)

// lent collects the metrics of pools that host schedulers lend machines to. Pools are those of the daemon's file, so there are few.
type lent struct {
	list                   func() []status.Provider
	pilots, ended, answers *prometheus.Desc
}

// Lent shows the pools that list returns, which may be called from any goroutine.
func (o *Observer) Lent(list func() []status.Provider) {
	o.metrics.registry.MustRegister(&lent{
		list:   list,
		pilots: prometheus.NewDesc("sluice_pilots", "Pilots that may be there, by pool and state.", []string{"pool", "state"}, nil),
		ended: prometheus.NewDesc("sluice_pilots_ended_total", "Pilots that are gone, by pool and how they ended; also before this start.",
			[]string{"pool", "how"}, nil),
		answers: prometheus.NewDesc("sluice_provider_answers", "1 while the pool's host answers, else 0.", []string{"pool"}, nil),
	})
}

// Describe is part of prometheus.Collector.
func (l *lent) Describe(to chan<- *prometheus.Desc) { prometheus.DescribeByCollect(l, to) }

// Collect is part of prometheus.Collector. Every series is there from the start.
func (l *lent) Collect(to chan<- prometheus.Metric) {
	for _, p := range l.list() {
		states, ways := map[string]int{}, map[string]int{}
		for i := range p.Pilots {
			states[p.Pilots[i].State]++
		}
		for _, e := range p.Ended {
			ways[e.How] = e.Count
		}
		for state := supply.Sent; state <= supply.Leaving; state++ {
			s := state.String()
			to <- prometheus.MustNewConstMetric(l.pilots, prometheus.GaugeValue, float64(states[s]), p.Name, s)
		}
		for way := supply.Done; way <= supply.Vanished; way++ {
			how := way.String()
			to <- prometheus.MustNewConstMetric(l.ended, prometheus.CounterValue, float64(ways[how]), p.Name, how)
		}
		answers := 0.0
		if p.Silent == "" && p.Seen != 0 {
			answers = 1
		}
		to <- prometheus.MustNewConstMetric(l.answers, prometheus.GaugeValue, answers, p.Name)
	}
}
