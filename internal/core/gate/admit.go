package gate

import (
	"errors"
	"fmt"
	"strings"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// submit accepts a job or answers with everything that is wrong. The same request, or the same name with the same
// content, is the same job: the Receipt says whether this call made it.
func (g *Gate) submit(now quantity.Instant, in *protocol.Message, s *protocol.Submission, out *protocol.Out) {
	if e := g.about(in); e != nil {
		over := e.over()
		switch {
		case e.request == s.Request && s.Request != "", e.digest == s.Digest && !(s.Replace && over):
			g.reply(out, protocol.Message{To: in.From, Job: e.id, Generation: e.generation, Body: &protocol.Receipt{Request: s.Request, Verdict: e.became().verdict}})
			return
		case !s.Replace || !over:
			g.reply(out, protocol.Message{To: in.From, Body: &protocol.Receipt{Request: s.Request, Err: taken(e, s.Replace)}})
			return
		}
	}
	if at := g.cfg.Gates.Of(in.Job); at != g.self {
		g.reply(out, protocol.Message{To: in.From, Body: &protocol.Receipt{Request: s.Request, Err: errkind.Errorf(errkind.Invalid, "job %q: jobs of that name belong to gate %s", in.Job, at.ID)}})
		return
	}
	if err := g.Check(now, s.Spec); err != nil {
		g.reply(out, protocol.Message{To: in.From, Body: &protocol.Receipt{Request: s.Request, Err: err}})
		return
	}
	g.accept(now, in, s, out)
}

// taken says why a name can't be had, and how it can.
func taken(e *entry, replace bool) error {
	at := clock(e.submitted)
	switch {
	case replace:
		return errkind.Errorf(errkind.Conflict, "job %q: the job of that name, submitted at %s, is not over; only one that is can be replaced: cancel it first, or choose another name", e.id, at)
	case e.over():
		return errkind.Errorf(errkind.Exists, "job %q: a job of that name with other content was submitted at %s, is %s and is kept; choose another name, or put this one in its place with --replace, which removes its output", e.id, at, e.sequel.verdict.State)
	}
	return errkind.Errorf(errkind.Exists, "job %q: a job of that name with other content was submitted at %s and is not over; choose another name, or cancel it first", e.id, at)
}

// Check says everything that keeps a job from being accepted, judged against the configured inventory.
func (g *Gate) Check(now quantity.Instant, spec *job.Spec) error {
	var errs []error
	kind := errkind.Invalid
	if err := spec.CheckNames(spec.Name); err != nil {
		errs = append(errs, err)
	}
	if passed(now, spec) {
		errs = append(errs, fmt.Errorf("spec.deadline: %s has passed, it is %s now; give a later one or leave it out", clock(spec.Deadline), clock(now)))
	}
	i, found := g.findQueue(spec.Queue)
	if !found {
		var names []string
		for _, q := range g.queues {
			names = append(names, q.Name)
		}
		errs = append(errs, fmt.Errorf("spec.queue: there is no queue %q; choose one of: %s", spec.Queue, strings.Join(names, ", ")))
	}
	if found && g.queues[i].Cap > 0 && spec.Slices > share(g.queues[i].Cap, 0, len(g.cfg.Zones)) {
		split := ""
		if n := len(g.cfg.Zones); n > 1 {
			split = fmt.Sprintf(", %d of them in one of the %d zones", share(g.queues[i].Cap, 0, n), n)
		}
		errs = append(errs, fmt.Errorf("spec.slices: it needs %d slices at once, queue %s may hold %d%s; ask for fewer, choose another queue, or raise its cap",
			spec.Slices, spec.Queue, g.queues[i].Cap, split))
	}
	if spec.External && !g.cfg.External {
		errs = append(errs, errors.New("spec.external: an external job is cut by its own agent, and nobody asks agents here; describe the work as items or steps"))
	}
	switch {
	case spec.Patience < 0:
		errs = append(errs, fmt.Errorf("spec.rigid.patience: %v is negative; say how long it may look for a place, or leave it out", spec.Patience))
	case spec.Patience > 0 && g.dealer == nil:
		errs = append(errs, errors.New("spec.rigid.patience: only where jobs look for places with tickets do they give up; start the daemon with --mechanism laminar, or leave it out"))
	case spec.Patience > 0 && (spec.Kind != job.Rigid || spec.Slices > 1):
		errs = append(errs, errors.New("spec.rigid.patience: a job that gives up is one piece on one slice; describe the work as rigid, or leave patience out"))
	}
	longest := g.cfg.Horizon
	if found {
		longest = g.longest(i)
	}
	why, nearest := g.apart(spec)
	if why == "" && (spec.Slices < 2 || g.heardAll()) {
		why, nearest = atomizer.Impossible(spec, &g.inventory.kinds, longest)
	}
	if why == "" && found {
		why, nearest = g.nowhere(spec, i, longest)
	}
	if why != "" {
		errs = append(errs, fmt.Errorf("it could never run here: %s; what would fit: %s", why, nearest))
	}
	if found && len(errs) == 0 {
		if q := g.queues[i]; q.MaxJobs > 0 && g.unfinishedOf[q.Name] >= max(0, g.part(q.MaxJobs)) {
			kind = errkind.Exhausted
			errs = append(errs, fmt.Errorf("spec.queue: queue %s has its %d unfinished jobs already; wait for one to finish or cancel one", q.Name, q.MaxJobs))
		}
		if g.unfinished >= g.cfg.MaxJobs {
			kind = errkind.Exhausted
			errs = append(errs, fmt.Errorf("there are %d unfinished jobs already, the most this daemon keeps; wait for some to finish", g.unfinished))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return errkind.Errorf(kind, "job %q: %w", spec.Name, err)
	}
	return nil
}

func (g *Gate) cancel(now quantity.Instant, in *protocol.Message, c *protocol.Cancellation, out *protocol.Out) {
	e := g.about(in)
	switch {
	case e == nil:
		g.reply(out, protocol.Message{To: in.From, Body: &protocol.Receipt{Request: c.Request, Err: noJob(in.Job)}})
		return
	case e.over():
		b := e.sequel
		if b.cancelled == c.Request && c.Request != "" { // by this very call
			g.reply(out, protocol.Message{To: in.From, Job: in.Job, Body: &protocol.Receipt{Request: c.Request}})
			return
		}
		g.reply(out, protocol.Message{To: in.From, Body: &protocol.Receipt{Request: c.Request, Err: errkind.Errorf(errkind.Conflict,
			"job %q is over already: %s at %s (%s)", in.Job, b.verdict.State, clock(b.ended), b.verdict.Reason)}})
		return
	case e.became().dropping == "":
		text := c.Text
		if text == "" {
			text = "cancelled by its owner"
		}
		g.fact(out, protocol.Fact{Kind: protocol.JobDropping, Job: in.Job, Text: text, Request: c.Request, At: now})
		if e.zone == "" { // any zone can end what is not to run
			g.fact(out, protocol.Fact{Kind: protocol.JobDrawn, Job: e.id, Zone: g.anywhere(e), Epoch: e.epoch})
		}
	}
	g.reply(out, protocol.Message{To: in.From, Job: in.Job, Body: &protocol.Receipt{Request: c.Request, Changed: true}})
}

// cancellation is what the home is told of the owner's cancellation.
func (b *sequel) cancellation() *protocol.Cancellation {
	return &protocol.Cancellation{Text: b.dropping, At: b.dropped}
}

func (g *Gate) pause(in *protocol.Message, p *protocol.Pause, out *protocol.Out) {
	e := g.about(in)
	switch {
	case e == nil:
		g.reply(out, protocol.Message{To: in.From, Body: &protocol.Receipt{Request: p.Request, Err: noJob(in.Job)}})
		return
	case e.over():
		g.reply(out, protocol.Message{To: in.From, Body: &protocol.Receipt{Request: p.Request, Err: errkind.Errorf(errkind.Conflict, "job %q is over: %s", in.Job, e.sequel.verdict.State)}})
		return
	case e.held != p.Held:
		g.fact(out, protocol.Fact{Kind: protocol.JobHeld, Job: in.Job, Flag: p.Held})
	}
	g.reply(out, protocol.Message{To: in.From, Job: in.Job, Body: &protocol.Receipt{Request: p.Request, Changed: true}})
}

func (g *Gate) setQueue(now quantity.Instant, in *protocol.Message, s *protocol.QueueSetting, out *protocol.Out) {
	q := *s.Queue
	var errs []error
	if first := g.cfg.Gates.First(); first != g.self {
		errs = append(errs, fmt.Errorf("queue %s: the settings of queues belong to gate %s", q.Name, first.ID))
	}
	if !job.ValidName(q.Name) {
		errs = append(errs, fmt.Errorf("queue name %.80q: want %s", q.Name, job.NameRule))
	}
	if q.Weight < 1 || q.Weight > 1_000_000 {
		errs = append(errs, fmt.Errorf("queue %s: weight is %d, want 1 to 1000000", q.Name, q.Weight))
	}
	if q.Cap < 0 || q.MaxJobs < 0 || q.MaxWindow < 0 {
		errs = append(errs, fmt.Errorf("queue %s: cap %d, maxJobs %d and maxWindow %v must not be negative; 0 means no limit", q.Name, q.Cap, q.MaxJobs, q.MaxWindow))
	}
	if i, found := g.findQueue(q.Name); !found && len(g.queues) >= maxQueues {
		errs = append(errs, fmt.Errorf("queue %s: there are %d queues already, the most there may be", q.Name, maxQueues))
	} else if found && *g.queues[i].Queue == q && len(errs) == 0 {
		g.reply(out, protocol.Message{To: in.From, Body: &protocol.Receipt{Request: s.Request}})
		return
	}
	if err := errors.Join(errs...); err != nil {
		g.reply(out, protocol.Message{To: in.From, Body: &protocol.Receipt{Request: s.Request, Err: errkind.Errorf(errkind.Invalid, "%w", err)}})
		return
	}
	g.fact(out, protocol.Fact{Kind: protocol.QueueSet, Queue: &q})
	g.settle(now, out) // another cap may have given a zone its share
	g.reply(out, protocol.Message{To: in.From, Body: &protocol.Receipt{Request: s.Request, Changed: true}})
}

const maxQueues = 1000

func (g *Gate) reply(out *protocol.Out, m protocol.Message) {
	m.Kind = protocol.Reply
	g.send(out, m)
}

func noJob(id job.ID) error {
	return errkind.Errorf(errkind.NotFound, "there is no job %q; see the list of jobs for those there are", id)
}
