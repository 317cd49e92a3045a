package config

import (
	"slices"
	"time"

	"go.yaml.in/yaml/v3"

	"sluice.dev/sluice/internal/core/arrangement"
	"sluice.dev/sluice/internal/core/ends"
	"sluice.dev/sluice/internal/core/federation/flow"
	"sluice.dev/sluice/internal/core/forecast"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market"
	"sluice.dev/sluice/internal/core/market/starvation"
	"sluice.dev/sluice/internal/core/protocol"
)

// Daemon is what the daemon's optional file sets. Everything else is a flag.
type Daemon struct {
	// Queues to create or change at the start, in the order of the file.
	Queues []protocol.Queue
	// Policy is the name of the objective; empty if the file does not say.
	Policy string
	// Market is how mechanism jasda negotiates; nil if the file does not say.
	Market *market.Config
	// Flow is how tickets of laminar search, if the file says so.
	Flow *flow.Config
	// Starvation is when a job has waited too long.
	Starvation starvation.Limit
	// Subjobs are bounds of every subjob.
	Subjobs Subjobs
	// Ends is the share of predictions of the ends of gaps, in parts per million, that may fail; 0: none is made.
	Ends int64
	// Retention says when jobs that are over are forgotten.
	Retention Retention
	// Zones and Nodes are how many there are of each; 0: one, and a node for each zone.
	Zones, Nodes int
	// ZoneNames are those of the zones, if the file says so.
	ZoneNames []job.ZoneID
	// Places are where the nodes stand, if the file says so.
	Places []arrangement.Place
	// Airlock is what is done where memory runs out.
	Airlock Airlock
	// Store is where work directories, outputs and checkpoints lie, as `sluice store --store` takes it; empty: only work directories, in the
	// data directory's own.
	Store string
}

// MostEnds is the largest share that may fail.
const MostEnds = forecast.One * 9 / 10

// ParseDaemon reads the daemon's file: {policy, queues: [{name, weight, cap, maxJobs, maxWindow, user}], market: {...}, flow: {...}, starve: {...}, subjobs: {...},
// ends: {theta}, retention: {age, jobs}, airlock: {...}, store: KIND:WHERE, zones (how many, or their names), nodes (how many, or [{count, rack, block}])}. Of a queue only name is needed; weight is 1 if left out, and no cap, limit, bound or user is set. Market and Subjobs say what
// they may hold. It is as strict as ParseJob, and its error alike.
func ParseDaemon(name string, data []byte) (Daemon, error) {
	c := &collector{file: name}
	d := Daemon{Ends: ends.DefaultTheta}
	for _, doc := range c.documents(data, 1) {
		top := value{c: c, node: doc}.object("policy", "queues", "market", "flow", "starve", "subjobs", "ends", "retention", "zones", "nodes", "airlock", "store")
		d.Policy = top.get("policy").text("a policy such as shortest", "")
		d.Queues = top.get("queues").Queues()
		if top.has("market") {
			m := top.get("market").Market()
			d.Market = &m
		}
		if top.has("flow") {
			f := top.get("flow").Flow()
			d.Flow = &f
		}
		d.Starvation = top.get("starve").Starvation()
		d.Subjobs = top.get("subjobs").Subjobs()
		d.Ends = top.get("ends").object("theta").get("theta").fraction(forecast.One, 0, MostEnds, ends.DefaultTheta)
		d.Retention = top.get("retention").Retention()
		d.Airlock = top.get("airlock").Airlock()
		d.Store = top.get("store").text("a store such as path:/mnt/shared/sluice", "")
		d.Zones, d.ZoneNames = top.get("zones").zones()
		d.Nodes, d.Places = top.get("nodes").nodes()
		if d.Nodes > 0 && d.Nodes < d.Zones {
			top.get("nodes").wrong("are %d for %d zones; each zone needs one: say at least %d, or leave it out", d.Nodes, d.Zones, d.Zones)
		}
	}
	if err := c.err(); err != nil {
		return Daemon{}, err
	}
	return d, nil
}

// zones reads how many there are, or their names.
func (v value) zones() (n int, names []job.ZoneID) {
	if !v.given() || v.node.Kind != yaml.SequenceNode {
		return int(v.integer(1, arrangement.MaxZones, 0)), nil
	}
	for _, e := range v.list("how many, or a list of names such as [local-1, local-3]", arrangement.MaxZones) {
		name := job.ZoneID(e.label(""))
		if slices.Contains(names, name) {
			e.wrong("%q is named twice", name)
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		v.wrong("are none; name at least one, or say how many")
	}
	return len(names), names
}

// nodes reads how many there are, or where each stands.
func (v value) nodes() (n int, places []arrangement.Place) {
	if !v.given() || v.node.Kind != yaml.SequenceNode {
		return int(v.integer(1, arrangement.MaxNodes, 0)), nil
	}
	for _, e := range v.list("how many, or a list such as [{count: 2, rack: r1, block: b1}, {rack: r2, block: b1}]", arrangement.MaxNodes) {
		o := e.object("count", "rack", "block")
		place := arrangement.Place{Rack: o.get("rack").label(""), Block: o.get("block").label("")}
		for range o.get("count").integer(1, arrangement.MaxNodes, 1) {
			places = append(places, place)
		}
	}
	if len(places) > arrangement.MaxNodes || len(places) == 0 {
		v.wrong("are %d; want 1 to %d", len(places), arrangement.MaxNodes)
		return 0, nil
	}
	return len(places), places
}

// Queues reads a list of queues, each name once, as in the daemon's file.
func (v value) Queues() (out []protocol.Queue) {
	seen := map[string]int{}
	for _, e := range v.list("a list of queues such as [{name: default, weight: 1}]", 1000) {
		q := queue(e)
		if line, again := seen[q.Name]; again && q.Name != "" {
			e.wrong("queue %q is given in line %d too", q.Name, line)
		}
		seen[q.Name] = e.node.Line
		out = append(out, q)
	}
	return out
}

func queue(v value) protocol.Queue {
	o := v.object("name", "weight", "cap", "maxJobs", "maxWindow", "user")
	return protocol.Queue{
		Name:      o.need("name", DefaultQueue).label(""),
		Weight:    o.get("weight").integer(1, 1_000_000, 1),
		Cap:       int(o.get("cap").integer(0, 1_000_000, 0)),
		MaxJobs:   int(o.get("maxJobs").integer(0, 1_000_000, 0)),
		MaxWindow: o.get("maxWindow").duration(time.Second, MaxTime, 0),
		User:      o.get("user").user(),
	}
}

// user is the name of an account, empty if left out.
func (v value) user() string {
	s := v.text("the name of an account", "")
	for i := range len(s) {
		if b := s[i]; b <= ' ' || b == ':' || b == '/' || b > '~' {
			v.wrong("is %s; want the name of an account on the daemon's machine", v.what())
			return ""
		}
	}
	if v.given() && (s == "" || len(s) > 32) {
		v.wrong("is %s; want the name of an account, at most 32 letters", v.what())
		return ""
	}
	return s
}
