//go:build kubernetes

package measure

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	policies "sluice.dev/sluice/internal/core/policy/all"
	"sluice.dev/sluice/internal/edge/config"
	"sluice.dev/sluice/internal/edge/executor"
	executors "sluice.dev/sluice/internal/edge/executor/kubernetes"
	inventories "sluice.dev/sluice/internal/edge/inventory/kubernetes"
	"sluice.dev/sluice/internal/edge/store/local"
	"sluice.dev/sluice/internal/edge/store/storetest"
	"sluice.dev/sluice/internal/face/operator"
	"sluice.dev/sluice/internal/host"
	"sluice.dev/sluice/test/kube/plane"
)

// gone says that an object is no more, or another of its name is there.
func gone(err error) bool { return apierrors.IsNotFound(err) || apierrors.IsConflict(err) }

// sluice is an operator at work in a world, and its machines' kubelets.
type sluice struct {
	*world
	crowd *crowd
	wire  *plane.Wire
}

// startSluice starts an operator that offers all devices of the world and gives back with notice, with programs that take so long for a
// unit and react so fast.
func (w *world) startSluice(notice, perUnit, reaction time.Duration) *sluice {
	t := w.t
	t.Helper()
	text, pool := w.device.pool(w.by)
	pool.Notice = notice
	install(t, w.p, text)
	under, err := local.Open(filepath.Join(t.TempDir(), "store"))
	if err != nil {
		t.Fatal(err)
	}
	lent := storetest.Lend(t, under)
	s := &sluice{world: w, crowd: newCrowd(t, w.p.Client(), perUnit, reaction)}
	cfg, wire := w.p.Wire()
	s.wire = wire
	log := slog.New(slog.DiscardHandler)
	if os.Getenv("SLUICE_KUBE_LOG") != "" {
		log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	o := operator.Options{
		Cluster: cfg, Name: nameOfOperator(), Namespace: w.namespace, DataDir: t.TempDir(), NewJournal: true, Identity: "measure",
		Listen: "127.0.0.1:0", Health: "127.0.0.1:0",
		Policy: policies.Default(), Horizon: time.Hour, Log: log, Version: "test",
	}
	ready := make(chan struct{}, 8)
	o.Ready = func(string, string) { ready <- struct{}{} }
	o.Parts = func(ctx context.Context, journal operator.Journal, offered []config.SlicePool) (operator.Parts, error) {
		client, dynamics := kubernetes.NewForConfigOrDie(cfg), dynamic.NewForConfigOrDie(cfg)
		inv, err := inventories.Open(ctx, inventories.Options{Client: client, Dynamic: dynamics, Operator: o.Name, Journal: journal.Name,
			Pools: []inventories.Pool{pool}, Log: log})
		if err != nil {
			return operator.Parts{}, err
		}
		return operator.Parts{Inventory: inv, Offer: func([]config.SlicePool) error { return nil },
			Executor: func(e host.Env) (executor.Executor, host.Files, error) {
				x, err := executors.Open(executors.Options{Client: client, Store: lent, Operator: o.Name, Journal: journal.Name,
					Key: journal.Key, Made: journal.Made, ShimImage: "example.com/sluice:1", Namespace: w.namespace, Deliver: e.Deliver,
					Slice: e.Slice, Log: log})
				return x, nil, err
			}}, nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- operator.Run(ctx, o) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the operator: %v", err)
		}
	})
	select {
	case <-ready:
	case err := <-ended:
		ended <- err
		t.Fatalf("the operator has ended: %v", err)
	case <-time.After(plane.Within):
		t.Fatal("the operator does not work")
	}
	return s
}

// leftover makes the priority class of subjobs.
func (w *world) leftover() { leftover(w.t, w.p) }

// submit applies jobs that would take every device, as users do.
func (s *sluice) submit(jobs, units int, unit, startup time.Duration) {
	t := s.t
	t.Helper()
	devices := s.device.pieces * len(s.machines)
	for i := range jobs {
		text := fmt.Sprintf(`apiVersion: sluice.dev/v1alpha1
kind: Job
metadata: {name: fill-%d}
spec:
  items: {total: %d, perItem: %s, parallelism: %d}
  memory: 64Mi
  startup: %s
  image: example.com/fill:1
  command: [fill]
  theta: 0.01
`, i, units, unit, (devices+jobs-1)/jobs, startup)
		if out, err := s.p.KubectlWith(text, "-n", s.namespace, "apply", "-f", "-"); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
}

// fill is submit, and returns when all devices are taken.
func (s *sluice) fill(jobs, units int, unit time.Duration) {
	t := s.t
	t.Helper()
	s.submit(jobs, units, unit, 0)
	devices := s.device.pieces * len(s.machines)
	plane.Eventually(t, "all devices are taken", func() (bool, string) {
		n := s.crowd.running()
		said := fmt.Sprintf("%d of %d", n, devices)
		if n == 0 {
			out, err := s.p.Kubectl("get", "-A", "jobs.sluice.dev,slicepools.sluice.dev,pods", "-o", "wide")
			said += fmt.Sprint("\n", out, err)
		}
		return n >= devices, said
	})
}
