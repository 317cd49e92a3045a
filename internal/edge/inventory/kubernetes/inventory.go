//go:build kubernetes

package kubernetes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/reclaim"
	"sluice.dev/sluice/internal/edge/cluster"
	"sluice.dev/sluice/internal/edge/inventory"
	"sluice.dev/sluice/internal/edge/inventory/kubernetes/lengths"
)

// Options of an inventory.
type Options struct {
	Client kubernetes.Interface
	// Dynamic watches Kueue's objects; nil: Kueue is not looked at.
	Dynamic dynamic.Interface
	// Operator and Journal are the labels of our own Pods and claims. Those of another journal of this operator count as somebody else's.
	Operator, Journal string
	// Key is the journal's secret, and Made when it was made: a Pod is ours only if its record is sealed with Key, or is older than Made
	// and has no seal, since anybody can copy labels. Empty: labels are trusted.
	Key  []byte
	Made time.Time
	// Pools to offer from the start; a device belongs to the first pool that matches it. None: nothing is offered.
	Pools []Pool
	Log   *slog.Logger
	// Now is the clock; nil: this machine's.
	Now func() quantity.Instant
	// Settle is how long changes are collected before they are evaluated together. Default 200 ms.
	Settle time.Duration
	// Patience bounds how long Open waits for what a cluster may lack (Kueue's Workloads). Default 10 s.
	Patience time.Duration
	// absent is how often a cluster without Kueue is asked whether it has been installed since. Default 1 min.
	absent time.Duration
}

// Inventory lists a cluster's slices and what others hold of them. It only reads from the API server; while that is away the last state it
// sent stands.
type Inventory struct {
	opts   Options
	slim   slimmer
	cancel context.CancelFunc
	done   sync.WaitGroup
	sources

	mu    sync.Mutex
	dirty map[string]bool
	wake  chan struct{}
	// stands is the last evaluation of each machine; all is their slices by ID, nil until Slices lists them anew.
	stands map[string]*stand
	all    []protocol.Slice
	told   told
	away   silences
	// lengths remembers how long others' Pods ran, by owner, to estimate ends that nobody states.
	lengths lengths.Lengths
	// fell are machines whose extended resources dropped a moment ago, as when a device plugin restarts: their slices are closed, not
	// removed.
	fell map[string]bool
}

var (
	_ inventory.Inventory = (*Inventory)(nil)
	_ inventory.Live      = (*Inventory)(nil)
)

// Open starts to watch a cluster and returns when all but Kueue's objects is known; for those it waits Patience at most. Errors are of
// kind Invalid (the options), or Unavailable if the API server failed the first request or did not answer before ctx ended.
func Open(ctx context.Context, o Options) (*Inventory, error) {
	if o.Client == nil || o.Operator == "" {
		return nil, errkind.Errorf(errkind.Invalid, "inventory of a cluster: Client and Operator must be set")
	}
	if err := checkPools(o.Pools); err != nil {
		return nil, err
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = func() quantity.Instant { return quantity.At(time.Now()) }
	}
	o.Settle, o.Patience, o.absent, o.Pools = cmp.Or(o.Settle, 200*time.Millisecond), cmp.Or(o.Patience, 10*time.Second),
		cmp.Or(o.absent, time.Minute), withDefaults(o.Pools)
	inv := &Inventory{
		opts: o, slim: slimmer{operator: o.Operator, journal: o.Journal, key: o.Key, made: o.Made}, dirty: map[string]bool{},
		wake: make(chan struct{}, 1), stands: map[string]*stand{},
		told: newTold(), lengths: lengths.New(), fell: map[string]bool{},
	}
	if err := inv.connect(ctx); err != nil {
		return nil, errors.Join(err, inv.Close())
	}
	inv.look()
	return inv, nil
}

// Slices lists the slices as of Watch's last report, or as of Open.
func (inv *Inventory) Slices(context.Context) ([]protocol.Slice, error) {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	if inv.all == nil {
		inv.all = []protocol.Slice{}
		for _, x := range inv.stands {
			inv.all = append(inv.all, x.slices...)
		}
		slices.SortFunc(inv.all, func(a, b protocol.Slice) int { return cmp.Compare(a.ID, b.ID) })
	}
	return slices.Clone(inv.all), nil
}

// Held is what others hold of slices, the state of their GPUs, and who waits for what machines have, as of Watch's last report, or as of
// Open.
func (inv *Inventory) Held() (list []inventory.Sighting) {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	return inv.told.all()
}

// GPUs is one name, of operator and journal: two processes of one journal are refused on one machine, while operators of one name for two
// clusters are not, as their journals differ. Processes on two machines are kept apart by the operator's lease.
func (inv *Inventory) GPUs() []string {
	return []string{"kubernetes-" + cluster.Owner(inv.opts.Operator, inv.opts.Journal)}
}

// Describe summarizes the inventory for people: slices, devices that are left out and why, and since when the API server is away.
func (inv *Inventory) Describe() string {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	n, machines := 0, 0
	for _, x := range inv.stands {
		n += len(x.slices)
		if len(x.slices) > 0 {
			machines++
		}
	}
	if len(inv.opts.Pools) == 0 {
		return "there is no pool, so that nothing is offered"
	}
	var pools []string
	for _, p := range inv.opts.Pools {
		pools = append(pools, p.Name)
	}
	text := fmt.Sprintf("%d slices on %d machines of a Kubernetes cluster, pools %s", n, machines, strings.Join(pools, ", "))
	if left := inv.omissions(""); left != "" {
		text += "; " + left
	}
	if since, err := inv.away.since(); err != nil {
		text += fmt.Sprintf("; the API server is away since %s, and what it said last stands: %s", since.UTC().Format(time.RFC3339),
			strings.ReplaceAll(err.Error(), "\n", " "))
	}
	return text
}

// Away is since when watching the API server fails, and why. The error is nil while it works.
func (inv *Inventory) Away() (since time.Time, err error) {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	return inv.away.since()
}

// Watch reports changes of slices and of what others have of them until ctx ends. It ignores its second argument: Pods have no process on
// this machine to ask about.
func (inv *Inventory) Watch(ctx context.Context, _ func(job.SliceID, int) bool, report func(inventory.Sighting)) error {
	unreachable := false
	for {
		if since, err := inv.Away(); (err != nil && time.Since(since) > blind) != unreachable && ctx.Err() == nil {
			unreachable = !unreachable
			a := &protocol.Condition{Unhealthy: unreachable}
			if unreachable {
				a.Text = "who holds what in the cluster is not known any more: " + err.Error()
			}
			report(inventory.Sighting{Condition: a})
		}
		select {
		case <-ctx.Done():
			return nil
		case <-inv.wake:
		case <-time.After(again): // a queue's first comes to its time without an event
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(inv.opts.Settle):
		}
		for _, s := range inv.look() {
			if ctx.Err() == nil {
				report(s)
			}
		}
	}
}

// blind is how long the API server may be away before nothing is started any more: by then others may have more.
const blind = time.Minute

// again is how often waiters are looked for where nothing changes.
const again = 10 * time.Second

// Close stops watching. It may be called twice.
func (inv *Inventory) Close() error {
	inv.cancel()
	inv.done.Wait()
	return nil
}

// touch marks machines dirty and wakes Watch.
func (inv *Inventory) touch(machines ...string) {
	inv.mu.Lock()
	for _, m := range machines {
		if m != "" {
			inv.dirty[m] = true
		}
	}
	inv.mu.Unlock()
	inv.rouse()
}

// rouse wakes Watch.
func (inv *Inventory) rouse() {
	select {
	case inv.wake <- struct{}{}:
	default: // already woken
	}
}

// look evaluates dirty machines and returns what is to be reported, in this order: what others have of slices that exist and the state of
// GPUs, that the list of slices has changed, who waits for what, and last that slices which are gone are no longer held. So nothing is
// started on a slice that looks free only because it is gone.
func (inv *Inventory) look() (list []inventory.Sighting) {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	for name := range inv.fell { // what is closed for a moment is looked at again
		inv.dirty[name] = true
	}
	clear(inv.fell)
	var gone []inventory.Sighting
	var news protocol.Wishes
	restocked := false
	for _, name := range slices.Sorted(maps.Keys(inv.dirty)) {
		delete(inv.dirty, name)
		before := inv.stands[name]
		if before == nil {
			before = &stand{}
		}
		after, m := inv.evaluate(name, before)
		for i := range after.slices {
			if id := after.slices[i].ID; inv.told.noteClosures(id, after.closures[id]) {
				list = append(list, inventory.Sighting{Slice: id, Closures: slices.Clone(after.closures[id])})
			}
		}
		for i := range after.slices {
			if id := after.slices[i].ID; inv.told.noteFaults(id, after.faults[id]) {
				list = append(list, vitals(id, after.faults[id]))
			}
		}
		for i := range before.slices {
			id := before.slices[i].ID
			if _, there := after.pool[id]; there {
				continue
			}
			if inv.told.noteClosures(id, nil) {
				gone = append(gone, inventory.Sighting{Slice: id})
			}
			inv.told.noteFaults(id, nil) // its node forgets it as well
		}
		inv.told.machine(name, m, &news)
		restocked = restocked || !slices.Equal(before.slices, after.slices)
		if len(after.fell) > 0 {
			inv.fell[name] = true
		}
		if inv.stands[name] = after; len(after.slices) == 0 && len(after.leftOut) == 0 {
			delete(inv.stands, name)
		}
	}
	if restocked {
		inv.all = nil
		list = append(list, inventory.Sighting{Restocked: true})
	}
	inv.told.noteWaiters(inv.translator(), inv.opts.Now(), &news)
	return slices.Concat(list, inParts(&news), gone)
}

// translator translates what is known into the terms of core/reclaim.
func (inv *Inventory) translator() *translator { return &translator{&inv.sources, inv.opts.Pools} }

// evaluate computes a machine's slices and what others have of them, and its report to a node: nil if it offers nothing.
func (inv *Inventory) evaluate(name string, before *stand) (*stand, *reclaim.Machine) {
	m, _ := get[*machine](inv.nodes, name)
	if m == nil {
		return &stand{}, nil
	}
	s := inv.scene(m)
	if len(s.machine.pools) == 0 {
		return &stand{}, nil
	}
	inv.learn(s.pods)
	x := s.evaluate(before)
	if len(x.slices) == 0 && len(x.leftOut) == 0 {
		return x, nil
	}
	told := inv.translator().machine(s, x)
	return x, &told
}

// scene collects all that is known of a machine.
func (inv *Inventory) scene(m *machine) *scene {
	pooledMachine := *m
	pooledMachine.pools = poolsOf(inv.opts.Pools, m)
	s := &scene{machine: &pooledMachine, pools: inv.opts.Pools, pods: by[*pod](inv.pods, byMachine, m.Name)}
	s.pod = func(key string) *pod { t, _ := get[*pod](inv.pods, key); return t }
	s.limits, s.now = inv.limit, inv.opts.Now()
	s.class = inv.class
	s.likely = func(t *pod) quantity.Instant { return inv.lengths.Until(inv.opts.Now(), string(t.UID)) }
	seen := map[pooled]bool{}
	for _, o := range by[*resourceSlice](inv.resourceSlices, byMachine, m.Name) {
		if k := (pooled{o.driver, o.pool}); !seen[k] && inv.names(o.driver) {
			seen[k] = true
			key := k.driver + "/" + k.pool // a pool may span machines
			s.resourceSlices = append(s.resourceSlices, by[*resourceSlice](inv.resourceSlices, byPool, key)...)
			s.claims = append(s.claims, by[*claim](inv.claims, byPool, key)...)
		}
	}
	s.resourceSlices = inv.tainted(s.resourceSlices)
	return s
}

// mostReasons bounds the reported reasons.
const mostReasons = 3

// omissions says what is left out on all machines, of one pool or of all (""): "8 devices left out: ... (on w1 and 3 more machines)".
// Empty: nothing. inv.mu is held.
func (inv *Inventory) omissions(pool string) string {
	type reason struct {
		why, machine string
		n, machines  int
	}
	all, total := map[string]*reason{}, 0
	for _, machine := range slices.Sorted(maps.Keys(inv.stands)) {
		seen := map[string]bool{}
		for o, n := range inv.stands[machine].leftOut {
			if pool != "" && o.pool != pool {
				continue
			}
			r := all[o.why]
			if r == nil {
				r = &reason{why: o.why, machine: machine}
				all[o.why] = r
			}
			total += n
			if r.n += n; !seen[o.why] {
				seen[o.why] = true
				r.machines++
			}
		}
	}
	if total == 0 {
		return ""
	}
	var list []*reason
	for _, why := range slices.Sorted(maps.Keys(all)) {
		list = append(list, all[why])
	}
	slices.SortStableFunc(list, func(a, b *reason) int { return cmp.Compare(b.n, a.n) })
	var texts []string
	for _, r := range list[:min(len(list), mostReasons)] {
		text := fmt.Sprintf("%s (%d on %s", r.why, r.n, r.machine)
		if r.machines > 1 {
			text += fmt.Sprintf(" and %d more machines", r.machines-1)
		}
		texts = append(texts, text+")")
	}
	if more := len(list) - len(texts); more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more reasons", more))
	}
	return fmt.Sprintf("%d devices left out: %s", total, strings.Join(texts, "; "))
}

// LeftOut says which devices that a pool names are not offered, and why; empty: all of them are.
func (inv *Inventory) LeftOut(pool string) string {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	return inv.omissions(pool)
}
