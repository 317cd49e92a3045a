//go:build kubernetes

package operator_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	policies "sluice.dev/sluice/internal/core/policy/all"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/config"
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/executor/fake"
	"sluice.dev/sluice/internal/edge/inventory/sim"
	"sluice.dev/sluice/internal/face/operator"
	"sluice.dev/sluice/internal/host"
	"sluice.dev/sluice/test/kube/plane"
)

// site is where operators of one name and data directory run, one after the other or beside each other: on a real API server, over
// simulated slices and modelled subjobs, which go on while no operator is there.
type site struct {
	*plane.Plane
	ns, data string

	mu     sync.Mutex
	world  *fake.Executor
	starts int
	began  map[string]int
	pools  []config.SlicePool
}

func newSite(t *testing.T, p *plane.Plane) *site {
	t.Helper()
	p.Define(t)
	return &site{Plane: p, ns: p.Namespace(t), data: t.TempDir()}
}

// op is one operator that runs, or waits for its lease.
type op struct {
	stop  context.CancelFunc
	ended chan error
	ready chan [2]string
}

func (s *site) options(name string) operator.Options {
	return operator.Options{
		Cluster: s.Config(), Name: "test", Namespace: s.ns, Watch: s.ns, DataDir: s.data, Identity: name, Listen: "127.0.0.1:0",
		Health: "127.0.0.1:0",
		Policy: policies.Default(), Die: func() {}, Horizon: time.Hour, Version: "test", Parts: s.parts,
	}
}

// parts are four simulated slices, and subjobs that do what was planned.
func (s *site) parts(_ context.Context, _ operator.Journal, pools []config.SlicePool) (operator.Parts, error) {
	offer := func(pools []config.SlicePool) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.pools = pools
		return nil
	}
	inv, err := sim.New("sim:custom,mem=1Gi+1Gi+1Gi+1Gi")
	return operator.Parts{Inventory: inv, Offer: offer, Executor: func(e host.Env) (executor.Executor, host.Files, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.world == nil {
			s.world = fake.New(e.Deliver, func(m protocol.Message) fake.Behaviour {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.starts++
				if s.began == nil {
					s.began = map[string]int{}
				}
				s.began[string(m.Job)]++
				return fake.Planned(m)
			})
		} else {
			s.world = s.world.Reopen(e.Deliver)
		}
		return s.world, nil, nil
	}}, errors.Join(err, offer(pools))
}

// begin starts an operator; change may change its options.
func (s *site) begin(t *testing.T, name string, change func(*operator.Options)) *op {
	t.Helper()
	o := s.options(name)
	o.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	if change != nil {
		change(&o)
	}
	ctx, stop := context.WithCancel(context.Background())
	x := &op{stop: stop, ended: make(chan error, 1), ready: make(chan [2]string, 1)}
	o.Ready = func(api, health string) { x.ready <- [2]string{api, health} }
	go func() {
		err := operator.Run(ctx, o)
		o.Log.Info("the operator has ended", "error", err)
		x.ended <- err
	}()
	t.Cleanup(func() { _ = x.end(t) })
	return x
}

// works waits until it has the lease and works, and says where it shows its health.
func (x *op) works(t *testing.T) string {
	t.Helper()
	select {
	case at := <-x.ready:
		return at[1]
	case err := <-x.ended:
		x.ended <- err
		t.Fatalf("the operator has ended: %v", err)
	case <-time.After(plane.Within):
		t.Fatal("the operator does not work")
	}
	return ""
}

// end stops it and says how it ended.
func (x *op) end(t *testing.T) error {
	t.Helper()
	x.stop()
	select {
	case err := <-x.ended:
		x.ended <- err
		return err
	case <-time.After(plane.Within):
		t.Fatal("the operator does not end")
	}
	return nil
}

// apply applies a manifest in the site's namespace, as a user would.
func (s *site) apply(t *testing.T, manifest string) {
	t.Helper()
	if out, err := s.KubectlWith(manifest, "-n", s.ns, "apply", "-f", "-"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// items is the manifest of a job of some units, of so long each.
func items(name string, total int, each string, more ...string) string {
	return fmt.Sprintf(`apiVersion: sluice.dev/v1alpha1
kind: Job
metadata: {name: %s}
spec:
  items: {total: %d, perItem: %s, parallelism: 2}
  memory: 64Mi
  image: registry.example.com/team/count:v1
  command: [sh, -c, "./count.sh"]
  theta: 0.01
  %s
`, name, total, each, strings.Join(more, "\n  "))
}

type seen struct {
	State, Progress, Reason                  string
	Committed, Total, Subjobs, Running, Lost int64
	ObservedGeneration                       int64
	Conditions                               []struct {
		Type, Status, Reason, Message string
		LastTransitionTime            string
	}
}

func (s seen) condition(kind string) string {
	for _, c := range s.Conditions {
		if c.Type == kind {
			return c.Status + " " + c.Reason + " " + c.Message
		}
	}
	return "none"
}

// status is a job's status as its object has it.
func (s *site) status(name string) (out seen, err error) {
	text, err := s.Kubectl("-n", s.ns, "get", "jobs.sluice.dev", name, "-o", "jsonpath={.status}")
	if err == nil && text != "" {
		err = json.Unmarshal([]byte(text), &out)
	}
	return out, err
}

// until waits for a job's status.
func (s *site) until(t *testing.T, name, what string, is func(seen) bool) (last seen) {
	t.Helper()
	plane.Eventually(t, "job "+name+" "+what, func() (bool, string) {
		var err error
		last, err = s.status(name)
		return err == nil && is(last), fmt.Sprintf("%+v, %v", last, err)
	})
	return last
}

func done(x seen) bool    { return strings.HasPrefix(x.condition("Complete"), "True") }
func working(x seen) bool { return strings.HasPrefix(x.condition("Running"), "True") }

// TestAJobIsAppliedAndDone: from kubectl apply to the end, as a user sees it.
func TestAJobIsAppliedAndDone(t *testing.T) {
	s := newSite(t, plane.Of(t))
	x := s.begin(t, "a", nil)
	health := x.works(t)
	s.apply(t, items("count", 400, "1ms"))
	if out, err := s.Kubectl("-n", s.ns, "wait", "--for=condition=Complete", "--timeout=120s", "jobs.sluice.dev/count"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	got := s.until(t, "count", "is done", done)
	if got.State != "COMPLETED" || got.Progress != "400/400" || got.Running != 0 || got.Subjobs < 1 || got.ObservedGeneration != 1 ||
		!strings.HasPrefix(got.condition("Accepted"), "True") || !strings.HasPrefix(got.condition("Failed"), "False") {
		t.Errorf("%+v", got)
	}
	out, err := s.Kubectl("-n", s.ns, "get", "sj", "count")
	if err != nil || !strings.Contains(out, "STATE") || !strings.Contains(out, "COMPLETED") || !strings.Contains(out, "400/400") {
		t.Errorf("%v\n%s", err, out)
	}
	plane.Eventually(t, "events", func() (bool, string) {
		out, err := s.Kubectl("-n", s.ns, "get", "events", "--field-selector=involvedObject.name=count", "-o",
			"jsonpath={.items[*].reason}")
		return err == nil && strings.Contains(out, "Accepted") && strings.Contains(out, "Complete"), fmt.Sprint(out, err)
	})
	for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
		resp, err := http.Get("http://" + health + path)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusOK || path == "/metrics" && !strings.Contains(string(text), "sluice_") {
			t.Errorf("%s: %s\n%s", path, resp.Status, text)
		}
	}
	if err := x.end(t); err != nil {
		t.Errorf("it ended with %v", err)
	}
}

// TestDeletedWhileRunning: the object stays until nothing of the job runs and nobody knows it any more.
func TestDeletedWhileRunning(t *testing.T) {
	s := newSite(t, plane.Of(t))
	s.begin(t, "a", nil).works(t)
	s.apply(t, items("long", 1_000_000, "100ms"))
	s.until(t, "long", "runs", working)
	if out, err := s.Kubectl("-n", s.ns, "delete", "--timeout=120s", "jobs.sluice.dev/long"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if left, err := s.world.Find(context.Background()); err != nil || len(left) != 0 {
		t.Errorf("%+v, %v", left, err)
	}
	s.apply(t, items("long", 200, "1ms")) // the name is free again
	s.until(t, "long", "is done", done)

	// A copy that came with our finalizer, which others then own, goes as well.
	s.apply(t, strings.Replace(items("restored", 10, "1ms"), "{name: restored}", "{name: restored, finalizers: [sluice.dev/job]}", 1))
	s.until(t, "restored", "is done", done)
	if out, err := s.Kubectl("-n", s.ns, "delete", "--timeout=120s", "jobs.sluice.dev/restored"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// TestARestartLosesNothing: what ran goes on, what was deleted meanwhile goes, with our finalizer or without, and nothing is begun twice.
func TestARestartLosesNothing(t *testing.T) {
	s := newSite(t, plane.Of(t))
	x := s.begin(t, "a", nil)
	x.works(t)
	s.apply(t, items("finished", 100, "1ms"))
	first := s.until(t, "finished", "is done", done)
	version := func() string {
		out, err := s.Kubectl("-n", s.ns, "get", "jobs.sluice.dev", "finished", "-o", "jsonpath={.metadata.resourceVersion}")
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	for _, name := range []string{"kept", "deleted", "torn"} {
		s.apply(t, items(name, 1_000_000, "100ms"))
		s.until(t, name, "is accepted", func(x seen) bool { return strings.HasPrefix(x.condition("Accepted"), "True") })
	}
	if err := x.end(t); err != nil {
		t.Fatal(err)
	}
	written := version()
	for _, args := range [][]string{
		{"delete", "--wait=false", "jobs.sluice.dev/deleted"},
		{"patch", "jobs.sluice.dev/torn", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`}, {"delete", "jobs.sluice.dev/torn"},
	} {
		if out, err := s.Kubectl(append([]string{"-n", s.ns}, args...)...); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	s.apply(t, items("torn", 100, "1ms")) // another job under the name of one that went
	s.begin(t, "b", nil).works(t)
	s.until(t, "torn", "is done", func(x seen) bool { return done(x) && x.Progress == "100/100" })
	plane.Eventually(t, "the deleted object goes", func() (bool, string) {
		out, err := s.Kubectl("-n", s.ns, "get", "jobs.sluice.dev", "--no-headers", "-o", "name")
		return err == nil && !strings.Contains(out, "deleted"), fmt.Sprint(out, err)
	})
	s.until(t, "kept", "runs", working)
	if again, err := s.status("finished"); err != nil || again.Subjobs != first.Subjobs || !done(again) {
		t.Errorf("before %+v, after %+v, %v", first, again, err)
	}
	if now := version(); now != written {
		t.Errorf("what was over was written again: version %s, then %s", written, now)
	}
	out, err := s.Kubectl("-n", s.ns, "get", "events", "--field-selector=involvedObject.name=finished,reason=Accepted", "-o",
		"jsonpath={.items[*].count}")
	if err != nil || out != "1" {
		t.Errorf("it was accepted %q times, %v", out, err)
	}
}

// TestOneOfTwoWorks: the second waits for its lease, and works once the first has ended.
func TestOneOfTwoWorks(t *testing.T) {
	s := newSite(t, plane.Of(t))
	first := s.begin(t, "a", nil)
	first.works(t)
	second := s.begin(t, "b", func(o *operator.Options) { o.DataDir = t.TempDir() }) // no lock of files keeps them apart
	s.apply(t, items("count", 100, "1ms"))
	s.until(t, "count", "is done", done)
	select {
	case <-second.ready:
		t.Fatal("two operators work at once")
	default:
	}
	if err := first.end(t); err != nil {
		t.Fatal(err)
	}
	second.works(t)
}

// TestWhoLosesItsLeaseStops: an operator that the API server does not hear any more ends.
func TestWhoLosesItsLeaseStops(t *testing.T) {
	s := newSite(t, plane.Start(t))
	x := s.begin(t, "a", func(o *operator.Options) { o.Lease = 3 * time.Second })
	x.works(t)
	s.Kill(plane.APIServer)
	select {
	case err := <-x.ended:
		if errkind.Of(err) != errkind.Unavailable || !strings.Contains(err.Error(), "the lease of this operator was not renewed") {
			t.Errorf("it ended with %v", err)
		}
		x.ended <- nil
	case <-time.After(plane.Within):
		t.Fatal("it goes on without its lease")
	}
}

// TestAnotherClustersData: a data directory of one cluster does nothing in another.
func TestAnotherClustersData(t *testing.T) {
	s := newSite(t, plane.Of(t))
	if err := os.WriteFile(s.data+"/CLUSTER", []byte("11111111-2222-3333-4444-555555555555\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	x := s.begin(t, "a", nil)
	err := <-x.ended
	x.ended <- err
	if errkind.Of(err) != errkind.Conflict || !strings.Contains(err.Error(), "is of cluster 11111111") {
		t.Errorf("%v", err)
	}
}

// TestWhatIsRefused: at once by the API server where one key or a rule says it, in a condition where only the reader can; all of it, and
// without a webhook.
func TestWhatIsRefused(t *testing.T) {
	s := newSite(t, plane.Of(t))
	good := items("good", 10, "1ms")
	for what, c := range map[string]struct{ manifest, want string }{
		"no image":          {strings.Replace(good, "image:", "# image:", 1), "spec.image: Required value"},
		"a local workdir":   {items("good", 10, "1ms", "workdir: ."), "put the directory into its store"},
		"two kinds of work": {items("good", 10, "1ms", "rigid: {walltime: 1h}"), "exactly one of items, steps, rigid, external"},
		"several slices": {strings.Replace(good, "items: {total: 10, perItem: 1ms, parallelism: 2}",
			"rigid: {walltime: 1h, slices: 2}", 1), "one Pod with one slice"},
		"an unknown key":      {items("good", 10, "1ms", "colour: red"), `unknown field "spec.colour"`},
		"a number as text":    {items("good", 10, "1ms", "env: {A: 0.10}"), "must be of type string"},
		"a name with a dot":   {strings.Replace(good, "name: good", "name: go.od", 1), "metadata.name"},
		"a subdir of nothing": {items("good", 10, "1ms", "subdir: src"), "workdir, which is missing"},
	} {
		if out, err := s.KubectlWith(c.manifest, "-n", s.ns, "apply", "--dry-run=server", "-f", "-"); err == nil ||
			!strings.Contains(out+err.Error(), c.want) {
			t.Errorf("%s: %v\n%s\nwant %s", what, err, out, c.want)
		}
	}
	s.apply(t, good)
	s.apply(t, items("good-2", 10, "1ms", "workdir: store://"+strings.Repeat("0a", 32), "overheadMax: 10%", "startup: 0"))

	x := s.begin(t, "a", nil)
	x.works(t)
	s.apply(t, strings.Replace(items("bad", 10, "1ms", "worth: {progress: 0.1}"), "memory: 64Mi", "memory: {phases: 3}", 1))
	bad := s.until(t, "bad", "is refused", func(x seen) bool { return strings.HasPrefix(x.condition("Accepted"), "False Invalid") })
	for _, want := range []string{"spec.memory.phases: is", "spec.worth: progress, laxity and overhead add up to 0.1"} {
		if !strings.Contains(bad.condition("Accepted"), want) {
			t.Errorf("%s does not say %s", bad.condition("Accepted"), want)
		}
	}
	s.apply(t, strings.Replace(items("huge", 10, "1ms"), "memory: 64Mi", "memory: 64Gi", 1))
	s.until(t, "huge", "is refused", func(x seen) bool {
		return strings.Contains(x.condition("Accepted"), "False Refused") &&
			strings.Contains(x.condition("Accepted"), "could never run here")
	})

	s.until(t, "good", "is done", done)
	s.apply(t, items("good", 20, "1ms"))
	changed := s.until(t, "good", "can't be changed",
		func(x seen) bool { return strings.HasPrefix(x.condition("Accepted"), "False Changed") })
	if !done(changed) || changed.Progress != "10/10" {
		t.Errorf("%+v", changed)
	}
	// It stays as it was, whoever looks at it again.
	if err := x.end(t); err != nil {
		t.Fatal(err)
	}
	s.begin(t, "b", nil).works(t)
	s.apply(t, items("after", 10, "1ms"))
	s.until(t, "after", "is done", done)
	if again, err := s.status("good"); err != nil || !done(again) || again.Progress != "10/10" ||
		!strings.HasPrefix(again.condition("Accepted"), "False Changed") {
		t.Errorf("%+v, %v", again, err)
	}
}

// TestDefinitionsOfBefore: helm upgrade leaves definitions as they are, and what a status then may not have must not keep all of it from
// being written.
func TestDefinitionsOfBefore(t *testing.T) {
	p := plane.Start(t)
	s := newSite(t, p)
	if out, err := p.Kubectl("patch", "crd", "jobs.sluice.dev", "--type=json", "-p",
		`[{"op":"remove","path":"/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/operator"}]`); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	s.begin(t, "a", nil).works(t)
	for _, name := range []string{"count", "again"} {
		s.apply(t, items(name, 100, "1ms"))
		s.until(t, name, "is done", done)
	}
}

// TestQueues: a job whose queue is not there is accepted once it is, and only from the namespaces that may name it.
func TestQueues(t *testing.T) {
	s := newSite(t, plane.Of(t))
	s.begin(t, "a", nil).works(t)
	queue := "q" + s.ns
	s.apply(t, items("early", 10, "1ms", "queue: "+queue))
	s.until(t, "early", "is refused", func(x seen) bool {
		return strings.Contains(x.condition("Accepted"), "False Denied spec.queue: there is no queue")
	})
	manifest := "apiVersion: sluice.dev/v1alpha1\nkind: Queue\nmetadata: {name: " + queue +
		"}\nspec: {weight: 3, cap: 1, namespaces: [%s]}\n"
	t.Cleanup(func() { _, _ = s.Kubectl("delete", "queues.sluice.dev", queue) })
	s.apply(t, fmt.Sprintf(manifest, "elsewhere"))
	s.until(t, "early", "is denied", func(x seen) bool { return strings.Contains(x.condition("Accepted"), "False Denied") })
	s.apply(t, fmt.Sprintf(manifest, s.ns))
	s.until(t, "early", "is done", done)
	if out, err := s.Kubectl("wait", "--for=condition=Accepted", "--timeout=120s", "queues.sluice.dev/"+queue); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestPools: what is offered follows the objects, without a restart of the process and without harm to what runs.
func TestPools(t *testing.T) {
	s := newSite(t, plane.Of(t))
	x := s.begin(t, "a", nil)
	x.works(t)
	s.apply(t, items("long", 1_000_000, "100ms"))
	s.until(t, "long", "runs", working)
	s.mu.Lock()
	begun := s.starts
	s.mu.Unlock()
	name := "p" + s.ns
	t.Cleanup(func() { _, _ = s.Kubectl("delete", "slicepools.sluice.dev", name, name+"-bad") })
	const head = "apiVersion: sluice.dev/v1alpha1\nkind: SlicePool\nmetadata: {name: "
	if out, err := s.KubectlWith(head+name+"}\nspec: {}\n", "apply", "-f", "-"); err == nil ||
		!strings.Contains(err.Error(), "names deviceClasses, extendedResources, or both") {
		t.Errorf("%v\n%s", err, out)
	}
	s.apply(t, head+name+"-bad}\nspec: {extendedResources: [{name: gpu}]}\n")
	s.apply(t, head+name+"}\nspec: {extendedResources: [{name: nvidia.com/mig-1g.10gb}]}\n")
	plane.Eventually(t, "the pool is offered", func() (bool, string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		return slices.ContainsFunc(s.pools, func(p config.SlicePool) bool {
			return p.Name == name && p.Resources[0].Name == "nvidia.com/mig-1g.10gb"
		}), fmt.Sprint(s.pools)
	})
	for what, want := range map[string]string{name: "True", name + "-bad": "False"} {
		plane.Eventually(t, "what is said of "+what, func() (bool, string) {
			out, err := s.Kubectl("get", "slicepools.sluice.dev", what, "-o", `jsonpath={.status.conditions[?(@.type=="Accepted")].status}`)
			return err == nil && out == want, fmt.Sprint(out, err)
		})
	}
	s.until(t, "long", "still runs", working)
	s.mu.Lock()
	again := s.starts
	s.mu.Unlock()
	select {
	case <-x.ready:
		t.Error("the daemon was opened anew for that")
	default:
	}
	if again != begun {
		t.Errorf("%d starts, then %d", begun, again)
	}
}

// TestOptions: all that is missing is said at once.
func TestOptions(t *testing.T) {
	err := operator.Run(context.Background(), operator.Options{Name: "Has_No_Good_Name"})
	for _, want := range []string{"--name Has_No_Good_Name", "--data-dir", "--horizon", "--operator-namespace"} {
		if err == nil || errkind.Of(err) != errkind.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %s", err, want)
		}
	}
	if errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
