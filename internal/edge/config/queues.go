package config

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/arrangement"
	"sluice.dev/sluice/internal/core/ends"
	"sluice.dev/sluice/internal/core/federation/flow"
	"sluice.dev/sluice/internal/core/forecast"
	"sluice.dev/sluice/internal/core/gang"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/auction"
	"sluice.dev/sluice/internal/core/market/starvation"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/strict"
)

// Daemon is what the daemon's optional file sets. Everything else is a flag.
type Daemon struct {
	// Queues to create or change at the start, in the order of the file.
	Queues []protocol.Queue
	// Policy is the name of the objective; empty if the file does not say.
	Policy string
	// Market is how mechanism jasda negotiates; nil if the file does not say.
	Market *auction.Config
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
	// ZoneNames are those of the zones, if the file has them.
	ZoneNames []job.ZoneID
	// Places are the nodes' locations, if the file has them.
	Places []arrangement.Location
	// Ports at which members of gangs may meet; zero if the file does not say.
	Ports gang.Ports
	// Airlock is what is done where memory runs out.
	Airlock Airlock
	// Store is where work directories, outputs and checkpoints lie, as `sluice store --store` takes it; empty: only work directories, in
	// the data directory's own.
	Store string
	// Journal is where facts are kept, such as etcd://10.0.0.1:2379/sluice/lab; empty: in the data directory.
	Journal string
	// Providers lend machines to a head, each to a pool of its name.
	Providers []Provider
	// Renamed says of keys of the file that have another name now which it is.
	Renamed []string
}

// MostEnds is the largest share that may fail.
const MostEnds = forecast.One * 9 / 10

// ParseDaemon reads the daemon's file: {policy, queues: [{name, weight, cap, maxJobs, maxWindow, user}], market: {...}, flow: {...},
// starve: {...}, subjobs: {...}, ends: {risk}, retention: {age, jobs}, airlock: {...}, store: KIND:WHERE, journal: etcd://..., zones (how
// many, or their names), nodes (how many, or [{count, rack, block}]), gangs: {ports: FIRST-LAST}, providers: [{name, kind, ...}]}. Of a
// queue only name is needed; weight is 1 if left out, and no cap, limit, bound or user is set. Market, Subjobs and ProvidersOf say what
// they may hold. It is as strict as ParseJob, and its error alike.
func ParseDaemon(name string, data []byte) (Daemon, error) {
	c := strict.New(name, false)
	d := Daemon{Ends: ends.DefaultTheta}
	for _, doc := range c.Documents(data, 1) {
		top := c.Root(doc, nil).Object("policy", "queues", "market", "flow", "starve", "subjobs", "ends", "retention", "zones", "nodes",
			"gangs", "airlock", "store", "journal", "providers")
		d.Policy = top.Get("policy").Text("a policy such as shortest", "")
		d.Queues = QueuesOf(top.Get("queues"))
		if top.Has("market") {
			m := MarketOf(top.Get("market"))
			d.Market = &m
		}
		if top.Has("flow") {
			f := FlowOf(top.Get("flow"))
			d.Flow = &f
		}
		d.Starvation = StarvationOf(top.Get("starve"))
		d.Subjobs = subjobsOf(top.Get("subjobs"))
		d.Ends = top.Get("ends").Object("risk|theta").Get("risk").Fraction(forecast.One, 0, MostEnds, ends.DefaultTheta)
		d.Retention = retentionOf(top.Get("retention"))
		d.Ports = portsOf(top.Get("gangs").Object("ports").Get("ports"))
		d.Airlock = AirlockOf(top.Get("airlock"))
		d.Journal = top.Get("journal").Text("a journal in etcd such as etcd://10.0.0.1:2379/sluice/lab", "")
		d.Store = top.Get("store").Text("a store such as path:/mnt/shared/sluice", "")
		d.Providers = ProvidersOf(top.Get("providers"))
		d.Zones, d.ZoneNames = zonesOf(top.Get("zones"))
		d.Nodes, d.Places = nodesOf(top.Get("nodes"))
		if d.Nodes > 0 && d.Nodes < d.Zones {
			top.Get("nodes").Wrong("are %d for %d zones; each zone needs one: say at least %d, or leave it out", d.Nodes, d.Zones, d.Zones)
		}
	}
	if err := c.Err(); err != nil {
		return Daemon{}, err
	}
	d.Renamed = c.Renamed()
	return d, nil
}

// zonesOf reads how many there are, or their names.
func zonesOf(v strict.Value) (n int, names []job.ZoneID) {
	if !v.Listed() {
		return int(v.Integer(1, arrangement.MaxZones, 0)), nil
	}
	for _, e := range v.List("how many, or a list of names such as [local-1, local-3]", arrangement.MaxZones) {
		name := job.ZoneID(e.Label(""))
		if slices.Contains(names, name) {
			e.Wrong("%q is named twice", name)
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		v.Wrong("are none; name at least one, or say how many")
	}
	return len(names), names
}

// nodesOf reads how many there are, or where each stands.
func nodesOf(v strict.Value) (n int, places []arrangement.Location) {
	if !v.Listed() {
		return int(v.Integer(1, arrangement.MaxNodes, 0)), nil
	}
	for _, e := range v.List("how many, or a list such as [{count: 2, rack: r1, block: b1}, {rack: r2, block: b1}]", arrangement.MaxNodes) {
		o := e.Object("count", "rack", "block")
		place := arrangement.Location{Rack: o.Get("rack").Label(""), Block: o.Get("block").Label("")}
		for range o.Get("count").Integer(1, arrangement.MaxNodes, 1) {
			places = append(places, place)
		}
	}
	if len(places) > arrangement.MaxNodes || len(places) == 0 {
		v.Wrong("are %d; want 1 to %d", len(places), arrangement.MaxNodes)
		return 0, nil
	}
	return len(places), places
}

// portsOf reads the range of ports at which members of gangs may meet.
func portsOf(v strict.Value) gang.Ports {
	const want = "a range of ports such as 29400-30399"
	found, text := v.Count(), v.Text(want, "")
	if !v.Given() || v.Count() != found {
		return gang.Ports{}
	}
	first, last, _ := strings.Cut(text, "-")
	from, errFirst := strconv.Atoi(first)
	to, errLast := strconv.Atoi(last)
	p := gang.Ports{First: from, Last: to}
	if errFirst != nil || errLast != nil || !p.Valid() {
		v.Wrong("is %.40q; want %s, within 1024 and 65535", text, want)
		return gang.Ports{}
	}
	return p
}

// QueuesOf reads a list of queues, each name once, as in the daemon's file.
func QueuesOf(v strict.Value) (out []protocol.Queue) {
	seen := map[string]int{}
	for _, e := range v.List("a list of queues such as [{name: default, weight: 1}]", 1000) {
		q := queue(e)
		if line, again := seen[q.Name]; again && q.Name != "" {
			e.Wrong("queue %q is given in line %d too", q.Name, line)
		}
		seen[q.Name] = e.Line()
		out = append(out, q)
	}
	return out
}

func queue(v strict.Value) protocol.Queue {
	o := v.Object("name", "weight", "cap", "maxJobs", "maxWindow", "user")
	return protocol.Queue{
		Name:      o.Need("name", DefaultQueue).Label(""),
		Weight:    o.Get("weight").Integer(1, 1_000_000, 1),
		Cap:       int(o.Get("cap").Integer(0, 1_000_000, 0)),
		MaxJobs:   int(o.Get("maxJobs").Integer(0, 1_000_000, 0)),
		MaxWindow: o.Get("maxWindow").Duration(time.Second, MaxTime, 0),
		User:      userOf(o.Get("user")),
	}
}

// userOf is the name of an account, empty if left out.
func userOf(v strict.Value) string {
	s := v.Text("the name of an account", "")
	for i := range len(s) {
		if b := s[i]; b <= ' ' || b == ':' || b == '/' || b > '~' {
			v.Wrong("is %s; want the name of an account on the daemon's machine", v.What())
			return ""
		}
	}
	if v.Given() && (s == "" || len(s) > 32) {
		v.Wrong("is %s; want the name of an account, at most 32 letters", v.What())
		return ""
	}
	return s
}
