//go:build kubernetes

package operator

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	core "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/edge/cluster"
	"sluice.dev/sluice/internal/edge/config"
	"sluice.dev/sluice/internal/face/api"
	"sluice.dev/sluice/internal/face/api/apitest"
	"sluice.dev/sluice/internal/host"
)

// What nothing else here would see if it were wrong, as bugs that were planted have shown.

// modelled is a daemon that has jobs, and notes what it was asked.
type modelled struct {
	mu     sync.Mutex
	has    map[job.ID]status.Job
	queues []status.Queue
	// holds: something runs still, so that nothing is deleted.
	holds bool
	asked []string
}

func (d *modelled) note(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked = append(d.asked, fmt.Sprintf(format, args...))
}

func (d *modelled) said(what string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Contains(d.asked, what)
}

func (d *modelled) SubmitAll(_ context.Context, jobs []host.Submission, _ []byte) []host.Outcome {
	d.note("submit %s", jobs[0].Spec.Name)
	return make([]host.Outcome, len(jobs))
}

func (d *modelled) Cancel(_ context.Context, _ string, id job.ID) error {
	d.note("cancel %s", id)
	return nil
}

func (d *modelled) Delete(_ context.Context, _ string, id job.ID) error {
	if d.note("delete %s", id); d.holds {
		return errkind.Errorf(errkind.Conflict, "something runs")
	}
	return nil
}

func (d *modelled) Standing(_ context.Context, names []job.ID) ([]status.Job, error) {
	j, known := d.has[names[0]]
	if !known {
		return nil, errkind.Errorf(errkind.NotFound, "no such job")
	}
	return []status.Job{j}, nil
}

func (d *modelled) Jobs(context.Context, status.JobQuery) (page status.JobPage, _ error) {
	for id := range d.has {
		j := d.has[id]
		j.Name = id
		page.Jobs = append(page.Jobs, j)
	}
	return page, nil
}

func (d *modelled) Queues(context.Context) ([]status.Queue, error) { return d.queues, nil }

func (d *modelled) SetQueue(_ context.Context, _ string, q protocol.Queue) error {
	d.note("queue %s %d", q.Name, q.Weight)
	return nil
}

func (d *modelled) Changes() (*host.Changes, func()) { return &host.Changes{}, func() {} }

// driven is a controller of one Job over a modelled daemon, and every patch that it asked for. refuses is what patches are answered.
func driven(d daemon, refuses error, objects ...*object) (c *controller, patches func() []string) {
	lists := map[schema.GroupVersionResource]string{jobs: "JobList", queues: "QueueList", slicePools: "SlicePoolList"}
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), lists)
	var mu sync.Mutex
	var all []string
	client.PrependReactor("patch", "*", func(a core.Action) (bool, runtime.Object, error) {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, string(a.(core.PatchActionImpl).Patch))
		if len(objects) == 0 {
			return true, &object{}, refuses
		}
		return true, objects[0].DeepCopy(), refuses
	})
	c = newController(d, client, record.NewFakeRecorder(100), "main", "", offers{}, slog.New(slog.DiscardHandler))
	for _, o := range objects {
		of := c.jobs
		switch o.GetKind() {
		case config.QueueKind:
			of = c.queues
		case config.SlicePoolKind:
			of = c.pools
		}
		if err := of.GetStore().Add(o); err != nil {
			panic(err)
		}
	}
	return c, func() []string { mu.Lock(); defer mu.Unlock(); return slices.Clone(all) }
}

func anObject(kind, namespace, name string, spec map[string]any) *object {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "sluice.dev/v1alpha1", "kind": kind, "spec": spec}}
	o.SetNamespace(namespace)
	o.SetName(name)
	o.SetUID(types.UID("uid-" + name))
	o.SetResourceVersion("41")
	o.SetGeneration(1)
	return o
}

func aJob(name string) *object {
	return anObject(config.JobKind, "team", name, map[string]any{"items": map[string]any{"total": int64(10), "perItem": "1ms"},
		"memory": "64Mi", "image": "x", "command": []any{"true"}})
}

// TestWhatIsOverIsNotRunAgain: the daemon has forgotten the job, and its object says how it ended.
func TestWhatIsOverIsNotRunAgain(t *testing.T) {
	for _, kind := range []string{complete, failed} {
		o, d := aJob("over"), &modelled{}
		o.SetAnnotations(map[string]string{cluster.AnnotationOwner: "main"})
		o.SetFinalizers([]string{holding})
		o.Object["status"] = map[string]any{"state": "COMPLETED", "operator": "main",
			"conditions": []any{map[string]any{"type": kind, "status": "True", "reason": "x", "observedGeneration": int64(1)}}}
		c, _ := driven(d, nil, o)
		if _, err := c.turn(t.Context(), "team/over"); err != nil || len(d.asked) > 0 {
			t.Errorf("%s: %v, asked %q", kind, err, d.asked)
		}
	}
	d := &modelled{}
	c, _ := driven(d, nil, aJob("new"))
	if _, err := c.turn(t.Context(), "team/new"); err != nil || !d.said("submit team.new") {
		t.Errorf("a new one: %v, asked %q", err, d.asked)
	}
}

// TestWhereNoPodMayBeNoJobIsTaken: a job whose Pods the operator's roles do not allow would hold slices and never start.
func TestWhereNoPodMayBeNoJobIsTaken(t *testing.T) {
	for want, writable := range map[bool][]string{true: {"other", "team"}, false: {"other"}} {
		d := &modelled{}
		c, patches := driven(d, nil, aJob("new"))
		c.writable = writable
		if _, err := c.turn(t.Context(), "team/new"); err != nil || d.said("submit team.new") != want {
			t.Errorf("%v: %v, asked %q", writable, err, d.asked)
		}
		if said := strings.Join(patches(), "\n"); !want && !strings.Contains(said, "may run Pods only in other") {
			t.Errorf("the object is not told: %s", said)
		}
	}
}

// TestAnObjectStaysWhileItsJobRuns, and goes with our finalizer alone: others have theirs, also those that were put there meanwhile.
func TestAnObjectStaysWhileItsJobRuns(t *testing.T) {
	o, d := aJob("gone"), &modelled{has: map[job.ID]status.Job{"team.gone": {}}, holds: true}
	o.SetAnnotations(map[string]string{cluster.AnnotationOwner: "main"})
	o.SetFinalizers([]string{"others/one", holding})
	o.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)})
	c, patches := driven(d, nil, o)
	if after, err := c.turn(t.Context(), "team/gone"); err != nil || after == 0 || len(patches()) > 0 || !d.said("cancel team.gone") {
		t.Errorf("while it runs: again after %v, %v, patches %q, asked %q", after, err, patches(), d.asked)
	}
	d.holds = false
	after, err := c.turn(t.Context(), "team/gone")
	const want = `[{"op":"test","path":"/metadata/resourceVersion","value":"41"},{"op":"replace","path":"/metadata/finalizers","value":["others/one"]}]`
	if got := patches(); err != nil || after != 0 || len(got) != 1 || got[0] != want {
		t.Errorf("then: %v, %v, patches %q, want %s", after, err, got, want)
	}
}

// TestWhoTakesAJobHasReadIt: the API server gives it to the first of several, and who was not does nothing more.
func TestWhoTakesAJobHasReadIt(t *testing.T) {
	d := &modelled{}
	c, patches := driven(d, apierrors.NewConflict(jobs.GroupResource(), "new", nil), aJob("new"))
	if _, err := c.turn(t.Context(), "team/new"); !apierrors.IsConflict(err) || len(d.asked) > 0 {
		t.Errorf("%v, asked %q", err, d.asked)
	}
	var asked struct{ Metadata metav1.ObjectMeta }
	if err := json.Unmarshal([]byte(patches()[0]), &asked); err != nil || len(patches()) != 1 {
		t.Fatal(patches(), err)
	}
	if m := asked.Metadata; m.ResourceVersion != "41" || m.UID != "uid-new" || !slices.Equal(m.Finalizers, []string{holding}) ||
		m.Annotations[cluster.AnnotationOwner] != "main" {
		t.Errorf("%+v", m)
	}
}

// TestAJobWithoutItsObjectEnds, though that went while nobody looked, and finalizers with it.
func TestAJobWithoutItsObjectEnds(t *testing.T) {
	d := &modelled{has: map[job.ID]status.Job{"team.torn": {}, "plain": {}}}
	c, _ := driven(d, nil)
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { over <- c.run(ctx) }()
	for deadline := time.Now().Add(time.Minute); !d.said("delete team.torn"); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Error("it goes on for ever")
			break
		}
	}
	cancel()
	if err := <-over; err != nil || !d.said("cancel team.torn") || d.said("cancel plain") {
		t.Errorf("%v, asked %q", err, d.asked)
	}
}

// TestAQueueThatCanNotBeReadKeepsWhatItHad, and one without an object does not.
func TestAQueueThatCanNotBeReadKeepsWhatItHad(t *testing.T) {
	d := &modelled{queues: []status.Queue{{Queue: protocol.Queue{Name: "odd", Weight: 3}},
		{Queue: protocol.Queue{Name: "gone", Weight: 3}}}}
	c, _ := driven(d, nil, anObject(config.QueueKind, "", "odd", map[string]any{"weight": "much"}),
		anObject(config.QueueKind, "", "new", map[string]any{"weight": int64(5)}))
	if err := c.setQueues(t.Context()); err != nil {
		t.Fatal(err)
	}
	if slices.Sort(d.asked); !slices.Equal(d.asked, []string{"queue gone 1", "queue new 5"}) {
		t.Errorf("it was asked %q", d.asked)
	}
}

// TestPoolsThatWereNotTakenAreOfferedAgain: what the inventory could not do now it is asked for the next time.
func TestPoolsThatWereNotTakenAreOfferedAgain(t *testing.T) {
	c, _ := driven(&modelled{}, nil, anObject(config.SlicePoolKind, "", "p",
		map[string]any{"extendedResources": []any{map[string]any{"name": "nvidia.com/gpu"}}}))
	offered := 0
	c.offers.set = func(list []config.SlicePool) error {
		if offered++; offered == 1 {
			return errkind.Errorf(errkind.Unavailable, "not now")
		}
		return nil
	}
	for i, want := range []int{1, 2, 2} {
		if _, err := c.lookAtPools(t.Context()); (err != nil) != (i == 0) || offered != want {
			t.Errorf("look %d: %v, offered %d times, want %d", i+1, err, offered, want)
		}
	}
}

// TestAPoolSaysWhatIsLeftOut: an administrator who describes it sees why devices that are there are not used, and when that is over.
func TestAPoolSaysWhatIsLeftOut(t *testing.T) {
	c, patches := driven(&modelled{}, nil, anObject(config.SlicePoolKind, "", "p",
		map[string]any{"extendedResources": []any{map[string]any{"name": "nvidia.com/gpu"}}}))
	why := "8 devices left out: nvidia.com/gpu is shared (mps, 4 Pods to a device) (8 on w)"
	c.offers.set = func([]config.SlicePool) error { return nil }
	c.offers.leftOut = func(pool string) string { return map[string]string{"p": why}[pool] }
	for i, want := range []string{`"its devices are offered when nobody else has them; ` + why + `"`,
		`"its devices are offered when nobody else has them"`} {
		if _, err := c.lookAtPools(t.Context()); err != nil {
			t.Fatal(err)
		}
		if all := patches(); len(all) != i+1 || !strings.Contains(all[i], want) || !strings.Contains(all[i], `"status":"True"`) {
			t.Errorf("it says %q, want %s", all, want)
		}
		why = ""
	}
	if after, err := c.lookAtPools(t.Context()); after != lookAgain || err != nil {
		t.Errorf("it is looked at again after %v: %v", after, err)
	}
}

// TestALeaseOfAnotherIsNotGivenBack: it was lost before, and who has it works.
func TestALeaseOfAnotherIsNotGivenBack(t *testing.T) {
	for holder, want := range map[string]string{"me": "", "another": "another"} {
		client := fake.NewClientset(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: leaseName("main")},
			Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder}})
		l := &lease{client: client, o: &Options{Name: "main", Namespace: "ns", Identity: "me"}, log: slog.New(slog.DiscardHandler),
			giveUp: func() {}}
		l.leave()
		now, err := client.CoordinationV1().Leases("ns").Get(t.Context(), leaseName("main"), metav1.GetOptions{})
		if err != nil || *now.Spec.HolderIdentity != want {
			t.Errorf("of %s: %v, %v; want it to be of %q", holder, now, err, want)
		}
	}
}

// TestTheAPITakesNoJobOfAnObject: whoever reaches it could else put one in the place of any namespace's.
func TestTheAPITakesNoJobOfAnObject(t *testing.T) {
	s := service{apitest.New()}
	for name, want := range map[job.ID]errkind.Kind{"team.x": errkind.Invalid, "x": errkind.Unknown} {
		out := s.SubmitAll(t.Context(),
			[]api.Submission{{Spec: &job.Spec{Name: name, Kind: job.Items, Total: 1, Grid: 1, Slices: 1, Launch: job.Launch{Image: "i"}}}},
			nil)
		if got := errkind.Of(out[0].Err); got != want || want == errkind.Invalid && !strings.Contains(out[0].Err.Error(), "kubectl") {
			t.Errorf("%s: %v", name, out[0].Err)
		}
	}
}
