// Package visits is a home's side of the markets at nodes: where its jobs that wait negotiate, and what it answers there for them.
// A job visits a bounded number of nodes at a time: those where it last won, and others that are drawn. What it proposes at one of
// them is pledged, and not proposed at another until the round is over, so that none is won twice.
//
// All of it is soft: a home that starts again sends its jobs out again, in sessions of later numbers.
package visits

import (
	"cmp"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/alarm"
	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Config of a home's visits.
type Config struct {
	// Self is the home, Seed that of its draws.
	Self protocol.Address
	Seed uint64
	// Most nodes are visited by one job at a time (K). Default 4.
	Most int
	// Renew is the time until a visit is sent again. Default 4 s: less than half of how long a node lets it count.
	Renew time.Duration
	// Settle is how long what was proposed stays pledged after its round has closed, for the grant to come. Default 1 s.
	Settle time.Duration
}

// WithDefaults fills in what is zero.
func (c Config) WithDefaults() Config {
	c.Most = cmp.Or(c.Most, 4)
	c.Renew = cmp.Or(c.Renew, 4*time.Second)
	c.Settle = cmp.Or(c.Settle, time.Second)
	return c
}

// Visits holds the visits of all jobs of a home. Not safe for concurrent use.
type Visits struct {
	cfg     Config
	renew   alarm.Heap[*Job]
	session uint64
}

// New knows of no job yet.
func New(cfg Config) *Visits { return &Visits{cfg: cfg.WithDefaults()} }

// Job is the record of the visits of one job. The zero value visits no node.
type Job struct {
	name job.ID
	// session of its visits, 0 while it visits nobody.
	session uint64
	// hosts are the nodes that it visits, wins those where it last won something, the latest first, and full those that had no room for it,
	// until fresh. With Most full nodes no more are drawn, so that a job is not sent from node to node where all are full. draws counts the
	// drawn nodes.
	hosts, wins, full []protocol.Address
	fresh             quantity.Instant
	draws             uint64
	pledges           []pledge
	slot              int
}

// pledge is what was proposed in one round.
type pledge struct {
	node  protocol.Address
	round uint64
	work  job.Ranges
	until quantity.Instant
}

// Hosts are the nodes that it visits; none of a job that never did, which is nil.
func (j *Job) Hosts() []protocol.Address {
	if j == nil {
		return nil
	}
	return j.hosts
}

// Visit sends a job to nodes, or updates those that it visits. n nodes, by number, are there to draw from.
func (v *Visits) Visit(now quantity.Instant, name job.ID, j *Job, says *protocol.Visit, nodes []protocol.Address, out *protocol.Out) {
	if j.session == 0 {
		v.session = max(v.session+1, uint64(now)) // later than any before a crash
		j.name, j.session, j.full = name, v.session, nil
	}
	if j.fresh <= now {
		j.full = nil
	}
	v.choose(j, nodes)
	for _, to := range j.hosts {
		v.send(j, to, protocol.Message{Kind: protocol.Visiting, Body: says}, out)
	}
	v.renew.Set(&j.slot, j, now.Add(v.cfg.Renew))
}

// choose fills up the hosts: where it last won, then some that are drawn.
func (v *Visits) choose(j *Job, nodes []protocol.Address) {
	for _, a := range j.wins {
		if len(j.hosts) < v.cfg.Most && !slices.Contains(j.hosts, a) && !slices.Contains(j.full, a) {
			j.hosts = append(j.hosts, a)
		}
	}
	for range nodes {
		if len(j.hosts) >= min(v.cfg.Most, len(nodes)) || len(j.full) >= v.cfg.Most {
			return
		}
		stream := prng.New(v.cfg.Seed, prng.Name(string(j.name)), j.draws)
		j.draws++
		if a := nodes[stream.IntN(len(nodes))]; !slices.Contains(j.hosts, a) && !slices.Contains(j.full, a) {
			j.hosts = append(j.hosts, a)
		}
	}
}

// Leave takes a job off all nodes that it visits.
func (v *Visits) Leave(j *Job, out *protocol.Out) {
	for _, to := range j.hosts {
		v.send(j, to, protocol.Message{Kind: protocol.Parting}, out)
	}
	j.session, j.hosts, j.pledges = 0, nil, nil
	v.renew.Set(&j.slot, j, quantity.Never)
}

// Due are the jobs whose visits are to be sent again now, by name; Next is when the first other one is.
func (v *Visits) Due(now quantity.Instant) (due []job.ID) {
	for j := range v.renew.Past(now) {
		due = append(due, j.name)
	}
	slices.Sort(due)
	return due
}

// Next is when Due is to be asked again, Never if not.
func (v *Visits) Next() quantity.Instant { return v.renew.Next() }

// Parted takes a node off a job's list that does not let it in; the next Visit draws another.
func (v *Visits) Parted(now quantity.Instant, j *Job, in *protocol.Message) {
	i := slices.Index(j.hosts, in.From)
	if i < 0 || in.Session != j.session {
		return
	}
	if len(j.full) == 0 {
		j.fresh = now.Add(v.cfg.Renew)
	}
	j.hosts, j.full = slices.Delete(j.hosts, i, i+1), append(j.full, in.From)
}

// Won notes where a job was sold something, so that it visits that node first.
func (v *Visits) Won(j *Job, node protocol.Address) {
	if i := slices.Index(j.wins, node); i >= 0 {
		j.wins = slices.Delete(j.wins, i, i+1)
	}
	j.wins = slices.Insert(j.wins, 0, node)
	j.wins = j.wins[:min(len(j.wins), max(1, v.cfg.Most-1))] // one place stays for a draw
}

// Answer proposes to a node what its job could run in the windows of a round, and pledges it. view is the job as it is now. A job that
// is no longer there answers with nothing, so that nobody waits for it.
func (v *Visits) Answer(now quantity.Instant, j *Job, view *atomizer.View, in *protocol.Message, out *protocol.Out) {
	call := in.Body.(*protocol.Call)
	if j.session == 0 || in.Session != j.session || !slices.Contains(j.hosts, in.From) {
		return
	}
	answer := &protocol.Proposal{Round: call.Round}
	seen := *view
	seen.Claimed = v.pledged(now, j, in.From, call.Round, view.Claimed)
	for i := range call.Windows {
		w := &call.Windows[i]
		answer.Variants = atomizer.Propose(&seen, atomizer.Window{ID: w.Window, Capacity: w.Capacity, Speed: w.Speed, Start: w.Start,
			End: w.End, Open: w.Open}, call.Most, now, answer.Variants)
	}
	if len(answer.Variants) > 0 {
		p := pledge{node: in.From, round: call.Round, until: call.Closes.Add(v.cfg.Settle)}
		for i := range answer.Variants {
			p.work = p.work.Add(answer.Variants[i].Range)
		}
		j.pledges = append(j.pledges, p)
	}
	v.send(j, in.From, protocol.Message{Kind: protocol.Answer, Body: answer}, out)
}

// Told drops the pledge of a round that is over.
func (v *Visits) Told(j *Job, in *protocol.Message) {
	news := in.Body.(*protocol.News)
	j.pledges = slices.DeleteFunc(j.pledges, func(p pledge) bool {
		return p.node == in.From && p.round == news.Round &&
			!slices.ContainsFunc(news.Notices, func(n protocol.Notice) bool { return n.Kind == protocol.Awarded })
	})
}

// Settled drops what was pledged to a node in a round that a grant has come of.
func (v *Visits) Settled(j *Job, node protocol.Address, round uint64) {
	j.pledges = slices.DeleteFunc(j.pledges, func(p pledge) bool { return p.node == node && p.round == round })
}

// pledged is what is claimed with what is pledged at other nodes. The same round again is answered the same.
func (v *Visits) pledged(now quantity.Instant, j *Job, node protocol.Address, round uint64, claimed job.Ranges) job.Ranges {
	j.pledges = slices.DeleteFunc(j.pledges, func(p pledge) bool { return p.until <= now || p.node == node && p.round == round })
	if len(j.pledges) == 0 {
		return claimed
	}
	all := slices.Clone(claimed)
	for _, p := range j.pledges {
		for _, r := range p.work {
			all = all.Add(r)
		}
	}
	return all
}

// send says something of a job to a node.
func (v *Visits) send(j *Job, to protocol.Address, m protocol.Message, out *protocol.Out) {
	m.From, m.To, m.Job, m.Session = v.cfg.Self, to, j.name, j.session
	out.Effects = append(out.Effects, m)
}
