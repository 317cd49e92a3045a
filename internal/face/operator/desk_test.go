//go:build kubernetes

package operator

import (
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/edge/cluster"
	"sluice.dev/sluice/internal/edge/store/local"
	"sluice.dev/sluice/internal/edge/store/storetest"
	"sluice.dev/sluice/internal/face/api/apitest"
)

func requestObject(name string, age time.Duration, spec map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "sluice.dev/v1alpha1", "kind": "Request", "spec": spec}}
	o.SetName(name)
	o.SetNamespace("team-a")
	o.SetUID(types.UID("uid-" + name))
	o.SetGeneration(1)
	o.SetCreationTimestamp(metav1.NewTime(time.Now().Add(-age)))
	return o
}

// TestRequestsAreAnsweredOrRemoved: what nobody knows is said, and what nobody deletes goes, with what was left at its place.
func TestRequestsAreAnsweredOrRemoved(t *testing.T) {
	under, err := local.Open(filepath.Join(t.TempDir(), "store"))
	if err != nil {
		t.Fatal(err)
	}
	lent := storetest.Lend(t, under)
	const digest = "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"
	upload := map[string]any{"ask": "Upload", "digest": digest, "bytes": int64(3)}
	sent := map[string]any{"ask": "Upload", "digest": digest, "bytes": int64(3), "sent": true}
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{requests: "RequestList"},
		requestObject("unknown", 0, map[string]any{"ask": "Explain", "job": "nobody"}),
		requestObject("newer", 0, map[string]any{"ask": "Dance", "job": "x"}),
		requestObject("upload", 0, upload), requestObject("nothing-sent", 0, sent), requestObject("old", 2*lingers, upload),
		requestObject("others", lingers+lingers/2, map[string]any{"ask": "Explain", "job": "x", "operator": "east"}))
	d := newDesk(apitest.New(), lent, func(string, string) error { return nil }, client,
		&Options{Name: "main", Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { over <- d.run(ctx) }()
	for name, want := range map[string]string{"unknown": "False NotFound", "newer": "False Unsupported", "upload": "True Answered",
		"nothing-sent": "False NotFound"} {
		var got string
		for got == "" {
			o, err := client.Resource(requests).Namespace("team-a").Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range conditionsOf(o) {
				got = string(c.Status) + " " + c.Reason
			}
			if url, _, _ := unstructured.NestedString(o.Object, "status", "url"); (url != "") != (name == "upload" && got != "") {
				t.Errorf("%s: %q has the URL %q", name, got, url)
			}
			time.Sleep(time.Millisecond)
		}
		if got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	for {
		if _, err := client.Resource(requests).Namespace("team-a").Get(ctx, "old", metav1.GetOptions{}); err != nil {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if o, err := client.Resource(requests).Namespace("team-a").Get(ctx, "others", metav1.GetOptions{}); err != nil ||
		len(conditionsOf(o)) > 0 {
		t.Errorf("another operator's: %v, %v", o, err)
	}
	cancel()
	if err := <-over; err != nil {
		t.Error(err)
	}
}

// TestKindsHaveWords: each its own, which is read back.
func TestKindsHaveWords(t *testing.T) {
	for k := errkind.Unknown; k <= errkind.Corrupt; k++ {
		if word := KindWord(k); KindOf(word) != k || strings.ContainsAny(word, " ") || word == "" {
			t.Errorf("%v is %q, which is %v", k, word, KindOf(word))
		}
	}
	if KindOf("Newer") != errkind.Unknown {
		t.Error("a word of later versions")
	}
}

// TestAnExplanationNamesNobodyElsesJobs: neither in its fields nor in its sentences, and of slices that are alike it names one.
func TestAnExplanationNamesNobodyElsesJobs(t *testing.T) {
	e := status.Explanation{
		Prospect:     "it lost to team-b.secret of queue q: team-b.secret team-b.secret, and team-b.secret-2; team-a.mine went before",
		Summary:      "stopped: time taken (reclaim) by pod team-b/train-0",
		Reasons:      []status.Reason{{Text: "taken (lease) for job team-c.x from 10:00"}},
		Losses:       []status.Loss{{Winner: "team-b.secret"}, {Winner: "team-a.mine"}, {Winner: "team-b.secret-2"}, {}},
		AirlockSteps: []status.AirlockStep{{Spared: "job", Below: "job is worth more"}},
		Reclaims:     []status.ReclaimStep{{Wish: "uid-b", Who: "pod team-b/train-0"}, {Wish: "uid-a", Who: "pod team-a/train-0"}},
	}
	e.Job.Reason, e.Job.Name = "time taken (reclaim) by pod team-b/train-0", "team-a.mine"
	e.Rank.Place, e.Rank.Latest.Winner = 1, "team-b.secret"
	for _, id := range []job.SliceID{"a/1", "a/2", "b/1"} {
		e.Slices = append(e.Slices, status.SliceFit{Slice: id, Fits: id != "b/1"})
	}
	m := discreet(&e, "team-a")
	text, err := protojson.Marshal(m)
	if err != nil || strings.Contains(string(text), "team-b") || strings.Contains(string(text), "team-c") ||
		strings.Contains(m.Endured[0].Below, "job is") {
		t.Errorf("%s, %v", text, err)
	}
	const another = cluster.Another
	if m.Prospect != "it lost to "+another+" of queue q: "+another+" "+another+", and "+another+"; team-a.mine went before" ||
		m.Job.Name != "team-a.mine" {
		t.Errorf("%s", m.Prospect)
	}
	if m.Losses[0].Winner != another || m.Losses[1].Winner != "team-a.mine" || m.Losses[3].Winner != "" ||
		m.Rank.Latest.Winner != another || m.Endured[0].Spared != another {
		t.Errorf("%+v", m)
	}
	if m.Reclaims[0].Wish != "" || m.Reclaims[0].Who != "somebody of another namespace" || m.Reclaims[1].Who != "pod team-a/train-0" ||
		m.Reclaims[1].Wish != "uid-a" {
		t.Errorf("%+v", m.Reclaims)
	}
	if len(m.Slices) != 2 || m.Slices[0].Slice != "a/1" || m.Slices[1].Slice != "b/1" {
		t.Errorf("%+v", m.Slices)
	}
}
