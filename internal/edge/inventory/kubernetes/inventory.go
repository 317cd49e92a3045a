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
	"sluice.dev/sluice/internal/core/giveback"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/cluster"
	"sluice.dev/sluice/internal/edge/inventory"
)

// Options of an inventory.
type Options struct {
	Client kubernetes.Interface
	// Dynamic looks at Kueue's objects; nil: nobody does.
	Dynamic dynamic.Interface
	// Operator is whose Pods and claims are ours, by their label, where they are of its Journal too: what is left of another one is somebody else's.
	Operator, Journal string
	// Key is the secret that goes with the journal, made at an instant: a Pod is ours if what it says of itself is sealed with it. Empty: its labels are believed.
	Key  []byte
	Made time.Time
	// Pools that are offered at first; a machine's device is of the first that names it. None: nothing is.
	Pools []Pool
	Log   *slog.Logger
	// Now is the clock of the machine; nil: its own.
	Now func() quantity.Instant
	// Settle is how long changes are gathered before they are looked at. Default 200 ms.
	Settle time.Duration
	// Patience is how long is waited at the start for what the cluster may do without (Kueue's Workloads). Default 10 s.
	Patience time.Duration
	// absent is how often a cluster without Kueue is asked whether it has it by now. Default 1 min.
	absent time.Duration
}

// Inventory is the slices of a cluster. It looks at what the API server says, and never changes anything there. While the API server is away the last state
// stands.
type Inventory struct {
	opts   Options
	slim   slimmer
	cancel context.CancelFunc
	done   sync.WaitGroup
	sources

	mu    sync.Mutex
	dirty map[string]bool
	wake  chan struct{}
	// stands are what came of each machine, all their slices in order of id; nil: they are to be listed. told is what was said of others.
	stands map[string]*stand
	all    []protocol.Slice
	told   map[job.SliceID][]protocol.Reservation
	away   silences
	// lengths are how long Pods of others ran.
	lengths lengths
	// fell are machines that have fewer of something than a moment ago.
	fell map[string]bool
	// reclaims are what is given back to whoever waits; costs says what that costs, nil: nobody does.
	reclaims reclaims
	costs    func([]job.SliceID) map[job.SliceID]giveback.Cost
}

var (
	_ inventory.Inventory = (*Inventory)(nil)
	_ inventory.Live      = (*Inventory)(nil)
)

// Open looks at a cluster; it returns when all of it is known. Errors are of kind Invalid (the options), or Unavailable where the API server did not answer before
// ctx was done.
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
		told: map[job.SliceID][]protocol.Reservation{}, reclaims: newReclaims(), lengths: newLengths(), fell: map[string]bool{},
	}
	if err := inv.connect(ctx); err != nil {
		return nil, errors.Join(err, inv.Close())
	}
	inv.look(nil)
	return inv, nil
}

// Slices lists those that there were when Watch reported last, or Open returned.
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

// Held is what others hold of slices, as Watch has reported it, or Open has found it.
func (inv *Inventory) Held() (list []inventory.Sighting) {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	for id, holds := range inv.told {
		if len(holds) > 0 {
			list = append(list, inventory.Sighting{Slice: id, Holds: slices.Clone(holds)})
		}
	}
	slices.SortFunc(list, func(a, b inventory.Sighting) int { return cmp.Compare(a.Slice, b.Slice) })
	return list
}

// GPUs is one name for all of them: two operators of one journal on one machine are refused, while those of two clusters may have one name there. That two machines do
// not run one is what its lease in the cluster is for.
func (inv *Inventory) GPUs() []string {
	return []string{"kubernetes-" + cluster.Owner(inv.opts.Operator, inv.opts.Journal)}
}

// Describe says what there is, what was left out, and since when the API server is silent.
func (inv *Inventory) Describe() string {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	n, machines, leftOut, why := 0, 0, 0, ""
	for _, x := range inv.stands {
		n, leftOut, why = n+len(x.slices), leftOut+x.leftOut, max(why, x.why)
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
	if leftOut > 0 {
		text += fmt.Sprintf("; %d devices left out: %s", leftOut, why)
	}
	if since, err := inv.away.since(); err != nil {
		text += fmt.Sprintf("; the API server is away since %s, and what it said last stands: %s", since.UTC().Format(time.RFC3339), strings.ReplaceAll(err.Error(), "\n", " "))
	}
	return text
}

// Away is since when the API server can't be listened to, and why; a nil error: it can.
func (inv *Inventory) Away() (since time.Time, err error) {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	return inv.away.since()
}

// Watch reports what changes of slices, and of what others hold of them, until ctx ends. Pods have no process that could be looked at here.
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
		case <-time.After(again): // what is kept for somebody who does not come is not kept for ever
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

// blind is after how long without a word of the API server nothing is started any more: who holds what may be another by then.
const blind = time.Minute

// again is after how long it is looked whether places are still to be kept, if nothing changes.
const again = 10 * time.Second

// Close stops listening. It may be called twice.
func (inv *Inventory) Close() error {
	inv.cancel()
	inv.done.Wait()
	return nil
}

// Reckon has it ask what it costs to stop what runs on slices (without the operator's name in front), a machine's at a time. Of what is not in the answer all that its Pod
// has done is taken to be lost. costs must answer soon, and call nothing of the inventory.
func (inv *Inventory) Reckon(costs func([]job.SliceID) map[job.SliceID]giveback.Cost) {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	inv.costs = costs
}

// touch notes that something of a machine has changed.
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

// rouse has Watch look.
func (inv *Inventory) rouse() {
	select {
	case inv.wake <- struct{}{}:
	default: // it is awake
	}
}

// look evaluates the machines that have changed, and reports what came of it: what others hold first, then that there are other slices, and then of those
// that are gone that nobody holds them.
func (inv *Inventory) look(report func(inventory.Sighting)) {
	inv.mu.Lock()
	var changed, gone []inventory.Sighting
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
		if inv.stands[name] = after; len(after.slices) == 0 && after.leftOut == 0 {
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
	if restocked {
		report(inventory.Sighting{Restocked: true})
	}
	tell(gone) // nothing is to begin on a slice that is not there, because nobody holds it any more
}

// evaluate says what is on a machine now; nil: it is not there, or of no pool.
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

// scene is all that is known of a machine.
func (inv *Inventory) scene(m *machine) *scene {
	pooledMachine := *m
	pooledMachine.pools = poolsOf(inv.opts.Pools, m)
	s := &scene{machine: &pooledMachine, gives: inv.reclaims.on(m.Name), pools: inv.opts.Pools, tenants: by[*tenant](inv.pods, byMachine, m.Name)}
	s.pod = func(key string) *tenant { t, _ := get[*tenant](inv.pods, key); return t }
	s.limits, s.now = inv.limit, inv.opts.Now()
	s.likely = func(t *tenant) quantity.Instant { return inv.lengths.until(inv.opts.Now(), t.UID) }
	seen := map[pooled]bool{}
	for _, o := range by[*offer](inv.offers, byMachine, m.Name) {
		if k := (pooled{o.driver, o.pool}); !seen[k] && inv.names(o.driver) {
			seen[k] = true
			s.offers = append(s.offers, by[*offer](inv.offers, byPool, k.driver+"/"+k.pool)...) // not all parts need be of this machine
			s.claims = append(s.claims, by[*claim](inv.claims, byPool, k.driver+"/"+k.pool)...)
		}
	}
	return s
}

// limit is until when an owner lets its Pods run: a Job by itself, Kueue's Workload of it, or what owns the Job (a JobSet) and its Workload.
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
