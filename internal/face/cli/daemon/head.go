package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"sluice.dev/sluice/internal/core/arrangement"
	"sluice.dev/sluice/internal/core/departure"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/node"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/edge/authority"
	"sluice.dev/sluice/internal/edge/executor/process"
	"sluice.dev/sluice/internal/edge/fabric/stream"
	"sluice.dev/sluice/internal/edge/membership"
	"sluice.dev/sluice/internal/edge/store"
	headstore "sluice.dev/sluice/internal/edge/store/head"
	"sluice.dev/sluice/internal/edge/store/local"
	"sluice.dev/sluice/internal/host"
	"sluice.dev/sluice/internal/host/datadir"
)

const (
	// authorityDir is where a head keeps who has joined, below its data directory.
	authorityDir = "authority"
	// bySpec is the kind of a store that machines reach themselves, by its spec.
	bySpec = "spec"
)

// head is what a daemon has to be the head of a cluster (docs/adr/0065-links.md): who may join, their links, and where they call.
type head struct {
	*circle
	server  *membership.Server
	store   *headstore.Service // nil: machines reach the store themselves
	several bool               // users, as whom subjobs run
	// silence is after how long a machine is removed that was to be gone with its daemon; since when the head is there to hear it.
	silence time.Duration
	since   quantity.Instant
	lenders *lenders
	log     *slog.Logger
}

// canLead says what of the options a head can't have yet.
func (o *Options) canLead() error {
	var errs []error
	if o.File.Zones > 1 {
		errs = append(errs, errors.New("--cluster: machines join a daemon with one zone: leave zones out of --config"))
	}
	if o.Mechanism == arrangement.Laminar {
		errs = append(errs, errors.New("--cluster: mechanism laminar knows its nodes from the start: choose sja or jasda"))
	}
	if _, _, err := net.SplitHostPort(o.Cluster); err != nil {
		errs = append(errs, fmt.Errorf("--cluster %q is no address: want host:port such as 0.0.0.0:%s", o.Cluster, DefaultHeadPort))
	}
	if err := errors.Join(errs...); err != nil {
		return errkind.Errorf(errkind.Invalid, "%w", err)
	}
	return nil
}

// openHead opens who has joined. The data directory is locked meanwhile: of two heads that start at once one would take the other's root
// for its own. names are the daemon's, the present one last.
func openHead(o *Options, data string, names []job.NodeID, nodes []node.Config, single bool) (c *head, err error) {
	if err = o.canLead(); err != nil {
		return nil, err
	}
	dir, err := datadir.Take(data)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	c = &head{circle: &circle{address: reached(o.Cluster)}, several: !single,
		silence: cmp.Or(o.Leaving.Silence, departure.Silence), log: o.Log}
	c.since = quantity.At(c.clock.Now())
	if c.authority, err = authority.Open(filepath.Join(data, authorityDir), time.Now()); err != nil {
		return nil, err
	}
	if err = c.authority.Reserve(ownNames(names, nodes)); err != nil {
		return nil, err
	}
	c.links = stream.NewHead(stream.HeadOptions{
		Caller: membership.Caller(c.authority, nil), Owns: membership.Owns(c.authority), Start: c.authority.Start,
		SeveralUsers: c.several, Build: o.Version, Now: c.clock.Now, Log: o.Log,
	})
	if c.lenders, err = openLenders(o, data, c.circle); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// ownNames are the names that a daemon and its nodes have, and those that they had before it was called otherwise.
func ownNames(names []job.NodeID, nodes []node.Config) (have, had []job.NodeID) {
	last := len(names) - 1
	have, had = []job.NodeID{names[last]}, slices.Clone(names[:last])
	for i := range nodes {
		have = append(have, nodes[i].ID)
		for _, name := range names[:last] {
			had = append(had, name+job.NodeID(strings.TrimPrefix(string(nodes[i].ID), string(names[last]))))
		}
	}
	return have, had
}

// ledBefore is what is printed at the start of a daemon that is no head now, and was one; empty: it was none.
func ledBefore(data string) string {
	if _, err := os.Stat(filepath.Join(data, authorityDir)); err != nil {
		return ""
	}
	return "cluster: none, though this daemon was the head of one: its machines can't call, and what they run is waited for; start it " +
		"with --cluster again"
}

// reached is an address to listen on as others may call it: by this machine's name where it is any address.
func reached(listen string) string {
	at, port, err := net.SplitHostPort(listen)
	if ip := net.ParseIP(at); err == nil && (at == "" || ip != nil && ip.IsUnspecified()) {
		if name, err := os.Hostname(); err == nil {
			return net.JoinHostPort(name, port)
		}
	}
	return listen
}

// ownStore is the store of a head whose file names none: its own, which its machines reach by it.
func ownStore(data string) (store.Store, string, error) {
	s, err := local.Open(filepath.Join(data, "store"))
	if err != nil {
		return nil, "", err
	}
	return s, "the data directory's own, for work directories, outputs and checkpoints; machines that join reach it by this daemon", nil
}

// listen takes the address where machines call.
func (c *head) listen(o *Options, data string, where store.Store, zone job.ZoneID, h *host.Host) error {
	c.host = h
	owner, err := process.StoreOwner(data)
	if err != nil {
		return err
	}
	settings := membership.Settings{Zone: string(zone), Horizon: o.Horizon, Mechanism: o.Mechanism,
		Store: membership.StoreSettings{Kind: headstore.Name, Owner: owner, TakesNothing: true}, SeveralUsers: c.several}
	options := membership.HeadOptions{
		Authority: c.authority, Head: c.links, Settings: func(job.NodeID) membership.Settings { return settings },
		Left:  func(name job.NodeID) error { return c.RemoveMachine(context.Background(), name) },
		HTTP2: headstore.ServerHTTP2(), Now: c.clock.Now, Log: o.Log,
	}
	if o.File.Store == "" || strings.HasPrefix(o.File.Store, local.Name+":") {
		own := membership.Owns(c.authority)
		c.store, err = headstore.NewService(headstore.ServiceOptions{
			Store: where, Caller: membership.Caller(c.authority, nil), May: func(_ context.Context, call headstore.Call) error {
				return headstore.Machines(owner, func(t job.Token) bool { return own(call.Machine, t) }, call)
			},
		})
		if err != nil {
			return err
		}
		path, handler := c.store.Handler()
		options.Beside = map[string]http.Handler{path: handler}
	} else {
		settings.Store.Kind, settings.Store.Spec = bySpec, []byte(o.File.Store)
	}
	c.server, err = membership.Listen(o.Cluster, options)
	return err
}

// run serves machines for as long as the daemon runs. The daemon closes the links.
func (c *head) run(ctx context.Context, daemon func(context.Context) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	serving, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	served := make(chan error, 1)
	go func() {
		served <- c.server.Serve(serving)
		stop() // no machine is reached any more
	}()
	var looks sync.WaitGroup
	looks.Go(func() { c.watch(ctx) })
	looks.Go(func() { c.lenders.run(ctx) })
	err := daemon(ctx)
	stop()
	looks.Wait()
	if c.store != nil {
		c.store.Close()
	}
	end()
	return errors.Join(err, <-served)
}

// close is for a head that has not run. One that was not opened has nothing to close.
func (c *head) close() error {
	if c == nil || c.links == nil {
		return nil
	}
	var err error
	if c.server != nil {
		err = c.server.Close()
	}
	return errors.Join(err, c.links.Close(), c.lenders.close())
}

// machines are those that have joined (nodes.Elsewhere).
func (c *head) machines() membership.Machines {
	return membership.Machines{Authority: c.authority, Links: c.links}
}

// Cluster implements api.Machines.
func (c *head) Cluster() status.Cluster {
	all := c.authority.Machines()
	list := make([]status.Machine, len(all))
	for i := range all {
		m := &list[i]
		m.Name, m.Joined = all[i].Name, quantity.At(all[i].Joined)
		m.Ephemeral, m.Until = all[i].Ephemeral, all[i].Stay().Until
		if why := c.machines().Away(m.Name); why != nil {
			m.Why = why.Error()
		}
		if l, ok := c.links.Machine(m.Name); ok {
			m.Up, m.Build, m.Since, m.Heard = l.Up, l.Build, quantity.At(l.Since), quantity.At(l.Heard)
			m.Measured, m.Offset, m.RoundTrip = l.RoundTrip > 0, l.Offset, l.RoundTrip
		}
	}
	return status.Cluster{Head: true, Machines: list, Removed: c.authority.Removed()}
}

// CreateToken implements api.Machines.
func (c *head) CreateToken(name job.NodeID, within time.Duration) (token, at string, err error) {
	token, err = c.authority.NewToken(name, within, time.Now())
	return token, c.address, err
}

// Bring implements api.Machines.
func (c *head) Bring(ctx context.Context, names ...job.ID) { c.host.Left.Bring(ctx, names...) }

// RemoveMachine implements api.Machines. Its certificate is refused first, so that its link can't come back.
func (c *head) RemoveMachine(_ context.Context, name job.NodeID) error {
	if err := c.authority.Remove(name, time.Now()); err != nil {
		return err
	}
	c.links.Expel(name, authority.RemovedError(name))
	c.host.Departed.Forsake(name)
	return nil
}

// lookEvery is how often the head looks for machines that are gone without a word.
const lookEvery = time.Second

// watch removes machines that were to be gone for good and have not said so, until ctx is done.
func (c *head) watch(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, m := range c.authority.Machines() {
			if m.Ephemeral {
				c.letGo(ctx, m.Name, m.Stay())
			}
		}
	}
}

// letGo removes a machine if it is time.
func (c *head) letGo(ctx context.Context, name job.NodeID, stay departure.Stay) {
	now := quantity.At(c.clock.Now())
	seen := departure.Seen{Heard: c.since}
	if l, ok := c.links.Machine(name); ok {
		seen.Up, seen.Heard = l.Up, quantity.At(l.Heard)
	}
	if stay.LetGo(seen, c.silence) > now { // most are
		return
	}
	var err error
	if seen.Sold, err = c.host.Departed.Sold(ctx, name); err != nil || stay.LetGo(seen, c.silence) > now {
		return // a daemon that can't answer is asked again
	}
	switch err = c.RemoveMachine(ctx, name); errkind.Of(err) {
	case errkind.NotFound: // it has just left
	case errkind.Unknown:
		if err == nil {
			c.log.Info("a machine is removed that was to be gone for good, and has not said so", "machine", string(name), "heard",
				seen.Heard.Time())
			return
		}
		fallthrough
	default:
		c.log.Warn("a machine that is gone for good is not removed", "machine", string(name), "error", err)
	}
}

// says is what is printed of the cluster at the start.
func (c *head) says() []string {
	lines := []string{fmt.Sprintf("cluster: machines join by: sluice join %s --token $(sluice token create -q)", c.address)}
	for i, p := range c.lenders.providers {
		pool := &c.lenders.pools[i]
		lines = append(lines, fmt.Sprintf("provider %s: %s; at most %d pilots", pool.Name, p.Describe(), pool.Most))
	}
	return lines
}
