package observe

import (
	"cmp"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/proto"
)

// factory makes metrics and registers them. A name ends in a base unit or says what it counts; TestNamesSayWhatTheyCount holds it.
type factory struct{ promauto.Factory }

func (f factory) counter(name, help string) prometheus.Counter {
	return f.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
}

func (f factory) counters(name, help string, labels ...string) *prometheus.CounterVec {
	return f.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

func (f factory) gauge(name, help string) prometheus.Gauge {
	return f.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
}

func (f factory) gauges(name, help string, labels ...string) *prometheus.GaugeVec {
	return f.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
}

// durations counts times, in seconds, in 20 buckets: the first as wide as given, each later one twice as wide.
func (f factory) durations(name, help string, first float64, labels ...string) *prometheus.HistogramVec {
	return f.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: prometheus.ExponentialBuckets(first, 2, 20)}, labels)
}

// shown is a metric of one number of a projection S.
type shown[S any] struct {
	of      func(*S) float64
	gauge   prometheus.Gauge   // nil if it is a counter, whose number only grows
	counter prometheus.Counter // nil if it is a gauge
}

// show adds the changes up to now. A counter that went down, such as a regret below 0, is not counted.
func (s shown[S]) show(now, last *S) {
	if s.gauge != nil {
		s.gauge.Set(s.of(now))
	} else {
		s.counter.Add(max(0, s.of(now)-s.of(last)))
	}
}

// olderNames are those that metrics had before, by the names of today. They are shown beside these for one version.
var olderNames = map[string]string{
	"sluice_windows_unfilled_seconds_total": "sluice_gap_unanswered_seconds_total",
	"sluice_daemon_trouble":                 "sluice_trouble",
	"sluice_inbox_messages_dropped_total":   "sluice_inbox_dropped_total",
	"sluice_archive_parts_filed_total":      "sluice_archive_filed_total",
	"sluice_archive_jobs_purged_total":      "sluice_archive_purged_total",
	"sluice_archive_messages_dropped_total": "sluice_archive_dropped_total",
	"sluice_memory_capacity_bytes":          "sluice_memory_bytes",
	"sluice_memory_swap_free_bytes":         "sluice_memory_room_bytes",
	"sluice_memory_swapped_bytes":           "sluice_memory_parked_bytes",
	"sluice_airlock_suspended_subjobs":      "sluice_airlock_standing",
	"sluice_market_agent_calls_total":       "sluice_market_calls_total",
	"sluice_market_agent_answers_total":     "sluice_market_answers_total",
	"sluice_market_agent_misses_total":      "sluice_market_missed_total",
	"sluice_market_variants_denied_total":   "sluice_market_denied_total",
	"sluice_market_variants_planned_total":  "sluice_market_planned_total",
	"sluice_market_picks_declined_total":    "sluice_market_declined_total",
	"sluice_market_subjobs_withdrawn_total": "sluice_market_withdrawn_total",
}

// withOlderNames gathers what g does, and again under the older names.
func withOlderNames(g prometheus.Gatherer) prometheus.Gatherer {
	return prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		all, err := g.Gather()
		for _, f := range all {
			if older, ok := olderNames[f.GetName()]; ok {
				all = append(all, &dto.MetricFamily{
					Name: &older, Help: proto.String("deprecated: use " + f.GetName()), Type: f.Type, Metric: f.Metric,
				})
			}
		}
		slices.SortFunc(all, func(a, b *dto.MetricFamily) int { return cmp.Compare(a.GetName(), b.GetName()) })
		return all, err
	})
}
