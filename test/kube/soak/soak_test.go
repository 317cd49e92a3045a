//go:build kubernetes

package soak

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"sluice.dev/sluice/internal/edge/cluster"
	"sluice.dev/sluice/internal/edge/executor/kubernetes/podtest"
	"sluice.dev/sluice/internal/edge/store"
	"sluice.dev/sluice/test/kube/bucket"
	"sluice.dev/sluice/test/kube/plane"
)

func TestMain(m *testing.M) {
	if os.Getenv(operatorData) != "" {
		os.Exit(serve())
	}
	code := m.Run()
	podtest.Clean()
	os.Exit(code)
}

// count is how many slices a machine has.
const count = 2

// TestSoak strikes SLUICE_KUBE_KILLS times (25), as SLUICE_KUBE_SEED says, or the time; make kube-soak does it for longer. What it leaves
// is kept where something was wrong.
func TestSoak(t *testing.T) {
	kills, seed := int64(25), time.Now().UnixNano()
	for variable, n := range map[string]*int64{"SLUICE_KUBE_KILLS": &kills, "SLUICE_KUBE_SEED": &seed} {
		if text := os.Getenv(variable); text != "" {
			if *n = number(text); *n < 0 {
				t.Fatalf("%s=%s: want a whole number", variable, text)
			}
		}
	}
	t.Logf("seed %d", seed)
	dir, err := os.MkdirTemp("", "kube-soak-") //nolint:usetesting // it is kept when something was wrong
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("what is left is in %s", dir)
		} else {
			_ = os.RemoveAll(dir)
		}
	})
	in := func(name string) string {
		path := filepath.Join(dir, name)
		if err := os.Mkdir(path, 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	notes, scratch := in("notes"), in("outputs")

	began := time.Now()
	b := bucket.Start(t, in("store"))
	p := plane.Start(t, plane.With(plane.Scheduler, plane.Controllers))
	install(t, p)
	namespace := p.Namespace(t)
	where, err := bucket.Open(t.Context(), b.Address)
	if err != nil {
		t.Fatal(err)
	}
	seen := record(t, p.Client(), namespace)
	c := &chaos{
		rng: rand.New(rand.NewPCG(uint64(seed), 1)), p: p, client: p.Client(), namespace: namespace, bucket: b, work: workloads(kills),
		jobs: newJobs(t, dynamic.NewForConfigOrDie(p.Config()), namespace, where, notes),
	}
	ahead := map[string]time.Duration{"machine-0": 0, "machine-1": 2 * time.Second, "machine-2": -2 * time.Second}
	for i := range len(ahead) {
		name := fmt.Sprint("machine-", i)
		c.machines = append(c.machines, machine{podtest.Machine(t, podtest.Options{
			Client: p.Client(), Node: name, Resources: map[string]int64{resource: count}, Image: image, Every: 100 * time.Millisecond,
			Ahead: ahead[name],
		}), name})
	}
	c.operator = keep(t, filepath.Join(dir, "operator.log"), operatorData+"="+dataIn(dir), operatorCluster+"="+p.Kubeconfig(),
		operatorNamespace+"="+namespace,
		operatorName+"="+nameOfOperator(), operatorStore+"="+b.Address)
	for _, w := range c.work {
		if err := c.jobs.apply(t.Context(), w); err != nil {
			t.Fatal(err)
		}
	}
	ready := time.Since(began)
	c.run(t.Context(), int(kills))
	struck := time.Since(began)

	wrong, enough := c.wrong, 3*time.Minute*time.Duration(max(1, kills/25))
	until := func(what string, is func() string) {
		t.Helper()
		said := ""
		for end := time.Now().Add(enough); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
			if said = is(); said == "" {
				return
			}
		}
		wrong = append(wrong, fmt.Sprintf("not %s: %s", what, said))
	}
	until("every job is complete", func() string { return strings.Join(c.jobs.left(t.Context(), c.work), "\n") })
	until("every subjob is put away", func() string { return c.things(t.Context(), "pods") })
	done := time.Since(began)
	told, err := readNotes(notes)
	if err != nil {
		t.Fatal(err)
	}
	committed, err := outputs(t.Context(), where, scratch)
	if err != nil {
		t.Fatal(err)
	}
	lives := seen.list()
	wrong = slices.Concat(wrong, judgeOutputs(c.work, committed, told), judgeNotes(told), judgePods(lives, told, count, ahead))

	for _, w := range c.work {
		if err := c.jobs.Delete(t.Context(), w.name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	}
	until("every Job is gone", func() string {
		list, err := c.jobs.List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err.Error()
		}
		if n := len(list.Items); n > 0 {
			return fmt.Sprint(n, " are there")
		}
		return ""
	})
	until("nothing is left in the cluster", func() string { return c.things(t.Context(), "pods,secrets,resourceclaims") })
	until("nothing is left in the store but work directories", func() string {
		var left []string
		err := where.Names(t.Context(), "", func(n store.Named) error {
			if !strings.HasPrefix(n.Name, "work/") {
				left = append(left, n.Name)
			}
			return nil
		})
		places, failed := b.Objects("incoming")
		places = slices.DeleteFunc(places, func(p string) bool { return strings.Contains(p, "beats/") }) // the operator lives, and says so
		if left = append(left, places...); err != nil || failed != nil || len(left) > 0 {
			return fmt.Sprint(left, err, failed)
		}
		return ""
	})
	wrong = append(wrong, c.operator.judge()...)

	t.Logf("seed %d: %d strikes (%s); %d lives of the operator, of which %d gave up for a while; %d Pods, %d programs, %d outputs; "+
		"ready after %.1fs, struck until %.1fs, done after %.1fs, all after %.1fs",
		seed, kills, c.tally(), c.operator.starts, c.operator.yields, len(lives), len(ran(told)), len(committed), ready.Seconds(),
		struck.Seconds(), done.Seconds(), time.Since(began).Seconds())
	for _, w := range wrong {
		t.Error(w)
	}
	if t.Failed() {
		t.Logf("what was struck:\n%s", strings.Join(c.said, "\n"))
	}
}

// workloads is work that lasts for so many strikes.
func workloads(kills int64) []workload {
	n := max(1, kills/25)
	return []workload{
		{name: "items-0", total: 100 * n, life: 1}, {name: "items-1", total: 50 * n, life: 1}, {name: "steps-0", chain: true, total: 40 * n,
			life: 1}, {name: "steps-1", chain: true, total: 25 * n, life: 1},
	}
}

// install puts in what the chart would, a pool, and a queue whose windows are short.
func install(t *testing.T, p *plane.Plane) {
	t.Helper()
	never := corev1.PreemptNever
	if _, err := p.Client().SchedulingV1().PriorityClasses().Create(t.Context(), &schedulingv1.PriorityClass{
		ObjectMeta: metav1.ObjectMeta{Name: cluster.Leftover}, Value: -1_000_000_000, PreemptionPolicy: &never,
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	kubectl := func(text string, args ...string) {
		t.Helper()
		if out, err := p.KubectlWith(text, args...); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	p.Define(t)
	kubectl(`apiVersion: sluice.dev/v1alpha1
kind: SlicePool
metadata: {name: all}
spec: {extendedResources: [{name: `+resource+`, memory: 1Gi}], giveBack: {notice: 2s}}
---
apiVersion: sluice.dev/v1alpha1
kind: Queue
metadata: {name: default}
spec: {maxWindow: 9s}
`, "apply", "-f", "-")
}

// things are what is there of the operator's in the cluster, of some kinds; "": nothing.
func (c *chaos) things(_ context.Context, kinds string) string {
	out, err := c.p.Kubectl("-n", c.namespace, "get", kinds, "-l", cluster.LabelOperator, "-o", "name")
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(out)
}
