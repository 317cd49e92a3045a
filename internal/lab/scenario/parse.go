package scenario

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/ends"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/config"
	inventory "sluice.dev/sluice/internal/edge/inventory/sim"
	"sluice.dev/sluice/internal/edge/strict"
	"sluice.dev/sluice/internal/lab/guest"
	"sluice.dev/sluice/internal/lab/lender"
	"sluice.dev/sluice/internal/lab/planner"
	"sluice.dev/sluice/internal/lab/scenario/outcome"
	"sluice.dev/sluice/internal/lab/trace"
)

// Reader reads scenarios.
type Reader struct {
	// Formats of files that arrivals may be taken from.
	Formats []trace.Format
}

// Parse reads a scenario that takes no arrivals from a file.
func Parse(name string, data []byte, sets ...strict.Set) (*Scenario, error) {
	return Reader{}.Parse(name, data, sets...)
}

// Parse reads a scenario; name is what the file is called in messages. sets replace values before it is read. The error is
// of kind Invalid and lists every problem with its line and column.
func (r Reader) Parse(name string, data []byte, sets ...strict.Set) (*Scenario, error) {
	s := &Scenario{formats: r.Formats}
	err := strict.Read(name, data, sets, func(root strict.Value) {
		s.read(root)
		s.Renamed = root.Renamed()
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Scenario) read(root strict.Value) {
	o := root.Object("scenario", "doc", "cluster", "pools", "host", "queues", "mechanism", "market", "flow", "workload", "model", "memory",
		"faults", "window", "seeds", "expect", "swarm")
	s.Name = o.Need("scenario", "small").Text("a name such as small", "")
	if s.Name != "" && !goodName(s.Name) {
		o.Get("scenario").Wrong("is %q; want words of a-z, 0-9 and -, joined by / if several", s.Name)
	}
	s.Doc = strings.TrimSpace(o.Get("doc").Text("what the scenario shows", ""))
	if o.Get("swarm").Given() {
		s.readLean(o)
		return
	}
	if s.Zones, s.Gates = 1, 1; !o.Has("pools") || o.Has("cluster") {
		s.cluster(o.Need("cluster", "{nodes: [{gpus: \"sim:a100-40gb=2,layout=3g.20gb+2g.10gb+2x1g.5gb\"}]}"))
	}
	s.Queues = config.QueuesOf(o.Get("queues"))
	s.settings(o.Get("mechanism"))
	s.Settings.Market = config.MarketOf(o.Get("market"))
	s.Settings.Flow = config.FlowOf(o.Get("flow"))
	s.window(o.Get("window"))
	if s.Pools = lender.Read(o.Get("pools")); s.Pools != nil {
		_, classes := s.Classes()
		lent(o, s.Zones, s.Window, s.Slices(), len(classes))
	}
	s.model(o.Get("model"))
	s.host(o.Get("host"))
	s.work(o.Need("workload", "{jobs: [{at: 0s, name: a, rigid: {walltime: 5m}, memory: 4Gi}]}"))
	s.memory(o.Get("memory"))
	s.faults(o.Get("faults"))
	s.seeds(o.Get("seeds"))
	s.expect(o.Get("expect"))
}

// goodName says whether s is a scenario's name: labels joined by slashes.
func goodName(s string) bool {
	for _, part := range strings.Split(s, "/") {
		if !job.ValidName(part) {
			return false
		}
	}
	return len(s) <= 100
}

func (s *Scenario) cluster(v strict.Value) {
	o := v.Object("nodes", "zones", "gates", "reservations", "guests", "notice")
	total := 0
	for _, e := range o.Need("nodes", "[{gpus: \"sim:a100-80gb=2\"}]").List(
		"a list of nodes such as [{name: n, count: 2, gpus: \"sim:a30-24gb=2\"}]", MaxNodes) {
		n := e.Object("name", "count", "gpus", "rack", "block")
		name := n.Get("name").Label("node")
		count := int(n.Get("count").Integer(1, MaxNodes, 1))
		gpus := n.Need("gpus", "\"sim:a100-80gb=2\"")
		text := gpus.Text("simulated GPUs such as sim:a100-80gb=2,layout=3g.40gb+2g.20gb+2x1g.10gb", "")
		if text == "" {
			continue
		}
		inv, err := inventory.New(text)
		if err != nil {
			gpus.Wrong("%v", err)
			continue
		}
		all, _ := inv.Slices(context.Background()) // of a simulated inventory: it never fails
		rack, block := n.Get("rack").Label(""), n.Get("block").Label("")
		for i := range all {
			all[i].Rack, all[i].Block = rack, block
		}
		if total += count * len(all); total > MaxSlices || len(s.Nodes)+count > MaxNodes {
			e.Wrong("makes the cluster larger than %d nodes or %d slices", MaxNodes, MaxSlices)
			return
		}
		s.addNodes(e, name, count, all)
	}
	s.Gates = int(o.Get("gates").Integer(1, MaxGates, 1))
	s.Zones = int(o.Get("zones").Integer(1, MaxNodes, 1))
	if s.Zones > len(s.Nodes) && len(s.Nodes) > 0 {
		o.Get("zones").Wrong("are more than the %d nodes that are dealt among them; each needs one", len(s.Nodes))
	}
	if _, classes := s.Classes(); len(classes) > planner.MaxClasses {
		o.Get("nodes").Wrong("have %d kinds of slices; want at most %d", len(classes), planner.MaxClasses)
	}
	if o.Get("nodes").Given() && len(s.Nodes) == 0 && v.Count() == 0 {
		o.Get("nodes").Wrong("is empty; a cluster needs a node")
	}
	for _, e := range o.Get("reservations").List("a list of reservations such as [{kind: serving, start: 8h, for: 10h, every: 24h}]",
		1000) {
		s.reservation(e)
	}
	if len(s.Nodes) > 0 {
		s.Guests = guest.Read(o.Get("guests"), o.Get("notice"), s.Nodes[0].ID, func(id job.NodeID) []protocol.Slice {
			if i := slices.IndexFunc(s.Nodes, func(n Node) bool { return n.ID == id }); i >= 0 {
				return s.Nodes[i].Slices
			}
			return nil
		})
	}
	if s.Guests != nil && slices.ContainsFunc(s.Reservations, func(r Reservation) bool { return r.Kind == protocol.ForForeign }) {
		o.Get("guests").Wrong("are played beside a reservation of kind foreign: who holds what would be said twice; leave either out")
	}
}

// addNodes adds count nodes of equal slices: name for one, name-1, name-2 and so on for several.
func (s *Scenario) addNodes(e strict.Value, name string, count int, all []protocol.Slice) {
	for i := range count {
		id := name
		if count > 1 {
			id = fmt.Sprintf("%s-%d", name, i+1)
		}
		for _, n := range s.Nodes {
			if string(n.ID) == id {
				e.Wrong("there is a node %s already; give each its own name", id)
				return
			}
		}
		node := Node{ID: job.NodeID(id)}
		for _, slice := range all {
			slice.ID = job.SliceID(id) + "/" + slice.ID
			node.Slices = append(node.Slices, slice)
		}
		s.Nodes = append(s.Nodes, node)
	}
}

// reservation reads one line; it becomes one reservation for each slice that its pattern matches.
func (s *Scenario) reservation(e strict.Value) {
	o := e.Object("kind", "slices", "at", "start", "for", "every", "truncate")
	kinds := []protocol.ReservationKind{
		protocol.ForDrain, protocol.ForMaintenance, protocol.ForServing, protocol.ForReclaim, protocol.ForGeometry, protocol.ForOwner,
		protocol.ForForeign,
	}
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = k.String()
	}
	r := Reservation{At: moment(o.Get("at"), 0)}
	r.Kind = kinds[o.Get("kind").Choice(names...)]
	r.Start = moment(o.Get("start"), r.At)
	if r.Start < r.At {
		o.Get("start").Wrong("lies before %s, when the reservation is announced", time.Duration(r.At))
	}
	r.End = quantity.Never
	if length := o.Get("for"); length.Given() {
		r.End = r.Start.Add(length.Duration(time.Second, MaxSpan, time.Second))
	}
	r.Every = o.Get("every").Duration(time.Second, MaxSpan, 0)
	if r.Every > 0 && (r.End == quantity.Never || r.End.Sub(r.Start) >= r.Every) {
		o.Get("every").Wrong("repeats a reservation before it is over; give a shorter length (for:)")
	}
	if r.Every > 0 && r.Kind == protocol.ForForeign {
		o.Get("every").Wrong("repeats what others hold; say it once for each time")
	}
	r.Truncate = o.Get("truncate").Boolean(false)
	pattern := o.Get("slices").Text("a pattern of slices such as node-1/gpu0/*", "*")
	found := 0
	for _, n := range s.Nodes {
		for i := range n.Slices {
			if matches(pattern, string(n.Slices[i].ID)) {
				r.Node, r.Slice = n.ID, n.Slices[i].ID
				s.Reservations = append(s.Reservations, r)
				found++
			}
		}
	}
	if found == 0 && len(s.Nodes) > 0 {
		at := o.Get("slices")
		if !at.Given() {
			at = e
		}
		at.Wrong("no slice matches %q; the first is called %s, and a * stands for any part between slashes", pattern,
			s.Nodes[0].Slices[0].ID)
	}
}

// matches says whether a slice is meant by a pattern: *, the whole id, a node or a GPU of it, with * and ? inside a part.
func matches(pattern, id string) bool {
	if pattern == "*" {
		return true
	}
	parts := strings.Split(id, "/")
	n := strings.Count(pattern, "/") + 1
	ok, err := path.Match(pattern, strings.Join(parts[:min(n, len(parts))], "/"))
	return ok && err == nil
}

// used reads the mechanisms that run where the command line names none, or is the one by default.
func used(v strict.Value, or string) (names []string) {
	for _, e := range v.List("a list of mechanisms such as ["+or+", all]", 100) {
		if name := e.Text("a mechanism such as "+or, ""); name != "" {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return []string{or}
	}
	return names
}

func (s *Scenario) settings(v strict.Value) {
	o := v.Object("use", "policy", "rigid", "starve", "horizon", "minWindow", "memoryRisk|theta", "minRuntime|tauMin", "overheadMax",
		"grace",
		"continue", "ends", "preempt", "restore", "checkpoint")
	t := &s.Settings
	t.Use = used(o.Get("use"), "sja")
	t.Policy = o.Get("policy").Text("a policy such as fair", "")
	t.Starvation = config.StarvationOf(o.Get("starve"))
	t.Rigid = o.Get("rigid").Text("a planner such as easy", "")
	t.Horizon = o.Get("horizon").Duration(time.Second, MaxSpan, time.Hour)
	t.MinWindow = o.Get("minWindow").Duration(time.Millisecond, MaxSpan, time.Second)
	if t.MinWindow > t.Horizon {
		o.Get("minWindow").Wrong("is longer than the horizon %s: nothing would be offered", t.Horizon)
	}
	t.Theta = o.Get("memoryRisk").Fraction(1_000_000, 1, 500_000, job.DefaultTheta)
	t.TauMin = o.Get("minRuntime").Duration(0, MaxSpan, 0)
	t.OverheadMax = int(o.Get("overheadMax").Fraction(1000, 1, 1000, job.DefaultOverheadMax))
	t.Grace = o.Get("grace").Duration(0, time.Hour, config.DefaultGrace)
	t.Ends = o.Get("ends").Fraction(1_000_000, 0, config.MostEnds, ends.DefaultTheta)
	t.Continue = o.Get("continue").Boolean(false)
	t.StopAll = o.Get("preempt").Choice("divisible", "all") == 1
	t.Restore = o.Get("restore").Duration(0, time.Hour, 20*time.Second)
	t.Checkpoint = o.Get("checkpoint").Duration(0, time.Hour, 15*time.Second)
}

func (s *Scenario) window(v strict.Value) {
	o := v.Object("warmup", "until", "limit")
	w := &s.Window
	w.Warmup = moment(o.Get("warmup"), 0)
	w.Until = moment(o.Get("until"), quantity.Never)
	w.Limit = moment(o.Get("limit"), quantity.Never)
	if w.Until <= w.Warmup {
		o.Get("until").Wrong("is %s, within the warm-up of %s: nothing would be measured", time.Duration(w.Until), time.Duration(w.Warmup))
	}
	if w.Until != quantity.Never && w.Limit < w.Until {
		o.Get("limit").Wrong("is %s, before jobs stop arriving at %s", time.Duration(w.Limit), time.Duration(w.Until))
	}
}

// seeds reads a list of seeds or a text such as 1-20 or 1,3,9.
func (s *Scenario) seeds(v strict.Value) {
	s.Seeds = []uint64{1}
	if !v.Given() {
		return
	}
	text := v.Text("seeds such as 1-20 or \"1,3,9\"", "1")
	seeds, err := Seeds(text)
	if err != nil {
		v.Wrong("%v", err)
		return
	}
	s.Seeds = seeds
}

// expect reads lines about the outcome.
func (s *Scenario) expect(v strict.Value) {
	known := outcome.Known{Groups: s.groups()}
	for i := range s.Workload.Jobs {
		known.Jobs = append(known.Jobs, s.Workload.Jobs[i].Name)
	}
	for _, e := range v.List("a list of lines such as [\"utilization >= 0.8\", \"train ends before 10m\"]", 1000) {
		text := e.Text("a line such as utilization >= 0.8", "")
		if text == "" {
			continue
		}
		x, err := known.Parse(text)
		if err != nil {
			e.Wrong("%v", err)
			continue
		}
		s.Expect = append(s.Expect, x)
	}
}
