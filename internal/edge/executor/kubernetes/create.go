//go:build kubernetes

package kubernetes

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/cluster"
	"sluice.dev/sluice/internal/edge/executor/shim/pod"
	"sluice.dev/sluice/internal/edge/store"
)

// create makes the Pod and then its claim, which names the Pod as its owner so that it is never left behind. Objects that exist already
// are from an earlier try.
func (r *run) create(v *view, now quantity.Instant) error {
	if v.want.order.Stop || now >= v.want.order.End {
		return r.withdraw(v, now)
	}
	if r.made == nil {
		if err := r.createPod(v, now); err != nil || r.made == nil {
			return err
		}
	}
	err := r.createClaim()
	if why, kind := r.refused(err, now); why != "" {
		r.giveUp(kind, why)
		return nil
	}
	r.whole, r.proven = err == nil, now
	return err
}

// withdraw handles a subjob that is not to start any more. Its Pod may exist though the answer to its creation was lost.
func (r *run) withdraw(v *view, now quantity.Instant) error {
	if !r.tried {
		r.said = r.never(v, now)
		return nil
	}
	if r.made == nil {
		p, err := r.get()
		if apierrors.IsNotFound(err) {
			r.said = r.never(v, now)
			return nil
		}
		if err != nil {
			return err
		}
		r.made = p
	}
	r.whole = true // and obey deletes it
	return nil
}

func (r *run) get() (*corev1.Pod, error) {
	return call(r.e, "get pod", func() (*corev1.Pod, error) {
		return r.e.o.Client.CoreV1().Pods(r.e.namespace(&r.rec)).Get(r.e.ctx, r.name(), metav1.GetOptions{})
	})
}

func (r *run) createPod(v *view, now quantity.Instant) error {
	if err := r.prepare(); err != nil {
		o := job.StartFailed
		if errkind.Of(err) != errkind.Invalid {
			o = job.NodeFailed
		}
		r.said = r.end(o, err.Error(), now)
		return nil
	}
	sealed, err := r.seal(now)
	if why, kind := r.refused(err, now); why != "" {
		if r.giveUp(kind, why); r.tried { // an earlier try may have made it after all
			r.whole = false
			return r.withdraw(v, now)
		}
		r.said = r.never(v, now)
		return nil
	}
	if err != nil {
		return err
	}
	want, err := r.makePod(sealed, now)
	if err != nil {
		return err
	}
	again := r.tried
	r.tried = true
	p, err := call(r.e, "create pod", func() (*corev1.Pod, error) {
		return r.e.o.Client.CoreV1().Pods(want.Namespace).Create(r.e.ctx, want, metav1.CreateOptions{})
	})
	if apierrors.IsAlreadyExists(err) {
		if p, err = r.get(); err == nil && !r.isOurs(p) {
			r.said = r.end(job.NodeFailed, "there is a Pod "+p.Namespace+"/"+p.Name+" that is not ours: delete it", now)
			return nil
		}
	}
	if why, kind := r.refused(err, now); why != "" {
		if r.giveUp(kind, why); again { // an earlier try may have made it after all
			r.whole = false
			return r.withdraw(v, now)
		}
		r.said = r.never(v, now)
		return nil
	}
	if err == nil {
		r.made, r.denied = slim(p), 0
	}
	return err
}

// isOurs reports whether an existing Pod is this subjob's, from an earlier try.
func (r *run) isOurs(p *corev1.Pod) bool {
	rec, err := r.e.recordOf(p)
	return err == nil && r.e.ours(p) && rec.Token == r.rec.Token && rec.same(&r.rec)
}

// prepare gathers what the Pod needs. Errors of kind Invalid are the job's, others the cluster's.
func (r *run) prepare() error {
	if err := check(r.work); err != nil {
		return err
	}
	return r.find()
}

// find reads the device that the slice stands for.
func (r *run) find() error {
	s, _ := r.e.o.Slice(r.rec.Slice)
	d, err := cluster.ParseDevice(s.Device)
	if err != nil {
		return errkind.Errorf(errkind.NotFound, "slice %s: %w", r.rec.Slice, err)
	}
	r.device = d
	return nil
}

// createClaim makes the claim for the Pod's device, under DRA.
func (r *run) createClaim() error {
	if r.device.Resource != "" {
		return nil
	}
	selector, err := r.e.selector(r.e.ctx, &r.device)
	if err != nil {
		return err
	}
	claim := r.makeClaim(r.made, selector)
	_, err = call(r.e, "create resourceclaim", func() (*resourcev1.ResourceClaim, error) {
		return r.e.o.Client.ResourceV1().ResourceClaims(claim.Namespace).Create(r.e.ctx, claim, metav1.CreateOptions{})
	})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// seal makes the run file, encrypted for this Pod with the namespace's key.
func (r *run) seal(now quantity.Instant) (string, error) {
	file := r.makeRun(r.asked)
	if err := r.lend(file, now); err != nil {
		return "", err
	}
	key, err := r.e.key(r.e.ctx, r.e.namespace(&r.rec))
	if err != nil {
		return "", err
	}
	return pod.Seal(&key, r.name(), file)
}

// lend fills in presigned URLs of the subjob's own objects. They expire when nothing of it can run any more, and after mostLent at the
// latest.
func (r *run) lend(f *pod.Run, now quantity.Instant) (err error) {
	ctx, lender := r.e.ctx, r.e.lender
	ends := mostLent
	if until := latest(nil, r.rec.End, &r.e.o); until != quantity.Never {
		ends = min(ends, until.Sub(now)+r.rec.Grace+r.e.o.Linger)
	}
	give := func(d store.Digest, most int64) (*pod.Source, error) {
		url, failed := lender.LendGet(ctx, d, ends)
		return &pod.Source{URL: url, Digest: d, Bytes: most}, failed
	}
	if id := r.work.Spec.Launch.Snapshot; id != "" {
		if f.Work, err = give(store.Digest(id), r.e.o.SnapshotLimit); err != nil {
			return err
		}
	}
	if t := r.rec.Resume; !t.Zero() {
		var d store.Digest
		if d, err = r.e.checkpoint(r.rec.Job, t); err != nil {
			return err
		}
		if f.Resume, err = give(d, f.OutputLimit); err != nil {
			return err
		}
	}
	for role, url := range map[string]*string{outputRole: &f.Output, checkpointRole: &f.Checkpoint, progressPlace: &f.Progress} {
		if *url, err = lender.LendPut(ctx, r.place(role), ends); err != nil {
			return err
		}
	}
	return nil
}

// checkpoint finds the one that a subjob of a job left. NotFound: none is in the store.
func (e *Executor) checkpoint(j job.ID, t job.Token) (d store.Digest, err error) {
	ctx, cancel := context.WithTimeout(e.ctx, tidying) // includes the wait for a turn, during which a stop would go unheard
	defer cancel()
	err = e.atStore(ctx, tidying, func(ctx context.Context) error {
		return e.o.Store.Names(ctx, e.jobNames(j), func(n store.Named) error {
			if path.Base(n.Name) == t.String() {
				d = cmp.Or(n.Refs[checkpointRole], d)
			}
			return nil
		})
	})
	if err == nil && d == "" {
		err = errkind.Errorf(errkind.NotFound, "the checkpoint of subjob %v is not in the store", t)
	}
	return d, err
}

// prove makes sure that a Pod that has not begun can begin: that its claim and keys exist. On an error that is not known.
func (r *run) prove(ctx context.Context) error {
	p := r.view().pod
	if p == nil || sealedIn(p) {
		if err := r.e.haveKeys(ctx, r.e.namespace(&r.rec)); errkind.Of(err) == errkind.NotFound {
			r.giveUp(errkind.NotFound, err.Error())
			return nil
		} else if err != nil {
			return err
		}
	}
	if p == nil || p.Spec.NodeName != "" || len(p.Spec.ResourceClaims) == 0 { // a bound Pod has its claim
		return nil
	}
	if err := r.find(); err != nil { // the inventory may not know the slice yet
		return err
	}
	err := r.createClaim()
	if why, kind := r.refused(err, r.e.now()); why != "" {
		r.giveUp(kind, why)
		return nil
	}
	return err
}

// A claim's CEL sees a device's driver, attributes and capacities, but neither its name nor its pool. So a device is selected by
// everything its ResourceSlice says of it, which is unique on its machine as long as the driver publishes something unique for each device
// (ADR 0051). Slices are cached, so that a subjob costs no call for them.

// remembered is how long a machine's ResourceSlices are cached.
const remembered = time.Minute

// selector is the CEL expression that selects a device. NotFound: no ResourceSlice has it.
func (e *Executor) selector(ctx context.Context, d *cluster.Device) (string, error) {
	key := d.Driver + "/" + d.Node
	e.mu.Lock()
	k, ok := e.devices[key]
	e.mu.Unlock()
	if text, found := k.selector(d); ok && found && e.o.Clock().Sub(k.at) < remembered {
		return text, nil
	}
	list, err := call(e, "list resourceslices", func() (*resourcev1.ResourceSliceList, error) {
		on := fields.SelectorFromSet(fields.Set{resourcev1.ResourceSliceSelectorNodeName: d.Node,
			resourcev1.ResourceSliceSelectorDriver: d.Driver})
		return e.o.Client.ResourceV1().ResourceSlices().List(ctx, metav1.ListOptions{FieldSelector: on.String()})
	})
	if err != nil {
		return "", err
	}
	k = known{at: e.o.Clock()}
	for i := range list.Items {
		s := &list.Items[i].Spec
		for j := range s.Devices {
			if s.Driver == d.Driver {
				k.devices = append(k.devices, described{s.Pool.Name, s.Devices[j]})
			}
		}
	}
	e.mu.Lock()
	e.devices[key] = k
	e.mu.Unlock()
	text, found := k.selector(d)
	if !found {
		return "", errkind.Errorf(errkind.NotFound, "no ResourceSlice of %s on %s has a device %s in pool %s", d.Driver, d.Node, d.Name,
			d.Pool)
	}
	return text, nil
}

// selector finds a device and describes it.
func (k *known) selector(d *cluster.Device) (string, bool) {
	i := slices.IndexFunc(k.devices, func(x described) bool { return x.pool == d.Pool && x.Name == d.Name })
	if i < 0 {
		return "", false
	}
	return describe(d.Driver, &k.devices[i].Device), true
}

// describe makes an expression that is true of a device and of no other that differs in an attribute or capacity.
func describe(driver string, d *resourcev1.Device) string {
	var parts []string
	// The test for the key comes first: on a device without it the comparison would be an error, and fail the Pod's scheduling.
	add := func(of, name, is string, args ...any) {
		domain, word, ok := strings.Cut(name, "/")
		if !ok { // a name without a domain is in the driver's
			domain, word = driver, name
		}
		folder := fmt.Sprintf("device.%s[%q]", of, domain)
		parts = append(parts, fmt.Sprintf("%q in %s && %s[%q]", word, folder, folder, word)+fmt.Sprintf(is, args...))
	}
	for name, a := range d.Attributes {
		switch {
		case a.StringValue != nil:
			add("attributes", string(name), " == %q", *a.StringValue)
		case a.IntValue != nil:
			add("attributes", string(name), " == %d", *a.IntValue)
		case a.BoolValue != nil:
			add("attributes", string(name), " == %t", *a.BoolValue)
		case a.VersionValue != nil:
			add("attributes", string(name), ".compareTo(semver(%q)) == 0", *a.VersionValue)
		}
	}
	for name, c := range d.Capacity {
		add("capacity", string(name), ".compareTo(quantity(%q)) == 0", c.Value.String())
	}
	slices.Sort(parts)
	return strings.Join(append([]string{"device.driver == " + strconv.Quote(driver)}, parts...), " && ")
}
