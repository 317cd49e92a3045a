//go:build kubernetes

package kubernetes

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	core "k8s.io/client-go/testing"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/cluster"
	"sluice.dev/sluice/internal/edge/executor/shim/pod"
	"sluice.dev/sluice/internal/edge/store"
)

// What nothing else here would see if it were wrong, as bugs that were planted have shown.

var counted = cluster.Device{Node: "worker-1", Resource: "example.com/slice"}

// TestWhatNobodySawEndIsNotOver: a Pod that went while nobody looked may have been bound and have run meanwhile. Of one that was seen to
// go without a machine it is known.
func TestWhatNobodySawEndIsNotOver(t *testing.T) {
	r := asked(t, counted)
	r.pod.tried = true
	for unsure, want := range map[bool]bool{true: false, false: true} {
		v := view{want: wanted{order: r.pod.ordered}, pod: &corev1.Pod{}, gone: true, unsure: unsure}
		if said := r.over(&v, r.rec.Start); (said != nil) != want {
			t.Errorf("unsure %v: %+v", unsure, said)
		}
		late := r.rec.End.Add(24 * time.Hour)
		if said := r.over(&v, late); said == nil || unsure && said.Result.Outcome != job.NodeFailed {
			t.Errorf("unsure %v, a day after its lease: %+v", unsure, said)
		}
	}
}

// TestWhatIsKeptOfAPodIsAllThatIsLookedAt: until when it may run, what it waits for, and how it ended are the same of what is kept.
func TestWhatIsKeptOfAPodIsAllThatIsLookedAt(t *testing.T) {
	r := asked(t, cluster.Device{Node: "worker-1", Class: "c", Driver: "d", Pool: "p", Name: "n"})
	p, err := r.plan.makePod("20260301T120000Z-abcdef.what-is-sealed", r.plan.asked)
	if err != nil {
		t.Fatal(err)
	}
	p.Spec.NodeName, p.Status.StartTime = "worker-1", &metav1.Time{Time: r.rec.End.Time()}
	kept := slim(p)
	if got, want := latest(kept, r.rec.End, &r.e.o), latest(p, r.rec.End, &r.e.o); got != want {
		t.Errorf("it may run until %v, want %v after its end", got.Sub(r.rec.End), want.Sub(r.rec.End))
	}
	if len(kept.Spec.ResourceClaims) != 1 || kept.Spec.NodeName != "worker-1" || len(kept.Finalizers) != 1 ||
		kept.Annotations[cluster.AnnotationRun] == "" || !sealedIn(kept) {
		t.Errorf("kept is %+v", kept)
	}
}

// TestACheckpointThatIsReadStays: by whoever starts from it, or has left it and is not settled.
func TestACheckpointThatIsReadStays(t *testing.T) {
	e, read := asked(t, counted).e, job.Token{Epoch: 1, Seq: 1}
	for name, rec := range map[string]record{"it starts from it": {Token: job.Token{Epoch: 1, Seq: 2}, Resume: read},
		"it has left it": {Token: read}} {
		r := newRun(e, rec)
		e.runs = map[job.Token]*run{rec.Token: r}
		if !e.needed(read, nil) || e.needed(read, r) || e.needed(job.Token{Epoch: 9, Seq: 9}, nil) {
			t.Errorf("%s: needed %v, by others than itself %v", name, e.needed(read, nil), e.needed(read, r))
		}
	}
	clear(e.runs)
}

// TestAStopLeavesTimeToStore: the kubelet's grace is the program's and what storing takes; at once, the latter alone. No other Pod of its
// name is meant.
func TestAStopLeavesTimeToStore(t *testing.T) {
	for now, want := range map[bool]int64{false: 65, true: 60} {
		r := asked(t, counted)
		r.pod.made, r.pod.tried, r.whole = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "uid-1"}}, true, true
		v := view{want: wanted{order: r.pod.ordered}}
		v.want.halt(&protocol.Halt{Text: "enough", Now: now})
		if err := r.obey(&v, r.rec.Start); err != nil {
			t.Fatal(err)
		}
		var o *metav1.DeleteOptions
		for _, a := range r.e.o.Client.(*fake.Clientset).Actions() {
			if d, ok := a.(core.DeleteActionImpl); ok {
				o = &d.DeleteOptions
			}
		}
		if o == nil || o.GracePeriodSeconds == nil || *o.GracePeriodSeconds != want || o.Preconditions == nil ||
			*o.Preconditions.UID != "uid-1" {
			t.Errorf("now %v: it was deleted with %+v, want a grace of %d", now, o, want)
		}
	}
}

// lent is a store that fails where it is told to.
type lent struct {
	store.Lender
	fails error
}

func (l *lent) Drop(context.Context, string) error { return l.fails }

func (l *lent) ReadName(ctx context.Context, name string) (store.Named, error) {
	if l.fails != nil {
		return store.Named{}, l.fails
	}
	return l.Lender.ReadName(ctx, name)
}

// TestWhatCanNotBePutAwayIsNotSettled: the Pod stays, with what it keeps, until the store has taken it.
func TestWhatCanNotBePutAwayIsNotSettled(t *testing.T) {
	r := asked(t, counted)
	r.e.shelf.lender = &lent{Lender: r.e.shelf.lender, fails: errkind.Errorf(errkind.Unavailable, "away")}
	r.pod.made, r.pod.tried = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "uid-1", Finalizers: []string{cluster.Finalizer}}}, true
	v := view{pod: r.pod.made, want: wanted{settle: &protocol.Message{Kind: protocol.Settle, Token: r.rec.Token,
		Body: &protocol.Settlement{}}}}
	if err := r.clear(&v); errkind.Of(err) != errkind.Unavailable {
		t.Errorf("it is settled, %v", err)
	}
	if done := r.e.o.Client.(*fake.Clientset).Actions(); len(done) > 0 {
		t.Errorf("the Pod was touched: %v", done)
	}
}

// TestOnlyWhatItsPodHasLeftIsStored: a store that does not say what it has under the name is asked again, and what is there of others is
// not taken for its own.
func TestOnlyWhatItsPodHasLeftIsStored(t *testing.T) {
	r := asked(t, counted)
	put := func(text string) store.Digest {
		o, err := r.e.o.Store.Put(t.Context(), "", strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		return o.Digest
	}
	other, own := put("other"), put("own")
	if err := store.Name(t.Context(), r.e.o.Store, r.e.shelf.own().result(r.rec), store.Refs{outputRole: other}); err != nil {
		t.Fatal(err)
	}
	r.said = &pod.Said{Output: &pod.Left{Digest: own, Size: 3}}
	if err := r.e.shelf.stow(t.Context(), r.rec, r.said); errkind.Of(err) != errkind.Invalid {
		t.Errorf("another's output is taken for its own: %v", err)
	}
	r.said.Output.Digest = other
	if err := r.e.shelf.stow(t.Context(), r.rec, r.said); err != nil {
		t.Errorf("its own, stored before: %v", err)
	}
	r.e.o.Store = &lent{Lender: r.e.shelf.lender, fails: errors.New("reset by peer")}
	if err := r.e.shelf.stow(t.Context(), r.rec, r.said); err == nil {
		t.Error("nobody knows what the store has, and it is taken for stored")
	}
}

// TestADeviceIsOfItsPool: those of two pools of a driver may have one name. What is remembered of them is asked for anew after a while.
func TestADeviceIsOfItsPool(t *testing.T) {
	slice := func(pool, uuid string) *resourcev1.ResourceSlice {
		return &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: pool}, Spec: resourcev1.ResourceSliceSpec{Driver: "d",
			Pool: resourcev1.ResourcePool{Name: pool}, Devices: []resourcev1.Device{
				{Name: "gpu-0", Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"uuid": {StringValue: &uuid}}},
			}}}
	}
	e := asked(t, counted).e
	client, now := fake.NewClientset(slice("p", "one"), slice("q", "two")), time.Unix(1000, 0)
	e.o.Client, e.o.Clock = client, func() time.Time { return now }
	is := func(pool, uuid string) {
		t.Helper()
		if text, err := e.devices.selector(t.Context(), &cluster.Device{Node: "w", Driver: "d", Pool: pool, Name: "gpu-0"}); err != nil ||
			!strings.Contains(text, `"`+uuid+`"`) {
			t.Errorf("pool %s: %s, %v; want %s", pool, text, err, uuid)
		}
	}
	is("p", "one")
	is("q", "two")
	if err := client.Tracker().Update(resourcev1.SchemeGroupVersion.WithResource("resourceslices"), slice("q", "three"), ""); err != nil {
		t.Fatal(err)
	}
	is("q", "two")
	now = now.Add(remembered)
	is("q", "three")
}

// TestLogsAreTheirJobsAlone, whoever knows the subjob's number.
func TestLogsAreTheirJobsAlone(t *testing.T) {
	r := asked(t, counted)
	r.e.runs[r.rec.Token] = r
	defer clear(r.e.runs)
	if _, err := r.e.Files().OpenLogs("team-b.other", r.rec.Token); errkind.Of(err) != errkind.NotFound {
		t.Errorf("another job reads them: %v", err)
	}
	list, err := r.e.Files().OpenLogs(r.rec.Job, r.rec.Token)
	if err != nil || len(list) != 1 {
		t.Errorf("%v, %v", list, err)
	}
}

// TestAKeyStaysAsLongAsURLsThatItOpens: it seals for a day, and they live for a week from then. That it could not be put back is no answer.
func TestAKeyStaysAsLongAsURLsThatItOpens(t *testing.T) {
	e, now := asked(t, counted).e, time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	e.o.Clock = func() time.Time { return now }
	key := func() string {
		k, err := e.keys.key(t.Context(), "team")
		if err != nil {
			t.Fatal(err)
		}
		return k.ID
	}
	first := key()
	now = now.Add(keyLasts - time.Minute)
	if key() != first {
		t.Fatal("it seals for less than a day")
	}
	now = now.Add(mostLent)
	key()
	if there, err := e.keys.read(t.Context(), "team"); err != nil || there[first] == nil {
		t.Errorf("what was sealed last with a key can't be opened any more, %v", err)
	}
	client := e.o.Client.(*fake.Clientset)
	if err := client.CoreV1().Secrets("team").Delete(t.Context(), e.o.keysName(), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	refuses := true
	client.PrependReactor("create", "secrets", func(core.Action) (bool, runtime.Object, error) {
		return refuses, nil, apierrors.NewServiceUnavailable("not now")
	})
	now = now.Add(checkKeys)
	if err := e.keys.have(t.Context(), "team"); err == nil {
		t.Error("keys that are not there are said to be")
	}
	refuses = false
	if err := e.keys.have(t.Context(), "team"); err != nil || len(e.keys.ring("team").mine) == 0 {
		t.Errorf("they are not put back: %v", err)
	}
	if there, err := e.keys.read(t.Context(), "team"); err != nil || len(there) == 0 {
		t.Errorf("they are not put back: %v", err)
	}
}

// TestARecordIsOfOneSubjob: whatever differs makes another one.
func TestARecordIsOfOneSubjob(t *testing.T) {
	rec := record{Job: "j", Generation: 1, Range: job.Range{To: 10}, Slice: "a"}
	for what, change := range map[string]func(*record){
		"job": func(r *record) { r.Job = "k" }, "life": func(r *record) { r.Generation = 2 }, "range": func(r *record) { r.Range.To = 11 },
		"slice": func(r *record) { r.Slice = "b" },
	} {
		other := rec
		if change(&other); rec.same(&other) || !rec.same(&rec) {
			t.Errorf("another %s, and it is the same", what)
		}
	}
}

// TestAnEarlierEndIsTheKubeletsToo: it ends the Pod by its own clock then, and never later than it was to.
func TestAnEarlierEndIsTheKubeletsToo(t *testing.T) {
	for by, want := range map[time.Duration]string{-30 * time.Second: `"activeDeadlineSeconds":121`, time.Hour: ""} {
		r := asked(t, counted)
		p, err := r.plan.makePod("", r.plan.asked)
		if err != nil {
			t.Fatal(err)
		}
		p.Spec.NodeName, p.Status.StartTime = "worker-1", &metav1.Time{Time: r.plan.asked.Time()}
		v := view{pod: p, want: wanted{order: pod.Order{End: r.rec.End.Add(by), Cut: true}}}
		_ = r.pod.order(&v, quantity.At(r.plan.asked.Time())) // there is no Pod: what is asked is what counts
		var patch string
		for _, a := range r.e.o.Client.(*fake.Clientset).Actions() {
			if d, ok := a.(core.PatchActionImpl); ok {
				patch = string(d.Patch)
			}
		}
		if patch == "" || !strings.Contains(patch, want) || want == "" && strings.Contains(patch, "activeDeadlineSeconds") {
			t.Errorf("%v: it is told %s, want %s", by, patch, want)
		}
	}
}

// TestWhatEndedWhileNobodyLookedIsToldOnceItIsStored: an operator that comes back and can't store it has to say that it goes on.
func TestWhatEndedWhileNobodyLookedIsToldOnceItIsStored(t *testing.T) {
	said := pod.Said{Result: job.Result{Outcome: job.Done, Progress: 20, Start: 1, End: 2}, Output: &pod.Left{Digest: "x", Size: 1}}
	r := asked(t, counted)
	r.pod.tried, r.whole = true, true
	r.seen.pod = &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodSucceeded, ContainerStatuses: []corev1.ContainerStatus{
		{Name: container, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: string(said.Encode())}}},
	}}}
	r.e.o.Store = &lent{Lender: r.e.shelf.lender, fails: errors.New("reset by peer")}
	if r.found(t.Context()); r.told.State().Result != nil || r.said == nil {
		t.Errorf("it is told to have ended, and nobody has what it left: %+v", r.told.State().Result)
	}
}

// TestALifeThatIsPurgedIsNotTheNext: what lives of a job from a generation on stays.
func TestALifeThatIsPurgedIsNotTheNext(t *testing.T) {
	r := asked(t, counted)
	e := r.e
	o, err := e.o.Store.Put(t.Context(), "", strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	for _, life := range []string{"2", "3", "4"} {
		for _, name := range []string{e.shelf.own().jobs(r.rec.Job) + "/" + life + "/2-5", e.shelf.own().outputs(r.rec.Job) + "/" + life +
			"/000000000010-000000000020.2-5"} {
			if err := store.Name(t.Context(), e.o.Store, name, store.Refs{outputRole: o.Digest}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := purged(t, e, r.rec.Job, 3); got != 4 {
		t.Errorf("before the third: %d names are left, want those of two lives", got)
	}
	if got := purged(t, e, r.rec.Job, 0); got != 0 {
		t.Errorf("%d names are left of all", got)
	}
}

// purged counts the names that are left of a job after a purge.
func purged(t *testing.T, e *Executor, j job.ID, before job.Generation) (n int) {
	t.Helper()
	err := e.shelf.forget(t.Context(), j, before)
	if err == nil {
		err = e.o.Store.Names(t.Context(), "", func(store.Named) error { n++; return nil })
	}
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestARefusalIsNotOfWhatWasMadeBefore: the answer to the first try was lost, and the second is refused: what the first has made may run,
// and is ended first.
func TestARefusalIsNotOfWhatWasMadeBefore(t *testing.T) {
	r := asked(t, counted)
	client := r.e.o.Client.(*fake.Clientset)
	tries, real := 0, core.ObjectReaction(client.Tracker())
	client.PrependReactor("create", "pods", func(a core.Action) (bool, runtime.Object, error) {
		if tries++; tries > 1 {
			return true, nil, apierrors.NewForbidden(corev1.Resource("pods"), "x",
				errors.New("exceeded quota: gpus, requested: 1, used: 4, limited: 4"))
		}
		_, _, err := real(a)
		return true, nil, errors.Join(err, errors.New("the answer is lost"))
	})
	v := view{want: wanted{order: r.pod.ordered}}
	if err := r.create(&v, r.rec.Start); err == nil || r.said != nil {
		t.Fatalf("%v, %+v", err, r.said)
	}
	if err := r.create(&v, r.rec.Start); err != nil || r.said != nil || r.pod.made == nil || r.blame == nil {
		t.Errorf("%v: it is said to have ended, and its Pod is there: %+v", err, r.said)
	}
}

// TestWhoHasLostItsMachineIsNotWaitedForForever: the collector of Pods says no reason where an administrator has said that a machine is
// out of service; it sets the phase, and the container is shown as running for good. A kubelet that says so of a Pod that nobody deletes
// is about to say more.
func TestWhoHasLostItsMachineIsNotWaitedForForever(t *testing.T) {
	runs := corev1.ContainerStatus{Name: container, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
	ended := corev1.ContainerStatus{Name: container, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}
	for what, c := range map[string]struct {
		phase   corev1.PodPhase
		deleted bool
		status  corev1.ContainerStatus
		lost    bool
	}{
		"out of service":     {corev1.PodFailed, true, runs, true},
		"it runs":            {corev1.PodRunning, true, runs, false},
		"nobody deletes it":  {corev1.PodFailed, false, runs, false},
		"its kubelet speaks": {corev1.PodFailed, true, ended, false},
	} {
		r := asked(t, counted)
		r.pod.tried, r.rec.End = true, quantity.Never
		p := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "worker-1"},
			Status: corev1.PodStatus{Phase: c.phase, ContainerStatuses: []corev1.ContainerStatus{c.status}}}
		if c.deleted {
			p.DeletionTimestamp = &metav1.Time{Time: r.plan.asked.Time()}
		}
		v := view{pod: p, want: wanted{order: r.pod.ordered}}
		if c.status.State.Terminated == nil {
			if said := r.over(&v, r.plan.asked); said != nil {
				t.Errorf("%s: %+v, though it may run still", what, said)
			}
		}
		said := r.over(&v, r.plan.asked.Add(time.Hour))
		if lost := said != nil && strings.Contains(said.Result.Detail, "nothing was heard"); lost != c.lost {
			t.Errorf("%s: an hour later %+v, want it lost %v", what, said, c.lost)
		}
	}
}

// TestWhatNoPodCanStoreIsRefused before it is done, and what is left where nobody says how much it may be can be stored with what a tar
// takes beside its files.
func TestWhatNoPodCanStoreIsRefused(t *testing.T) {
	r := asked(t, counted)
	for limit, refused := range map[int64]bool{0: false, store.MaxLent: false, store.MaxLent + 1: true} {
		r.plan.work.Spec.Launch.OutputLimit = limit
		if err := check(r.plan.work); (errkind.Of(err) == errkind.Invalid) != refused || refused &&
			!strings.Contains(err.Error(), "limits.output") {
			t.Errorf("%d: %v", limit, err)
		}
	}
	r.plan.work.Spec.Launch.OutputLimit = 0
	if got := r.plan.makeRun(r.plan.asked).OutputLimit; got != mostOutput || got >= store.MaxLent {
		t.Errorf("the default is %d", got)
	}
	o := Options{OutputLimit: 1 << 40}
	if o.defaults(); o.OutputLimit != mostOutput {
		t.Errorf("what an operator gives as the default is %d", o.OutputLimit)
	}
}

// TestPlacesOutliveTheirURLs: what was written by the last use of one is there for a day more, in which whoever is away comes back.
func TestPlacesOutliveTheirURLs(t *testing.T) {
	if store.Unadopted < mostLent+24*time.Hour {
		t.Errorf("what was written to a place may be dropped after %v, and its URL lives for %v", store.Unadopted, mostLent)
	}
}
