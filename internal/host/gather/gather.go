// Package gather brings to a cluster's head what subjobs on machines that have joined it left in its store: outputs and logs to where those
// of its own subjobs lie. It removes from the store what nobody needs any more, which the machines may not
// (docs/adr/0066-head-store.md). It works beside the loop.
package gather

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/status"
)

// Store has what subjobs on other machines left. Each call may be repeated, and changes nothing for a job whose files were cleared for a
// later life than j's. Safe for concurrent use.
type Store interface {
	// Output makes sure that the output of a committed subjob, for units and by a member that o names, is in its place. Corrupt: it is
	// lost.
	Output(ctx context.Context, j *status.Job, o status.Output) error
	// Logs makes sure that the logs of a subjob that is over are in their place, and reports whether there are any.
	Logs(ctx context.Context, j *status.Job, t job.Token) (found bool, err error)
	// Forget removes the logs of a subjob that is over, and if nothing of it counts everything.
	Forget(ctx context.Context, j *status.Job, t job.Token, counts bool) error
	// HasCheckpoint reports whether it has a subjob's checkpoint, ForgetCheckpoint removes that.
	HasCheckpoint(ctx context.Context, j *status.Job, t job.Token) (bool, error)
	ForgetCheckpoint(ctx context.Context, j *status.Job, t job.Token) error
}

// Jobs looks jobs up, with their subjobs.
type Jobs interface {
	Job(ctx context.Context, name job.ID) (status.Job, error)
	// Older are subjobs that Job leaves out, the last of them before an index, first status.Job.HistoryDropped; the index of their first
	// is the next. None: that was 0.
	Older(ctx context.Context, name job.ID, before int) ([]status.Subjob, error)
}

const (
	// every is for how long news is gathered: nobody waits for it, as who asks for an output has it brought at once (Outputs).
	every = time.Second
	// leastRest and mostRest bound the pause after what failed.
	leastRest = time.Second
	mostRest  = time.Minute
	// workers is how many jobs are worked on at once, so that one large output holds up no other.
	workers = 4
	// mostNews bounds the subjobs of one job that are remembered one by one; beyond it the whole job is looked through.
	mostNews = 1024
)

// Gatherer follows the facts. Make it with New; a nil one is that of a daemon that no machine may join, and does nothing. Safe for
// concurrent use.
type Gatherer struct {
	machine func(job.Token) job.NodeID
	log     *slog.Logger
	store   Store
	jobs    Jobs

	mu sync.Mutex
	// pending are the jobs that something was heard of, batch those that are worked on now. over is closed at the end of that.
	pending, batch map[job.ID]*news
	over           chan struct{}
	// serving: facts are those of now, and no longer the journal's.
	serving bool

	some    chan struct{} // capacity 1: there is something pending
	hurry   chan struct{} // capacity 1: somebody waits for it
	ctx     context.Context
	giveUp  context.CancelFunc
	working sync.WaitGroup
}

// news is what was heard of one job: that these subjobs are over or published, or, if all, that any may be.
type news struct {
	all    bool
	tokens map[job.Token]bool
}

// New returns a gatherer that follows facts, and works after Serve. machine is the machine that made a token, empty for this one.
func New(machine func(job.Token) job.NodeID, log *slog.Logger) *Gatherer {
	g := &Gatherer{machine: machine, log: log, pending: map[job.ID]*news{}, over: make(chan struct{}), some: make(chan struct{}, 1),
		hurry: make(chan struct{}, 1)}
	g.ctx, g.giveUp = context.WithCancel(context.Background())
	return g
}

// Serve begins to work on what the facts have said so far, and will say.
func (g *Gatherer) Serve(s Store, jobs Jobs) {
	g.store, g.jobs = s, jobs
	g.mu.Lock()
	g.serving = true
	g.mu.Unlock()
	g.working.Go(g.run)
}

// Close ends what is under way, and nothing more is noted. The next daemon does it again. It may be called twice.
func (g *Gatherer) Close() {
	if g != nil {
		g.giveUp()
		g.working.Wait()
	}
}

// Machine is the machine that a subjob ran on, empty for this one.
func (g *Gatherer) Machine(t job.Token) job.NodeID { return g.machine(t) }

// Fact notes what a durable fact says of subjobs on other machines.
func (g *Gatherer) Fact(f *protocol.Fact) {
	if g == nil {
		return
	}
	switch f.Kind {
	case protocol.Committed, protocol.Released, protocol.OutputPublished:
		if g.machine(f.Token) != "" {
			g.note(f.Job, f.Token)
		}
	case protocol.HomeKept:
		if g.foreign(f.Body.(*protocol.Keeping).Record) {
			g.note(f.Job, job.Token{})
		}
	case protocol.HomeDropped, protocol.HomeArchived:
		g.mu.Lock()
		defer g.mu.Unlock()
		// What was archived before this boot is brought when it is asked for: there may be a million jobs.
		if f.Kind == protocol.HomeDropped || !g.serving {
			delete(g.pending, f.Job)
		}
	}
}

// foreign reports whether any subjob of a record was on another machine.
func (g *Gatherer) foreign(r *protocol.Record) bool {
	if r == nil {
		return false
	}
	for i := range r.Past {
		if g.machine(r.Past[i].Token) != "" || slices.ContainsFunc(r.Past[i].Members, func(m protocol.Member) bool {
			return g.machine(m.Token) != ""
		}) {
			return true
		}
	}
	return false
}

// note notes a subjob, all of the job if it is zero.
func (g *Gatherer) note(name job.ID, t job.Token) {
	if g.ctx.Err() != nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	n := g.pending[name]
	if n == nil {
		n = &news{tokens: map[job.Token]bool{}}
		g.pending[name] = n
	}
	if !n.all {
		n.tokens[t] = true
	}
	if t.Zero() || len(n.tokens) > mostNews {
		n.all, n.tokens = true, nil
	}
	wake(g.some)
}

// wake signals a channel of capacity 1.
func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// run works until Close. What failed is tried again after a pause, which doubles while anything fails.
func (g *Gatherer) run() {
	for pause := every; ; {
		select {
		case <-g.some:
		case <-g.ctx.Done():
			return
		}
		select {
		case <-time.After(pause):
		case <-g.hurry:
		case <-g.ctx.Done():
			return
		}
		if g.pass() {
			pause = every
		} else {
			pause = min(max(2*pause, leastRest), mostRest)
		}
	}
}

// pass works on all that is pending. It returns false if something is to be tried again.
func (g *Gatherer) pass() bool {
	g.mu.Lock()
	batch := g.pending
	g.batch, g.pending = batch, map[job.ID]*news{}
	g.mu.Unlock()
	names := make(chan job.ID)
	var wg sync.WaitGroup
	var failed sync.Map
	for range min(workers, len(batch)) {
		wg.Go(func() {
			for name := range names {
				if again := g.bring(name, batch[name]); again {
					failed.Store(name, true)
				}
			}
		})
	}
	for name := range batch {
		names <- name
	}
	close(names)
	wg.Wait()
	well := true
	for name := range failed.Range {
		well = false
		g.again(name.(job.ID), batch[name.(job.ID)])
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.over)
	g.batch, g.over = nil, make(chan struct{})
	return well
}

// Bring returns once what the facts have said so far of these jobs is in its place, or could not be had at the first try, or ctx is done.
// A job that is over has its outputs where people look for them then.
func (g *Gatherer) Bring(ctx context.Context, names ...job.ID) {
	if g == nil {
		return
	}
	// What is worked on now may have begun before the last news, so that takes two passes.
	for range 2 {
		over, busy, waits := g.state(names)
		if !busy && !waits {
			return
		}
		if !busy {
			wake(g.hurry)
		}
		select {
		case <-over:
		case <-ctx.Done():
			return
		case <-g.ctx.Done():
			return
		}
	}
}

// state reports whether any of these jobs is worked on, or waits for that, and what is closed at the end of the pass.
func (g *Gatherer) state(names []job.ID) (over <-chan struct{}, busy, waits bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, name := range names {
		busy = busy || g.batch[name] != nil
		waits = waits || g.pending[name] != nil
	}
	return g.over, busy, waits
}

// again makes what failed pending once more.
func (g *Gatherer) again(name job.ID, n *news) {
	if n.all {
		g.note(name, job.Token{})
	}
	for t := range n.tokens {
		g.note(name, t)
	}
}

// bring does what is to be done for one job, and reports whether to try it again.
func (g *Gatherer) bring(name job.ID, n *news) (again bool) {
	if g.ctx.Err() != nil {
		return false
	}
	j, err := g.jobs.Job(g.ctx, name)
	if errkind.Of(err) == errkind.NotFound {
		return false // it was forgotten, and its files with it
	}
	errs := []error{err}
	if err == nil {
		missing := maps.Clone(n.tokens)
		errs = append(errs, g.subjobs(g.ctx, &j, func(s *status.Subjob) {
			if !s.Running && g.heard(n, s) {
				errs = append(errs, g.settle(g.ctx, &j, s)...)
			}
			found(missing, s)
		}, func() bool { return n.all || len(missing) > 0 }))
		errs = append(errs, g.checkpoints(g.ctx, &j, n.all))
	}
	for _, err := range errs {
		again = g.failed(name, err) || again
	}
	return again
}

// failed logs an error, and reports whether to try again. Of what a person must mend who asks for it is told so too.
func (g *Gatherer) failed(name job.ID, err error) (again bool) {
	if err == nil || g.ctx.Err() != nil {
		return false
	}
	switch k := errkind.Of(err); {
	case k == errkind.Corrupt || k == errkind.Invalid || k == errkind.Denied:
		g.log.Error("what subjobs on other machines left is not to be had", "job", string(name), "error", err)
		return false
	case k != errkind.Unavailable: // the loop is busy, or the store away: it passes
		g.log.Warn("what subjobs on other machines left could not be brought; trying again", "job", string(name), "error", err)
	}
	return true
}

// subjobs calls each for the subjobs of a job: those that it shows, and then, as long as more says so, a page of older ones.
func (g *Gatherer) subjobs(ctx context.Context, j *status.Job, each func(*status.Subjob), more func() bool) error {
	for list, before := j.History, j.HistoryDropped; ; before -= len(list) {
		for i := range list {
			each(&list[i])
		}
		if before <= 0 || !more() {
			return nil
		}
		var err error
		if list, err = g.jobs.Older(ctx, j.Name, before); err != nil || len(list) == 0 {
			return err
		}
	}
}

// found takes a subjob and its members out of those that are looked for.
func found(missing map[job.Token]bool, s *status.Subjob) {
	delete(missing, s.Token)
	for i := range s.Members {
		delete(missing, s.Members[i].Token)
	}
}

// heard reports whether there is news of a subjob, or of a member of it.
func (g *Gatherer) heard(n *news, s *status.Subjob) bool {
	return n.all || n.tokens[s.Token] || slices.ContainsFunc(s.Members, func(m protocol.Member) bool { return n.tokens[m.Token] })
}

// part is what one member of a gang, or a subjob of no gang, has left.
type part struct {
	token  job.Token
	member int
}

// parts of a subjob that were on other machines, and left something.
func (g *Gatherer) parts(s *status.Subjob) (list []part) {
	if s.LeftNothing {
		return nil
	}
	if len(s.Members) == 0 && g.machine(s.Token) != "" {
		return []part{{s.Token, 0}}
	}
	for i, m := range s.Members {
		if g.machine(m.Token) != "" {
			list = append(list, part{m.Token, i})
		}
	}
	return list
}

// published reports whether a subjob counts and all of its members have said that their output is in its place.
func published(j *status.Job, s *status.Subjob) bool {
	return !s.Committed.Empty() && j.Published.Contains(s.Committed)
}

// settle brings what one subjob that is over has left, and removes from the store what then nobody needs.
func (g *Gatherer) settle(ctx context.Context, j *status.Job, s *status.Subjob) (errs []error) {
	counts := published(j, s)
	if !counts && (s.Outcome == status.Publishing || !s.Committed.Empty() && s.Outcome != status.Skipped) {
		return nil // it counts, and is not published yet: then there is news again
	}
	for _, p := range g.parts(s) {
		var err error
		if counts {
			err = g.output(ctx, j, s, p)
		}
		if err == nil {
			_, err = g.store.Logs(ctx, j, p.token)
		}
		if err == nil {
			err = g.store.Forget(ctx, j, p.token, counts)
		}
		errs = append(errs, err)
	}
	return errs
}

func (g *Gatherer) output(ctx context.Context, j *status.Job, s *status.Subjob, p part) error {
	err := g.store.Output(ctx, j, status.Output{Token: p.token, Range: s.Committed, Member: p.member})
	if err != nil {
		return errkind.Errorf(errkind.Of(err), "machine %s: %w", g.machine(p.token), err)
	}
	return nil
}

// checkpoints removes from the store the checkpoints that no subjob will start from: the newest that counts stays, and what a running
// subjob has begun from. Older ones were removed before, so that the first that is not there ends the look, unless all of them are asked
// for; they are removed from the oldest on, so that this holds after a failure too.
func (g *Gatherer) checkpoints(ctx context.Context, j *status.Job, all bool) error {
	if j.Kind != job.Steps && !j.Saves {
		return nil
	}
	type left struct { // it is a chain: each begins where the one before has ended
		token job.Token
		from  int64
	}
	var chain []left
	err := g.subjobs(ctx, j, func(s *status.Subjob) {
		if !s.Committed.Empty() && !slices.Contains(j.Checkpoints, s.Token) {
			chain = append(chain, left{s.Token, s.Committed.From})
		}
	}, func() bool { return all })
	if err != nil {
		return err
	}
	slices.SortFunc(chain, func(a, b left) int { return cmp.Compare(b.from, a.from) })
	var old []job.Token
	for _, s := range chain {
		has, err := g.store.HasCheckpoint(ctx, j, s.token)
		if err != nil {
			return err
		}
		if has {
			old = append(old, s.token)
		} else if !all {
			break
		}
	}
	for _, t := range slices.Backward(old) {
		if err := g.store.ForgetCheckpoint(ctx, j, t); err != nil {
			return err
		}
	}
	return nil
}

// Outputs makes sure that every output of a job that is published is in its place, also those of other machines. Those that can't be had
// are returned, each with why: the rest is good without them.
func (g *Gatherer) Outputs(ctx context.Context, j *status.Job) (lost []status.Output, err error) {
	err = g.subjobs(ctx, j, func(s *status.Subjob) {
		if !published(j, s) || ctx.Err() != nil {
			return
		}
		for _, p := range g.parts(s) {
			if why := g.output(ctx, j, s, p); why != nil {
				lost = append(lost, status.Output{Token: p.token, Range: s.Committed, Member: p.member, Lost: why.Error()})
			}
		}
	}, func() bool { return ctx.Err() == nil })
	if err == nil && ctx.Err() != nil {
		err = errkind.Errorf(errkind.Unavailable, "not all of them are here yet: ask again: %w", context.Cause(ctx))
	}
	return lost, err
}

// Logs makes sure that the logs of a subjob that is over on another machine are in their place, and reports whether there are any.
func (g *Gatherer) Logs(ctx context.Context, j *status.Job, t job.Token) (found bool, err error) {
	return g.store.Logs(ctx, j, t)
}
