// Package observe turns what the actors decide and hear into log lines, metrics and the recent past of each slice. It
// is a projection: it decides nothing, nothing depends on it, and everything it keeps is bounded. It must not know
// policies, queues' rules or how facts are stored.
package observe

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"sluice.dev/sluice/internal/core/health"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
)

// Options of an Observer.
type Options struct {
	// Log gets one line for what a person would want to read about; nil for none.
	Log *slog.Logger
	// HistoryFor is how far back History reaches at most. Default 24 h.
	HistoryFor time.Duration
}

// Observer is fed by the driver's loop, from one goroutine; Metrics may be served from any.
type Observer struct {
	metrics *metrics
	lines   lines
	jobs    jobs
	windows windows
	history history
}

// New makes an observer that has seen nothing.
func New(o Options) *Observer {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.HistoryFor <= 0 {
		o.HistoryFor = 24 * time.Hour
	}
	m := newMetrics()
	return &Observer{
		metrics: m,
		lines:   lines{o.Log},
		jobs:    jobs{metrics: m, open: map[jobKey]openJob{}, leases: map[tokenKey]jobKey{}},
		windows: windows{metrics: m, slices: map[sliceKey]*offered{}},
		history: history{reach: o.HistoryFor, slices: map[sliceKey]*past{}, leases: map[tokenKey]*lease{},
			gangs: map[tokenKey][]job.Token{}},
	}
}

// Message gets every input of an actor, before the step. now is the step's time.
func (o *Observer) Message(now quantity.Instant, m *protocol.Message) {
	o.metrics.steps.WithLabelValues(roleName(m.To.Role)).Inc()
	switch m.Kind {
	case protocol.Offer:
		if m.Body.(*protocol.SliceView) != nil {
			o.windows.offer(now, m.Body.(*protocol.SliceView))
			o.history.offer(now, m.Body.(*protocol.SliceView))
		}
	case protocol.Inventory:
		if m.To.Role == protocol.Node && m.From.Role != protocol.Gate { // which asks for what a node has
			stock := m.Body.(*protocol.Stock)
			o.history.inventory(now, stock.Slices)
			o.lines.inventory(stock)
		}
	case protocol.Checkup:
		v := m.Body.(*protocol.Vitals)
		for _, x := range v.Errors {
			o.metrics.xids.WithLabelValues(health.Label(x.Code)).Inc()
		}
		o.lines.vitals(v)
	default: // only the step is counted
	}
}

// Fact gets every fact once it is durable. now is the time of its step.
func (o *Observer) Fact(now quantity.Instant, f *protocol.Fact) {
	o.metrics.fact(f)
	o.lines.fact(f)
	o.jobs.fact(f, true)
	o.history.fact(now, f)
}

// Recovered gets every fact of earlier boots: it rebuilds what is shown, without lines and without counting again.
func (o *Observer) Recovered(f *protocol.Fact) {
	o.jobs.fact(f, false)
	o.history.fact(0, f)
}

// Stepped gets how long an actor took to decide on one input.
func (o *Observer) Stepped(r protocol.Role, took time.Duration) {
	o.metrics.step.WithLabelValues(roleName(r)).Observe(took.Seconds())
}

// Appended gets every sync of the journal: how long it took, and how many records and bytes it made durable.
func (o *Observer) Appended(took time.Duration, records, bytes int) {
	o.metrics.append.Observe(took.Seconds())
	o.metrics.records.Add(float64(records))
	o.metrics.bytes.Add(float64(bytes))
}

// Inbox shows the messages of one kind of sender that wait for the loop, and how many were dropped so far. load may be called from
// any goroutine.
func (o *Observer) Inbox(from string, load func() (waiting int, dropped uint64)) {
	of := prometheus.Labels{"from": from}
	o.metrics.registry.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "sluice_inbox_messages", Help: "Messages that wait to be taken, by who sent " +
			"them.", ConstLabels: of},
			func() float64 { n, _ := load(); return float64(n) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "sluice_inbox_messages_dropped_total",
			Help: "Messages dropped because too many " +
				"waited, by who sent them; they are said again.", ConstLabels: of},
			func() float64 { _, n := load(); return float64(n) }))
}

// Trouble is called when the daemon stops deciding because its journal takes no more, or starting subjobs because its node can not, and
// when it goes on.
func (o *Observer) Trouble(on bool) {
	value := 0.0
	if on {
		value = 1
	}
	o.metrics.trouble.Set(value)
}

// Strained records the state of the machine's memory, and what was done about it so far.
func (o *Observer) Strained(g status.Guard, s status.Strain) {
	o.metrics.memory.count(g.Level == "" || g.Level == memoryOff, &s)
}

// HostWaited gets each wait that is over, of workloads outside Sluice for what subjobs had.
func (o *Observer) HostWaited(w *status.HostWait) {
	o.metrics.hosts.WithLabelValues(w.Pool).Observe(max(0, w.Until.Sub(w.From)).Seconds())
}

// Negotiated records what the market has counted since the daemon started. It is called whenever a count may have changed.
func (o *Observer) Negotiated(n status.Negotiation) { o.metrics.market.count(n) }

// Filed records one durable change of the archive: how long it took, how many parts were filed and how many jobs purged.
func (o *Observer) Filed(took time.Duration, parts, purged int) {
	a := &o.metrics.archive
	a.change.Observe(took.Seconds())
	a.filed.Add(float64(parts))
	a.purged.Add(float64(purged))
}

// FilingDropped gets each message to the archive that found no room.
func (o *Observer) FilingDropped() { o.metrics.archive.dropped.Inc() }

// Archive gets how many jobs the archive has, its size and how much of that is free, in bytes.
func (o *Observer) Archive(jobs, bytes, free int64) {
	a := &o.metrics.archive
	a.jobs.Set(float64(jobs))
	a.bytes.Set(float64(bytes))
	a.free.Set(float64(free))
}

// History is what slices did between since and now, as far back as is kept: one piece of it, of the slices behind one in the order of
// their ids. next is where to go on; empty at the end.
func (o *Observer) History(since, now quantity.Instant, after job.SliceID) (h status.History, next job.SliceID) {
	return o.history.view(since, now, after)
}

// Metrics serves the metrics in Prometheus' text format.
func (o *Observer) Metrics() http.Handler {
	return promhttp.HandlerFor(withOlderNames(o.metrics.registry), promhttp.HandlerOpts{})
}
