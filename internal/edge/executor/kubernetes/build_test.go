//go:build kubernetes

package kubernetes

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/cluster"
	"sluice.dev/sluice/internal/edge/executor/shim/pod"
	"sluice.dev/sluice/internal/edge/journal"
	"sluice.dev/sluice/internal/edge/store/local"
	"sluice.dev/sluice/internal/edge/store/storetest"
)

var update = flag.Bool("update", false, "write testdata/*.golden.json")

// asked is a Start and an executor that has not been opened for anything.
func asked(t *testing.T, device cluster.Device) *run {
	t.Helper()
	under, err := local.Open(t.TempDir() + "/store")
	if err != nil {
		t.Fatal(err)
	}
	e, err := Open(Options{
		Client: fake.NewClientset(), Store: storetest.Lend(t, under), Operator: "main", ShimImage: "registry.example/sluice:1",
		Deliver: func(protocol.Message) {},
		Slice:   func(job.SliceID) (protocol.Slice, bool) { return protocol.Slice{Device: device.String()}, true },
		Tolerations: func() []corev1.Toleration {
			return []corev1.Toleration{{Key: "nvidia.com/gpu", Operator: corev1.TolerationOpExists}}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	at := quantity.At(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	m := protocol.Message{
		Kind: protocol.Start, Token: job.Token{Epoch: 2, Seq: 5}, Job: "team-a.train", Generation: 3,
		From: protocol.Address{Role: protocol.Node, ID: "main"}, To: protocol.Address{Role: protocol.Executor, ID: "main"},
		Body: &protocol.Work{Placement: protocol.Placement{Slice: "main/worker-1/gpu-0-mig-1", Range: job.Range{From: 10, To: 20},
			Start: at, End: at.Add(90500 * time.Millisecond)}, Spec: &job.Spec{Kind: job.Items, Total: 100, Grid: 1, Slices: 1,
			Launch: job.Launch{Image: "docker.io/library/python:3.13",
				Command: []string{"python", "work.py"}, Env: []string{"KEY=a secret"}, Grace: 5 * time.Second}}},
	}
	r := newRun(e, newRecord(&m, journal.Position{Seq: 7}, ""))
	r.plan.work, r.plan.asked = m.Body.(*protocol.Work), at
	if err := errors.Join(check(r.plan.work), r.plan.locate()); err != nil {
		t.Fatal(err)
	}
	return r
}

// TestWhatAPodIs is what is asked of a cluster for one subjob, to the letter.
func TestWhatAPodIs(t *testing.T) {
	for name, device := range map[string]cluster.Device{
		"resource": {Node: "worker-1", Resource: "nvidia.com/mig-1g.10gb"},
		"dra":      {Node: "worker-1", Class: "mig.nvidia.com", Driver: "gpu.nvidia.com", Pool: "worker-1", Name: "gpu-0-mig-1"},
	} {
		t.Run(name, func(t *testing.T) {
			r := asked(t, device)
			p, err := r.plan.makePod("20260301T120000Z-abcdef.what-is-sealed", r.plan.asked)
			if err != nil {
				t.Fatal(err)
			}
			all := map[string]any{"pod": p}
			p.UID = "uid-1"
			if name == "dra" {
				all["claim"] = r.plan.makeClaim(p, `device.driver == "gpu.nvidia.com"`)
			}
			got, err := json.MarshalIndent(all, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(got, []byte("a secret")) {
				t.Error("the job's environment can be read by whoever may read Pods")
			}
			file := "testdata/" + name + ".golden.json"
			if *update {
				if err := os.WriteFile(file, append(got, '\n'), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil || string(want) != string(got)+"\n" {
				t.Errorf("%s is not what is made (%v); run the test with -update and look at the difference", file, err)
			}
			back, err := recordOf(p)
			if err != nil || back != *r.rec {
				t.Errorf("the record is read as %+v, %v, want %+v", back, err, r.rec)
			}
		})
	}
}

func TestWhatNoPodCanBeMadeOf(t *testing.T) {
	r := asked(t, cluster.Device{Node: "w", Resource: "x.io/y"})
	r.plan.work.Also = []job.SliceID{"main/worker-1/b"}
	if err := check(r.plan.work); errkind.Of(err) != errkind.Invalid || !strings.Contains(err.Error(), "2 slices") {
		t.Error(err)
	}
	r.plan.work.Also, r.plan.work.Spec.Launch.Image = nil, ""
	if err := check(r.plan.work); errkind.Of(err) != errkind.Invalid || !strings.Contains(err.Error(), "spec.image") {
		t.Error(err)
	}
	under, err := local.Open(t.TempDir() + "/store")
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Client: fake.NewClientset(), Store: under, Operator: "main", ShimImage: "s", Deliver: func(protocol.Message) {}}
	if _, err := Open(o); errkind.Of(err) != errkind.Unsupported || !strings.Contains(err.Error(), "s3") {
		t.Errorf("a store that lends nothing: %v", err)
	}
	o.Store = storetest.Lend(t, under)
	for _, name := range []string{"", "Main", "-a", "a-", strings.Repeat("a", 21)} {
		o.Operator = name
		if _, err := Open(o); errkind.Of(err) != errkind.Invalid {
			t.Errorf("operator %q: %v", name, err)
		}
	}
}

func TestLabelsAreLabels(t *testing.T) {
	for text, want := range map[string]string{"team.a": "team.a", "=6a/b": "6a_b", strings.Repeat("a", 62) + "..b": strings.Repeat("a", 62),
		"": ""} {
		if got := cluster.JobLabel(job.ID(text)); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestADeviceIsToldFromOthers: the expression asks for a thing before it compares it, and names everything that there is.
func TestADeviceIsToldFromOthers(t *testing.T) {
	s, n, b, v := "MIG-1", int64(3), true, "12.4.0"
	d := resourcev1.Device{
		Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
			"uuid": {StringValue: &s}, "index": {IntValue: &n}, "resource.kubernetes.io/numa": {BoolValue: &b}, "cuda": {VersionValue: &v},
		},
		Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse("10Gi")}},
	}
	const g, k = `["gpu.nvidia.com"]`, `["resource.kubernetes.io"]`
	want := strings.Join([]string{
		`device.driver == "gpu.nvidia.com"`,
		`"cuda" in device.attributes` + g + ` && device.attributes` + g + `["cuda"].compareTo(semver("12.4.0")) == 0`,
		`"index" in device.attributes` + g + ` && device.attributes` + g + `["index"] == 3`,
		`"memory" in device.capacity` + g + ` && device.capacity` + g + `["memory"].compareTo(quantity("10Gi")) == 0`,
		`"numa" in device.attributes` + k + ` && device.attributes` + k + `["numa"] == true`,
		`"uuid" in device.attributes` + g + ` && device.attributes` + g + `["uuid"] == "MIG-1"`,
	}, " && ")
	if got := describe("gpu.nvidia.com", &d); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// TestNothingIsMountedOnAProgram: where our image has a file no container of it starts with a volume.
func TestNothingIsMountedOnAProgram(t *testing.T) {
	r := asked(t, cluster.Device{Node: "worker-1", Resource: "example.com/slice"})
	p, err := r.plan.makePod("20260301T120000Z-abcdef.what-is-sealed", r.plan.asked)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range append(p.Spec.InitContainers, p.Spec.Containers...) {
		for _, m := range c.VolumeMounts {
			if m.MountPath == "/sluice" || m.MountPath == "/sluice-shim" {
				t.Errorf("container %s: %s is a program of our image (make image)", c.Name, m.MountPath)
			}
		}
	}
}

// TestWhoseWordAnEndIs: a phase alone says nothing.
func TestWhoseWordAnEndIs(t *testing.T) {
	over := func(change func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodFailed,
			ContainerStatuses: []corev1.ContainerStatus{{Name: container,
				State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}}}}}}
		change(p)
		return p
	}
	now := metav1.Now()
	for name, c := range map[string]struct {
		change              func(*corev1.Pod)
		spoken, never, runs bool
	}{
		"its container has ended":       {func(*corev1.Pod) {}, true, false, false},
		"it was refused by its machine": {func(p *corev1.Pod) { p.Status.ContainerStatuses = nil }, true, false, false},
		"deleted and still running": {func(p *corev1.Pod) {
			p.Status.Phase, p.DeletionTimestamp, p.Spec.NodeName = corev1.PodRunning, &now, "w"
		}, false, false, false},
		"deleted before it was bound": {func(p *corev1.Pod) { p.Status.Phase, p.DeletionTimestamp = corev1.PodPending, &now }, false, true,
			false},
		"the garbage collector says so": {func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: deletedByGC}}
		}, false, false, false},
		"a container runs": {func(p *corev1.Pod) {
			p.Status.ContainerStatuses[0].State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
		}, false, false, true},
		"taints have evicted it, and its kubelet says that it is over": {func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue,
				Reason: "DeletionByTaintManager"}}
		}, true, false, false},
	} {
		p := over(c.change)
		if spoken(p) != c.spoken || neverBound(p) != c.never || running(p) != c.runs {
			t.Errorf("%s: spoken %v, never bound %v, running %v", name, spoken(p), neverBound(p), running(p))
		}
	}
}

func TestHowAPodEnded(t *testing.T) {
	began, finished := metav1.NewTime(time.Unix(1000, 0)), metav1.NewTime(time.Unix(1100, 0))
	rec := record{Range: job.Range{From: 10, To: 20}, End: quantity.At(time.Unix(1200, 0))}
	told := pod.Said{Result: job.Result{Outcome: job.Yielded, Progress: 15, Start: 5, End: 9}}
	says := func(r job.Result, reason string) corev1.ContainerStateTerminated {
		return corev1.ContainerStateTerminated{StartedAt: began, FinishedAt: finished, ExitCode: 1, Reason: reason,
			Message: string(pod.Said{Result: r}.Encode())}
	}
	ran := func(exit int32, reason string) corev1.ContainerStateTerminated {
		return corev1.ContainerStateTerminated{StartedAt: began, FinishedAt: finished, ExitCode: exit, Reason: reason}
	}
	signalled := job.Result{Outcome: job.ExitFailed, ExitCode: -1, Signal: 9, Progress: 10, Start: 5, End: 9, Detail: "signal 9 (killed)"}
	for name, c := range map[string]struct {
		state   corev1.ContainerStateTerminated
		reason  string
		deleted bool
		want    job.Outcome
		says    string
	}{
		"by its own word": {corev1.ContainerStateTerminated{StartedAt: began, FinishedAt: finished,
			Message: string(told.Encode())}, "DeadlineExceeded", true, job.Yielded, ""},
		"memory":                          {ran(137, "OOMKilled"), "", false, job.ExitFailed, "not the slice's"},
		"memory, of its program alone":    {says(signalled, "OOMKilled"), "", false, job.ExitFailed, "not the slice's); signal 9"},
		"a signal, and no lack of memory": {says(signalled, "Error"), "", false, job.ExitFailed, "signal 9"},
		"a failure, after a child lost memory": {says(job.Result{Outcome: job.ExitFailed, ExitCode: 3, Progress: 10, Start: 5, End: 9,
			Detail: "exit status 3"}, "OOMKilled"), "", false, job.ExitFailed, "exit status 3"},
		"evicted, with words of its own": {says(job.Result{Outcome: job.Stopped, Progress: 10, Start: 5, End: 9, Detail: "exit 0"},
			"Error"), "Evicted", false, job.Stopped, "Evicted: too much; exit 0"},
		"the kubelet's end":         {ran(137, "Error"), "DeadlineExceeded", false, job.DeadlineKilled, "137"},
		"evicted":                   {ran(137, "Error"), "Evicted", false, job.Stopped, "Evicted"},
		"killed":                    {ran(137, "Error"), "", false, job.Lost, "did not say how it went"},
		"deleted while it ran":      {ran(137, "Error"), "", true, job.NodeFailed, "somebody has deleted its Pod"},
		"its machine was restarted": {ran(255, "Unknown"), "", false, job.NodeFailed, "255"},
		"its exit was not read":     {ran(137, "ContainerStatusUnknown"), "", false, job.NodeFailed, "ContainerStatusUnknown"},
		"no such program": {
			corev1.ContainerStateTerminated{Reason: "StartError", ExitCode: 128, Message: "no such file"},
			"", false, job.StartFailed, "no such file",
		},
		"deleted before": {
			corev1.ContainerStateTerminated{Reason: "ContainerStatusUnknown", ExitCode: 137},
			"", true, job.Stopped, "did not start",
		},
		"refused": {
			corev1.ContainerStateTerminated{},
			"UnexpectedAdmissionError", false, job.NodeFailed, "UnexpectedAdmissionError",
		},
		"late, not begun": {
			corev1.ContainerStateTerminated{Reason: "ContainerStatusUnknown", ExitCode: 137},
			"DeadlineExceeded", false, job.NodeFailed, "did not start",
		},
	} {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: began}, Status: corev1.PodStatus{Phase: corev1.PodFailed,
			Reason: c.reason, Message: "too much",
			ContainerStatuses: []corev1.ContainerStatus{{Name: container, State: corev1.ContainerState{Terminated: &c.state}}}}}
		if c.deleted {
			p.DeletionTimestamp = &finished
		}
		r := ended(p, &rec).Result
		if r.Outcome != c.want || !strings.Contains(r.Detail, c.says) {
			t.Errorf("%s: %+v, want %v with %q", name, r, c.want, c.says)
		}
		if (c.state.Reason == "OOMKilled") && r.Outcome == job.ExitFailed && r.ExitCode == -1 && r.Signal != 9 {
			t.Errorf("%s: %+v, want the signal that home bears with", name, r)
		}
		if r.Outcome != job.Yielded && (r.Progress != 10 || r.Checkpoint || r.Start > r.End) {
			t.Errorf("%s: %+v counts something", name, r)
		}
	}
}

// TestWhoseContainerVanished: a kubelet removes the containers of what it evicts, at times before it has read how they ended. The status
// is one that it wrote.
func TestWhoseContainerVanished(t *testing.T) {
	var p corev1.Pod
	err := json.Unmarshal(
		[]byte(
			`{"metadata": {"creationTimestamp": "2026-11-24T03:02:52Z"}, "status": {"phase": "Failed", "reason": "Evicted", "startTime": "2026-11-24T03:02:52Z",
"message": "Pod ephemeral local storage usage exceeds the total limit of containers 32Mi. ", "conditions": [
 {"type": "PodReadyToStartContainers", "status": "False", "lastTransitionTime": "2026-11-24T03:03:53Z"}, {"type": "Initialized", "status": "True", "lastTransitionTime": "2026-11-24T03:02:54Z"},
 {"type": "Ready", "status": "False", "lastTransitionTime": "2026-11-24T03:03:53Z", "reason": "PodFailed"}, {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-11-24T03:02:52Z"}],
"containerStatuses": [{"name": "subjob", "state": {"waiting": {"reason": "PodInitializing"}}, "lastState": {"terminated": {"exitCode": 137, "reason": "ContainerStatusUnknown",
 "message": "The container could not be located when the pod was deleted.  The container used to be Running", "startedAt": null, "finishedAt": null}}, "restartCount": 1}]}}`), &p)
	if err != nil {
		t.Fatal(err)
	}
	if !spoken(&p) {
		t.Error("its kubelet has said that it is over")
	}
	at := func(text string) quantity.Instant {
		v, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return quantity.At(v)
	}
	r := ended(&p, &record{Range: job.Range{From: 10, To: 20}}).Result
	if r.Outcome != job.Stopped || r.Progress != 10 || r.Start != at("2026-11-24T03:02:54Z") || r.End != at("2026-11-24T03:03:53Z") ||
		!strings.Contains(r.Detail, "Evicted") || strings.Contains(r.Detail, "did not start") {
		t.Errorf("%+v", r)
	}
}

// TestUntilWhenSomethingMayRun: the later of what its first process and what its kubelet holds it to, with grace and skew behind it.
func TestUntilWhenSomethingMayRun(t *testing.T) {
	o := &Options{Linger: time.Minute, Skew: 30 * time.Second}
	end := quantity.At(time.Unix(10_000, 0))
	grace, active := int64(65), int64(120)
	p := &corev1.Pod{Spec: corev1.PodSpec{TerminationGracePeriodSeconds: &grace, ActiveDeadlineSeconds: &active}}
	if got := latest(nil, end, o); got != end.Add(90*time.Second) {
		t.Errorf("without a Pod: %v", got.Sub(end))
	}
	if got := latest(p, end, o); got != end.Add(155*time.Second) {
		t.Errorf("one that no kubelet has: %v", got.Sub(end))
	}
	late := metav1.NewTime(end.Time().Add(-30 * time.Second))
	if p.Status.StartTime = &late; latest(p, end, o) != end.Add(185*time.Second) {
		t.Errorf("one that began late: %v", latest(p, end, o).Sub(end))
	}
	if latest(p, quantity.Never, o) != quantity.Never {
		t.Error("a lease without an end ends")
	}
}

func TestAmountsAreRead(t *testing.T) {
	list, err := ParseResources("cpu=100m,memory=1Gi,ephemeral-storage=5G")
	if err != nil || len(list) != 3 || list.Cpu().MilliValue() != 100 || list.Memory().Value() != 1<<30 ||
		list.StorageEphemeral().Value() != 5e9 {
		t.Errorf("%v, %v", list, err)
	}
	if list, err = ParseResources(""); err != nil || list == nil || len(list) > 0 {
		t.Errorf("nothing: %v, %v", list, err)
	}
	_, err = ParseResources("cpu=much,nvidia.com/gpu=1,memory=0,memory=-1,cpu=1,cpu=2,x")
	for _, want := range []string{"cpu=much", "nvidia.com/gpu=1", "memory=0", "memory=-1", "cpu=2", `"x"`} {
		if errkind.Of(err) != errkind.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want it to name %s", err, want)
		}
	}
}

// TestWhoseFaultAnImageIs that does not come: a registry that is away is nobody's who has a job, nor is our own image.
func TestWhoseFaultAnImageIs(t *testing.T) {
	for _, c := range []struct {
		reason, message string
		ours, late      bool
		kind            errkind.Kind
	}{
		{"InvalidImageName", "", false, false, errkind.Invalid},
		{"InvalidImageName", "", true, false, errkind.Exhausted},
		{"ImagePullBackOff", "Back-off pulling image: NotFound: docker.io/x:y: not found", false, true, errkind.Invalid},
		{"ImagePullBackOff", "Back-off pulling image: NotFound: docker.io/x:y: not found", false, false, errkind.Unknown},
		{"ImagePullBackOff", "Back-off pulling image: NotFound: sluice: not found", true, true, errkind.Exhausted},
		{"ErrImagePull", "dial tcp 1.2.3.4:443: i/o timeout", false, true, errkind.Exhausted},
		{"ErrImagePull", "429 Too Many Requests", false, true, errkind.Exhausted},
		{"CreateContainerConfigError", `couldn't find key 20260301T120000Z-abcdef`, true, false, errkind.Unknown},
		{"CreateContainerConfigError", `couldn't find key 20260301T120000Z-abcdef`, true, true, errkind.Exhausted},
		{"RunContainerError", "exec: no such file", false, true, errkind.Invalid},
		{"PodInitializing", "", false, true, errkind.Unknown},
	} {
		list := []corev1.ContainerStatus{{Image: "x",
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: c.reason, Message: c.message}}}}
		p := &corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: list}}
		if c.ours {
			p.Status.InitContainerStatuses, p.Status.ContainerStatuses = list, nil
		}
		if why, kind := hopeless(p, c.late); kind != c.kind || (why == "") != (kind == errkind.Unknown) {
			t.Errorf("%+v: %q, %v", c, why, kind)
		}
	}
}
