package slurm

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/provider"
	"sluice.dev/sluice/internal/edge/provider/slurm/restd"
)

// REST is how slurmrestd is reached. URL is needed.
type REST struct {
	// URL is unix:/path, https://host[:port][/path] or http:// of this machine itself.
	URL string
	// User is whose jobs pilots are; empty: whom this runs as. TokenFile is a file with a JWT; empty: the socket says who asks.
	User, TokenFile string
	// Version is the only one of the interface that is used; empty: the newest that is there.
	Version string
}

// fill puts the default user in, and lists what is wrong. A token in a shared file is its owner's alone, and so is a pilot that reads it.
func (r *REST) fill(o *Options) (errs []error) {
	me := ""
	if u, err := user.Current(); err == nil {
		me = u.Username
	}
	if r.User == "" {
		r.User = me
	}
	if r.User == "" || strings.ContainsFunc(r.User, func(c rune) bool { return c <= ' ' || c > '~' }) {
		errs = append(errs, fmt.Errorf("rest.user %q: want the name of the user whose jobs pilots are", r.User))
	}
	if o.Dir != "" && r.User != me {
		errs = append(errs, fmt.Errorf("dir: pilots of %s can't read what only %s may: leave it out, and tokens go through Slurm itself",
			r.User, me))
	}
	if len(o.Extra) > 0 {
		errs = append(errs, errors.New("extra: options of sbatch can't be given to slurmrestd"))
	}
	d := r.client(o.Timeout)
	if err := d.Check(); err != nil {
		errs = append(errs, fmt.Errorf("rest: %w", err))
	}
	return errs
}

func (r *REST) client(timeout time.Duration) restd.Options {
	return restd.Options{URL: r.URL, User: r.User, TokenFile: r.TokenFile, Version: r.Version, Timeout: timeout}
}

// restful is a cluster that is asked through slurmrestd.
type restful struct {
	o Options
	c *restd.Client
}

func openRestful(o Options) (*restful, error) {
	c, err := restd.New(o.REST.client(o.Timeout))
	if err != nil {
		return nil, err
	}
	return &restful{o, c}, nil
}

// Slurm's numbers for errors that say little: none of its own, and a connection that slurmctld has closed.
const unspecified, zeroBytes = -1, 5005

// judge gives an error of restd's the kind that Slurm's words mean.
func (r *restful) judge(err error) error {
	var said *restd.Refusal
	if !errors.As(err, &said) {
		return err
	}
	if r.o.REST.TokenFile != "" && (said.Code == unspecified || said.Code == zeroBytes) {
		err = fmt.Errorf("%w: slurmctld does not answer, or the token of rest.tokenFile has expired (scontrol token)", err)
	}
	switch said.Status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return errkind.Errorf(errkind.Denied, "%w: it does not take who asks: has the token of rest.tokenFile expired (scontrol token), "+
			"or is the socket another user's?", err)
	case http.StatusBadRequest, http.StatusNotFound:
		return errkind.Errorf(errkind.Invalid, "%w", err)
	}
	return errkind.Errorf(kindOf(said.Text), "%w", err)
}

// queue implements cluster.
func (r *restful) queue(ctx context.Context) ([]row, error) {
	list, err := r.c.Jobs(ctx)
	if err != nil {
		return nil, r.judge(err)
	}
	rows := make([]row, len(list))
	for i := range list {
		if rows[i], err = r.row(&list[i]); err != nil {
			return nil, unclear(fmt.Sprintf("slurmrestd: job %d", list[i].ID.N), err)
		}
	}
	return rows, nil
}

// maxMinutes bounds limits that are read.
const maxMinutes = int64(maxLength / time.Minute)

// row of a job. Of one without a limit Slurm makes an end up, a year or a century ahead.
func (r *restful) row(j *restd.Job) (row, error) {
	w := row{id: strconv.FormatInt(j.ID.N, 10), state: j.State(), name: j.Name, reason: j.Reason, memory: -1,
		partitions: strings.Split(j.Partition, ","),
		mine:       j.UserName == r.o.REST.User}
	if j.UserName == "" && strings.HasPrefix(j.Name, r.o.prefix()) {
		return w, errors.New("it is called as a pilot, and nothing says whose it is")
	}
	times := []struct {
		what string
		from restd.Number
		to   *time.Time
	}{{"start_time", j.Start, &w.start}, {"end_time", j.End, &w.end}, {"preempt_time", j.PreemptTime, &w.taken}}
	for _, t := range times {
		at, err := t.from.Time(t.what)
		if err != nil {
			return w, err
		}
		*t.to = at
	}
	minutes, err := j.Limit.Count("time_limit", maxMinutes)
	if err != nil {
		return w, err
	}
	w.limit = time.Duration(minutes) * time.Minute
	if is := stateTable[w.state].state; w.limit == 0 && (is == provider.Waiting || is == provider.Running) {
		w.end = time.Time{}
	}
	if w.hosts, err = parseHosts(j.Nodes); err != nil {
		return w, err
	}
	if j.Scheduled == nil {
		w.meantUnknown = true
	} else if w.meant, err = parseHosts(*j.Scheduled); err != nil {
		return w, err
	}
	if w.cpus, err = j.CPUs.Count("cpus", 1<<40); err != nil {
		return w, err
	}
	if j.MemoryPerNode.Set && j.MemoryPerNode.N > 0 {
		mib, err := j.MemoryPerNode.Count("memory_per_node", 1<<40)
		if err != nil {
			return w, err
		}
		w.memory = mib << 20
	}
	if list, odd := parseGres(j.TRESPerNode); odd == nil { // otherwise it is another's, in a form that no pilot has
		w.gres = list
	}
	return w, nil
}

// preempted implements cluster: the queue has said it.
func (r *restful) preempted(_ context.Context, ids []string, rows []row) (map[string]time.Time, error) {
	at := map[string]time.Time{}
	for _, w := range rows {
		if slices.Contains(ids, w.id) {
			at[w.id] = w.taken
		}
	}
	return at, nil
}

// hosts implements cluster.
func (r *restful) hosts(ctx context.Context) (hosts []host, none bool, err error) {
	list, err := r.c.Nodes(ctx)
	if err != nil {
		return nil, false, r.judge(err)
	}
	none = true
	for i := range list {
		n := &list[i]
		if !slices.Contains(n.Partitions, r.o.Partition) {
			continue
		}
		none = false
		if unusable(append(n.States.Upper(), n.Flags.Upper()...)) || !r.o.features(n.Features) {
			continue
		}
		h, err := hostOf(n)
		if err != nil {
			return nil, false, unclear("slurmrestd: node "+n.Name, err)
		}
		hosts = append(hosts, h)
	}
	return hosts, none, nil
}

// hostOf is what a node has, and what is free of it.
func hostOf(n *restd.Node) (h host, err error) {
	cpus := n.CPUs
	if n.Effective.Set {
		cpus = n.Effective
	}
	count := func(what string, from restd.Number) (v int64) {
		if err == nil {
			v, err = from.Count(what, 1<<40)
		}
		return v
	}
	h = host{name: n.Name, partitions: n.Partitions}
	kept := count("specialized_memory", n.Kept)
	h.total.cpus, h.total.memory = count("cpus", cpus), (count("real_memory", n.RealMemory)-kept)<<20
	h.free.cpus = h.total.cpus - count("alloc_cpus", n.AllocCPUs)
	h.free.memory = h.total.memory - count("alloc_memory", n.AllocMemory)<<20
	if err != nil {
		return h, err
	}
	h.total.gres, h.free.gres, err = devices(n.Gres, n.GresUsed)
	return h, err
}

// bookings implements cluster.
func (r *restful) bookings(ctx context.Context) (others []booking, own *booking, err error) {
	list, err := r.c.Reservations(ctx)
	if err != nil {
		return nil, nil, r.judge(err)
	}
	var all []booking
	for _, v := range list {
		b := booking{name: v.Name, hosts: map[string]bool{}}
		names, err := parseHosts(v.Nodes)
		if err == nil {
			b.start, err = v.Start.Time("start_time")
		}
		if err == nil {
			b.end, err = v.End.Time("end_time")
		}
		if err != nil {
			return nil, nil, unclear("slurmrestd: reservation "+brief(v.Name), err)
		}
		for _, n := range names {
			b.hosts[n] = true
		}
		all = append(all, b)
	}
	others, own = r.o.apart(all)
	return others, own, nil
}

// longest implements cluster.
func (r *restful) longest(ctx context.Context) (time.Duration, error) {
	p, err := r.c.Partition(ctx, r.o.Partition)
	if err = r.judge(err); errkind.Of(err) == errkind.Invalid {
		return 0, r.o.noPartition()
	}
	if err != nil {
		return 0, err
	}
	if p == nil {
		return 0, r.o.noPartition()
	}
	minutes, err := p.Longest().Count("its longest time", maxMinutes)
	if err != nil {
		return 0, unclear("slurmrestd: partition "+r.o.Partition, err)
	}
	return time.Duration(minutes) * time.Minute, nil
}

// job is what slurmrestd is asked for.
func (r *restful) job(o order) *restd.Order {
	j := &restd.Order{Name: o.job, Comment: r.o.comment(), Partition: r.o.Partition, Script: o.script,
		Minutes: int64(o.pilot.Length / time.Minute), CPUs: int64(r.o.CPUs), MiB: (r.o.Memory + 1<<20 - 1) >> 20,
		Gres: r.o.Gres, Account: r.o.Account, QOS: r.o.QOS, Constraint: r.o.Constraint, Reservation: r.o.Reservation, Exclude: r.o.Exclude,
		// Slurm takes no job without an environment, and gives it nothing of the node's own.
		Environment: map[string]string{"PATH": "/usr/local/bin:/usr/bin:/bin"}}
	if o.token != "" {
		j.Environment[tokenVariable], j.Secret = o.token, o.token
	}
	if r.o.UserSignal {
		j.Signal, j.Before = "USR1", 60
	}
	return j
}

// submit implements cluster.
func (r *restful) submit(ctx context.Context, o order) error {
	return r.judge(r.c.Submit(ctx, r.job(o)))
}

// words implements cluster.
func (r *restful) words(o order) string { return r.c.Words(r.job(o)) }

// try implements cluster. test_only, a key of 22.05 that its own description leaves out, is taken, and submits the job.
func (r *restful) try(ctx context.Context, o order) (provider.Trial, error) {
	if _, err := r.longest(ctx); err != nil {
		return provider.Trial{}, err
	}
	return provider.Trial{}, errkind.Errorf(errkind.Unsupported, "slurm: slurmrestd can't be asked whether Slurm would take a pilot. It "+
		"answers, and partition %s takes jobs of %v; for the rest run sbatch --test-only in the cluster", r.o.Partition, o.pilot.Length)
}

// end implements cluster. DELETE takes an id alone, so whose that is now is asked first.
func (r *restful) end(ctx context.Context, job string, ids []string) error {
	for _, id := range ids {
		j, err := r.c.Job(ctx, id)
		if err == nil && (j.Name != job || j.UserName != r.o.REST.User) {
			continue
		}
		if err == nil {
			err = r.c.Kill(ctx, id)
		}
		if err != nil && !restd.Gone(err) {
			return r.judge(err)
		}
	}
	return nil
}
