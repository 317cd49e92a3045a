//go:build kubernetes

package kubernetes

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"sluice.dev/sluice/internal/core/quantity"
)

// admitted is a cluster with one Pod, of a Job that Kueue lets run for an hour, of which ten minutes are over at t0.
func admitted() (*fake.Clientset, *dynamicfake.FakeDynamicClient) {
	const mig = "nvidia.com/mig-1g.10gb"
	workload := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "Workload",
		"metadata": map[string]any{
			"name": "job-j", "namespace": "a", "uid": "uid-w",
			"ownerReferences": []any{map[string]any{"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "uid-a-j",
				"controller": true}},
		},
		"spec": map[string]any{"maximumExecutionTimeSeconds": int64(3600)},
		"status": map[string]any{
			"accumulatedPastExexcutionTimeSeconds": int64(600),
			"conditions": []any{map[string]any{"type": "Admitted", "status": "True",
				"lastTransitionTime": t0.Format(time.RFC3339)}},
		},
	}}
	return serve(node("v", has(mig, 1)), newPod("a", "p", "v", asks(mig, 1), of("Job", "j"))),
		kueueOf(workload)
}

// endsAt waits until the one thing that others hold ends at an instant.
func endsAt(t *testing.T, inv *Inventory, at quantity.Instant) {
	t.Helper()
	wait(t, func() bool {
		held := held(inv)
		return len(held) == 1 && held[0].Closures[0].End == at
	})
}

// TestKueueSaysHowLong what it admits runs at most.
func TestKueueSaysHowLong(t *testing.T) {
	c, kueue := admitted()
	o := options(c)
	o.Dynamic = kueue
	endsAt(t, opened(t, o), at(50*time.Minute+30*time.Second))
}

// TestKueueIsAway: it has webhooks of its own. Nothing waits for it, nor does its silence count as the cluster's; once it is back it is
// listened to.
func TestKueueIsAway(t *testing.T) {
	for _, what := range []string{"which versions there are", "which Workloads there are"} {
		t.Run(what, func(t *testing.T) {
			c, kueue := admitted()
			var back atomic.Bool
			var asked atomic.Int64
			c.PrependReactor("get", "resource", func(clienttesting.Action) (bool, runtime.Object, error) {
				dra := asked.Add(1) <= 3 // DRA, and DeviceTaintRules in two versions
				return !back.Load() && !dra && what == "which versions there are", nil,
					errors.New("no endpoints available for service kueue")
			})
			kueue.PrependReactor("list", "workloads", func(clienttesting.Action) (bool, runtime.Object, error) {
				return !back.Load(), nil, errors.New("conversion webhook: connection refused")
			})
			o := options(c)
			o.Dynamic, o.Patience = kueue, 50*time.Millisecond
			inv := opened(t, o)
			endsAt(t, inv, quantity.Never)
			if _, err := inv.Away(); err != nil {
				t.Error("the cluster is said to be away:", err)
			}
			follow(t, inv)
			back.Store(true)
			endsAt(t, inv, at(50*time.Minute+30*time.Second))
		})
	}
}

// TestKueueComesLater than the operator: nobody waits for it, it is no news that it is not there, and once it is it is listened to.
func TestKueueComesLater(t *testing.T) {
	c, kueue := admitted()
	var there atomic.Bool
	var asked atomic.Int64
	c.PrependReactor("get", "resource", func(clienttesting.Action) (bool, runtime.Object, error) {
		dra := asked.Add(1) == 1
		return !there.Load() && !dra, nil, apierrors.NewNotFound(schema.GroupResource{Group: kueueGroup, Resource: "workloads"}, "")
	})
	var log bytes.Buffer
	o := options(c)
	o.Dynamic, o.Patience, o.absent, o.Log = kueue, time.Hour, 10*time.Millisecond, slog.New(slog.NewTextHandler(&log, nil))
	inv := opened(t, o)
	endsAt(t, inv, quantity.Never)
	wait(t, func() bool { return asked.Load() > 10 })
	follow(t, inv)
	there.Store(true)
	endsAt(t, inv, at(50*time.Minute+30*time.Second))
	if err := inv.Close(); err != nil || log.Len() != 0 {
		t.Errorf("it says %q, %v", &log, err)
	}
}

// TestOtherPoolsAreOffered: what is offered changes while it is looked at, for machines, resources and devices that no pool named before
// too.
func TestOtherPoolsAreOffered(t *testing.T) {
	const mig = "nvidia.com/mig-1g.10gb"
	parts := partitionable("w")
	c := serve(node("v", has(mig, 2)), node("w"), parts[0], parts[1], newPod("a", "p", "v", asks(mig, 1)))
	o := options(c)
	o.Pools = nil
	inv := opened(t, o)
	f := follow(t, inv)
	f.until(t, "v/mig-1g.10gb.0 gone", "w/gpu-0-mig-3g-0 gone")
	offer := func(pools ...Pool) {
		t.Helper()
		if err := inv.Offer(pools); err != nil {
			t.Fatal(err)
		}
	}
	offer(small())
	f.until(t, "v/mig-1g.10gb.0", "v/mig-1g.10gb.1 held", "w/gpu-0-mig-3g-0 gone")
	offer(migs("3g.40gb"))
	f.until(t, "v/mig-1g.10gb.0 gone", "v/mig-1g.10gb.1 gone", "w/gpu-0-mig-3g-0")
	only := small()
	only.Nodes = map[string]string{"kubernetes.io/hostname": "elsewhere"}
	offer(migs("3g.40gb"), only)
	f.until(t, "v/mig-1g.10gb.0 gone", "w/gpu-0-mig-3g-0")
	if err := inv.Offer([]Pool{{Name: "empty"}}); err == nil {
		t.Error("a pool of nothing is offered")
	}
	offer(small())
	f.until(t, "v/mig-1g.10gb.0", "w/gpu-0-mig-3g-0 gone")
	offer()
	f.until(t, "v/mig-1g.10gb.0 gone", "w/gpu-0-mig-3g-0 gone")
	if text := inv.Describe(); !strings.HasPrefix(text, "there is no pool") {
		t.Error(text)
	}
}
