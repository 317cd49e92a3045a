package gang

import (
	"cmp"
	"fmt"
	"slices"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// state is what is known of one member of a claim.
type state uint8

const (
	// asked to make its hold a lease, or to be asked again: nobody knows.
	asked state = iota
	// leased: its node has a lease, and has not said that it is over.
	leased
	// refused: its node has no lease under the token, and never will.
	refused
	// gone: its process is gone, with a result.
	gone
)

// Course is how the members of one claim fare, as far as their home knows since it came up. The claim is over when no node has anything
// left of it; until then no end is confirmed to a node, so a home that forgets this hears all of it again.
type Course struct {
	members []member
	// broken says why the members that are left are to be stopped; empty: they are not.
	broken string
}

type member struct {
	state  state
	result *job.Result
}

// NewCourse is that of a claim of n members.
func NewCourse(n int) *Course { return &Course{members: make([]member, n)} }

// Leased notes that a member's node has its lease.
func (c *Course) Leased(i int) {
	if m := &c.members[i]; m.state == asked {
		m.state = leased
	}
}

// Refused notes that a member's node has none, and will have none. It says whether that is news.
func (c *Course) Refused(i int, why string) bool {
	m := &c.members[i]
	if m.state == refused || m.state == gone {
		return false
	}
	m.state = refused
	c.fail(fmt.Sprintf("member %d does not begin: %s", i, why))
	return true
}

// Gone notes a member's result. It says whether that is news.
func (c *Course) Gone(i int, r *job.Result) bool {
	m := &c.members[i]
	if m.state == refused || m.state == gone {
		return false
	}
	m.state, m.result = gone, r
	if r.Outcome != job.Done {
		c.fail(fmt.Sprintf("member %d ended: %v", i, r.Outcome))
	}
	return true
}

func (c *Course) fail(why string) {
	c.broken = cmp.Or(c.broken, why)
}

// Broken is why the remaining members are to be stopped, empty if they are not.
func (c *Course) Broken() string { return c.broken }

// Asked reports whether a member's node has yet to confirm or deny a lease; Left whether some of the member may be there.
func (c *Course) Asked(i int) bool { return c.members[i].state == asked }

// Left see Asked.
func (c *Course) Left(i int) bool { return c.members[i].state == asked || c.members[i].state == leased }

// Known reports whether every node has confirmed or denied that it has a lease.
func (c *Course) Known() bool {
	for i := range c.members {
		if c.Asked(i) {
			return false
		}
	}
	return true
}

// Over says whether nothing of any member is left.
func (c *Course) Over() bool {
	for i := range c.members {
		if c.Left(i) {
			return false
		}
	}
	return true
}

// severity ranks how a member ended. The trouble of a node outweighs what its peers made of it: that is nobody's failure.
func severity(o job.Outcome) int {
	for i, x := range [...]job.Outcome{
		job.Done, job.Stopped, job.Yielded, job.DeadlineKilled, job.ExitFailed, job.StartFailed, job.LimitKilled, job.MemoryKilled,
		job.Lost, job.NodeFailed,
	} {
		if x == o {
			return i
		}
	}
	return 0
}

// Result of a gang that is over: the first member's if all are done, else that of the member that fared worst, the first of these. How far
// it came, and the checkpoint, are always the first member's. Its times and its peak are those of all; but if a node tried to start its
// member and could not, the gang counts as never started (Start is 0). It is nil, with why, if a member has no result: then nothing counts,
// and it is not the job's failure.
func (c *Course) Result() (r *job.Result, why string) {
	worst, start, all := 0, quantity.Instant(0), job.Result{}
	for i := range c.members {
		m := &c.members[i]
		if m.state != gone {
			return nil, c.broken
		}
		if severity(m.result.Outcome) > severity(c.members[worst].result.Outcome) {
			worst = i
		}
		if s := m.start(); s != 0 && (start == 0 || s < start) {
			start = s
		}
		all.End = max(all.End, m.result.End)
		for k := range all.Peak {
			all.Peak[k] = max(all.Peak[k], m.result.Peak[k])
		}
	}
	sum := *c.members[worst].result
	sum.Start, sum.End, sum.Peak = start, all.End, all.Peak
	sum.Progress, sum.Checkpoint = c.members[0].result.Progress, c.members[0].result.Checkpoint
	if sum.Outcome == job.NodeFailed && slices.ContainsFunc(c.members, func(m member) bool {
		return m.result.Outcome == job.NodeFailed && m.result.Start == 0
	}) {
		sum.Start = 0 // one of them could not be started, so the gang as a whole never ran
	}
	if worst > 0 {
		sum.Detail = fmt.Sprintf("member %d of %d: %s", worst, len(c.members), sum.Detail)
	}
	return &sum, c.broken
}

func (m *member) start() quantity.Instant {
	if m.result != nil {
		return m.result.Start
	}
	return 0
}

// At is the node of a member.
func At(m *protocol.Member) protocol.Address {
	return protocol.Address{Role: protocol.Node, ID: string(m.Node)}
}
