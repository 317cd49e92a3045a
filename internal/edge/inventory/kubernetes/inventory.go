//go:build kubernetes

package kubernetes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/health"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	giveback "sluice.dev/sluice/internal/core/reclaim"
	"sluice.dev/sluice/internal/edge/cluster"
	"sluice.dev/sluice/internal/edge/inventory"
)

// Options of an inventory.
type Options struct {
	Client kubernetes.Interface
	// Dynamic watches Kueue's objects; nil: Kueue is not looked at.
	Dynamic dynamic.Interface
	// Operator and Journal are the labels of our own Pods and claims. Those of another journal of this operator count as somebody else's.
	Operator, Journal string
	// Key is the journal's secret, and Made when it was made: a Pod is ours only if its record is sealed with Key, or is older than Made and has no seal, since anybody can copy
	// labels. Empty: labels are trusted.
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

// Inventory lists a cluster's slices and what others hold of them. It only reads from the API server; while that is away the last state it sent stands.
type Inventory struct {
	opts   Options
	slim   slimmer
	cancel context.CancelFunc
	done   sync.WaitGroup
	sources

	mu    sync.Mutex
	dirty map[string]bool
	wake  chan struct{}
	// stands is the last evaluation of each machine; all is their slices by ID, nil until Slices lists them anew. told is what was last reported of others' holds.
	stands map[string]*stand
	all    []protocol.Slice
	told   map[job.SliceID][]protocol.Reservation
	// ailing is what was last reported of the GPUs of slices, where anything was.
	ailing map[job.SliceID][]health.State
	away   silences
	// lengths remembers how long others' Pods ran, by owner, to estimate ends that nobody states.
	lengths lengths
	// fell are machines whose extended resources dropped a moment ago, as when a device plugin restarts: their slices are closed, not removed.
	fell map[string]bool
	// reclaims are the places kept for others' Pods that wait; costs estimates what stopping subjobs loses, nil until Reckon.
	reclaims reclaims
	costs    func([]job.SliceID) map[job.SliceID]giveback.Cost
}

var (
	_ inventory.Inventory = (*Inventory)(nil)
	_ inventory.Live      = (*Inventory)(nil)
)

// Open starts to watch a cluster and returns when all but Kueue's objects is known; for those it waits Patience at most. Errors are of kind Invalid (the options), or
// Unavailable if the API server failed the first request or did not answer before ctx ended.
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
	o.Settle, o.Patience, o.absent, o.Pools = cmp.Or(o.Settle, 200*time.Millisecond), cmp.Or(o.Patience, 10*time.Second), cmp.Or(o.absent, time.Minute), withDefaults(o.Pools)
	inv := &Inventory{
		opts: o, slim: slimmer{operator: o.Operator, journal: o.Journal, key: o.Key, made: o.Made}, dirty: map[string]bool{}, wake: make(chan struct{}, 1), stands: map[string]*stand{},
		told: map[job.SliceID][]protocol.Reservation{}, ailing: map[job.SliceID][]health.State{}, reclaims: newReclaims(), lengths: newLengths(),
		fell: map[string]bool{},
	}
	if err := inv.connect(ctx); err != nil {
		return nil, errors.Join(err, inv.Close())
	}
	inv.look(nil)
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

// Held is what others hold of slices, and what is said of their GPUs, as of Watch's last report, or as of Open.
func (inv *Inventory) Held() (list []inventory.Sighting) {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	for id, holds := range inv.told {
		if len(holds) > 0 {
			list = append(list, inventory.Sighting{Slice: id, Holds: slices.Clone(holds)})
		}
	}
	slices.SortFunc(list, func(a, b inventory.Sighting) int { return cmp.Compare(a.Slice, b.Slice) })
	for _, id := range sortedKeys(inv.ailing) {
		list = append(list, sick(id, inv.ailing[id]))
	}
	return list
}

// GPUs is one name, of operator and journal: two processes of one journal are refused on one machine, while operators of one name for two clusters are not, as their journals
// differ. Processes on two machines are kept apart by the operator's lease.
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
		text += fmt.Sprintf("; the API server is away since %s, and what it said last stands: %s", since.UTC().Format(time.RFC3339), strings.ReplaceAll(err.Error(), "\n", " "))
	}
	return text
}

// Away is since when watching the API server fails, and why. The error is nil while it works.
func (inv *Inventory) Away() (since time.Time, err error) {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	return inv.away.since()
}

// Watch reports changes of slices and of others' holds until ctx ends. It ignores its second argument: Pods have no process on this machine to ask about.
func (inv *Inventory) Watch(ctx context.Context, _ func(job.SliceID, int) bool, report func(inventory.Sighting)) error {
	ails := false
	for {
		if since, err := inv.Away(); (err != nil && time.Since(since) > blind) != ails && ctx.Err() == nil {
			ails = !ails
			a := &protocol.Ailment{Ails: ails}
			if ails {
				a.Text = "who holds what in the cluster is not known any more: " + err.Error()
			}
			report(inventory.Sighting{Ailment: a})
		}
		select {
		case <-ctx.Done():
			return nil
		case <-inv.wake:
		case <-time.After(again): // places kept for Pods that never come expire without an event
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(inv.opts.Settle):
		}
		inv.look(func(s inventory.Sighting) {
			if ctx.Err() == nil {
				report(s)
			}
		})
	}
}

// blind is how long the API server may be away before nothing is started any more: by then the holds may have changed.
const blind = time.Minute

// again is how often kept places are reviewed where nothing changes.
const again = 10 * time.Second

// Close stops watching. It may be called twice.
func (inv *Inventory) Close() error {
	inv.cancel()
	inv.done.Wait()
	return nil
}

// Reckon sets how to estimate what stopping the subjobs on a machine's slices loses. IDs are without the operator's prefix. For a slice that is missing from the answer
// all that its Pod has done counts as lost. costs is called with the lock held: it must be quick and must not call the inventory.
func (inv *Inventory) Reckon(costs func([]job.SliceID) map[job.SliceID]giveback.Cost) {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	inv.costs = costs
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

// look decides which places are kept, evaluates dirty machines, and reports in this order: changed holds of slices that exist, that the list of slices has changed, and last
// that slices which are gone are held no more. A nil report: it decides nothing and reports nothing. So
// nothing is started on a slice that looks free only because it is gone.
func (inv *Inventory) look(report func(inventory.Sighting)) {
	inv.mu.Lock()
	var changed, gone, sick []inventory.Sighting
	restocked := false
	say := func(id job.SliceID, holds []protocol.Reservation, to *[]inventory.Sighting) {
		if !reflect.DeepEqual(inv.told[id], holds) && len(inv.told[id])+len(holds) > 0 {
			*to = append(*to, inventory.Sighting{Slice: id, Holds: slices.Clone(holds)})
		}
		if inv.told[id] = holds; len(holds) == 0 {
			delete(inv.told, id)
		}
	}
	for name := range inv.fell { // what is closed for a moment is looked at again
		inv.dirty[name] = true
	}
	clear(inv.fell)
	if report != nil {
		for _, m := range inv.decide(inv.opts.Now()) {
			inv.dirty[m] = true
		}
	}
	for name := range inv.dirty {
		before := inv.stands[name]
		after := inv.evaluate(name, before)
		if after == nil {
			after = &stand{}
		}
		delete(inv.dirty, name)
		for i := range after.slices {
			say(after.slices[i].ID, after.holds[after.slices[i].ID], &changed)
		}
		sick = append(sick, inv.ails(before, after)...)
		var old []protocol.Slice
		if before != nil {
			old = before.slices
		}
		for i := range old {
			if _, there := after.pool[old[i].ID]; !there {
				say(old[i].ID, nil, &gone)
			}
		}
		restocked = restocked || !slices.Equal(old, after.slices)
		if len(after.fell) > 0 {
			inv.fell[name] = true
		}
		if inv.stands[name] = after; len(after.slices) == 0 && len(after.leftOut) == 0 {
			delete(inv.stands, name)
		}
	}
	if restocked {
		inv.all = nil
	}
	inv.mu.Unlock()
	if report == nil {
		return
	}
	tell := func(list []inventory.Sighting) {
		slices.SortFunc(list, func(a, b inventory.Sighting) int { return cmp.Compare(a.Slice, b.Slice) })
		for _, s := range list {
			report(s)
		}
	}
	tell(changed)
	for _, s := range sick {
		report(s)
	}
	if restocked {
		report(inventory.Sighting{Restocked: true})
	}
	tell(gone)
}

// evaluate computes a machine's slices and holds; nil if it is not there or of no pool.
func (inv *Inventory) evaluate(name string, before *stand) *stand {
	m, _ := get[*machine](inv.nodes, name)
	if m == nil {
		return nil
	}
	s := inv.scene(m)
	if len(s.machine.pools) == 0 {
		return nil
	}
	inv.learn(s.tenants)
	return s.evaluate(before)
}

// scene collects all that is known of a machine.
func (inv *Inventory) scene(m *machine) *scene {
	pooledMachine := *m
	pooledMachine.pools = poolsOf(inv.opts.Pools, m)
	s := &scene{machine: &pooledMachine, gives: inv.reclaims.on(m.Name), pools: inv.opts.Pools, tenants: by[*tenant](inv.pods, byMachine, m.Name)}
	s.pod = func(key string) *tenant { t, _ := get[*tenant](inv.pods, key); return t }
	s.limits, s.now = inv.limit, inv.opts.Now()
	s.class = inv.class
	s.likely = func(t *tenant) quantity.Instant { return inv.lengths.until(inv.opts.Now(), t.UID) }
	seen := map[pooled]bool{}
	for _, o := range by[*offer](inv.offers, byMachine, m.Name) {
		if k := (pooled{o.driver, o.pool}); !seen[k] && inv.names(o.driver) {
			seen[k] = true
			s.offers = append(s.offers, by[*offer](inv.offers, byPool, k.driver+"/"+k.pool)...) // a pool may span machines
			s.claims = append(s.claims, by[*claim](inv.claims, byPool, k.driver+"/"+k.pool)...)
		}
	}
	s.offers = inv.tainted(s.offers)
	return s
}

// class finds a DeviceClass by its name; false: it was not seen.
func (inv *Inventory) class(name string) (*class, bool) { return get[*class](inv.classes, name) }

// limit is until when an owner lets its Pods run at most: by its own deadline (a Job), its Workload's, or the Workload of what owns it (a JobSet).
func (inv *Inventory) limit(of types.UID) quantity.Instant {
	end, parent := quantity.Never, types.UID("")
	for _, source := range []cache.SharedIndexInformer{inv.jobs, inv.workloads} {
		for _, l := range by[*limit](source, byOwner, string(of)) {
			end, parent = min(end, l.end), first(parent, l.parent)
		}
	}
	if parent != "" {
		for _, l := range by[*limit](inv.workloads, byOwner, string(parent)) {
			end = min(end, l.end)
		}
	}
	return end
}
