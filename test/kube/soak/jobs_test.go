//go:build kubernetes

package soak

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"sluice.dev/sluice/internal/edge/cluster"
	"sluice.dev/sluice/internal/edge/store"
	"sluice.dev/sluice/internal/edge/store/tree"
)

//go:embed work.sh
var program []byte

// image is what the operator calls its own image, and the kubelets know.
const image = "sluice"

// resource is what the machines have some of.
const resource = "example.com/slice"

// pace is what a unit takes.
const pace = "0.1"

// jobs are the Job objects of a namespace.
type jobs struct {
	dynamic.ResourceInterface
	// workdir is the digest of their work directory, notes the folder that their programs write to.
	workdir, notes string
}

func newJobs(t *testing.T, client dynamic.Interface, namespace string, where store.Store, notes string) *jobs {
	t.Helper()
	work := t.TempDir()
	if err := os.WriteFile(filepath.Join(work, "work.sh"), program, 0o600); err != nil {
		t.Fatal(err)
	}
	packed, err := tree.Scan(work)
	if err != nil {
		t.Fatal(err)
	}
	o, err := where.Put(t.Context(), "", io.NewSectionReader(packed, 0, packed.Size()))
	if err != nil {
		t.Fatal(err)
	}
	of := schema.GroupVersionResource{Group: cluster.Group, Version: cluster.Version, Resource: "jobs"}
	return &jobs{client.Resource(of).Namespace(namespace), string(o.Digest), notes}
}

// apply makes the object of a workload.
func (j *jobs) apply(ctx context.Context, w workload) error {
	kind, work := "items", map[string]any{"total": w.total, "perItem": pace + "s", "parallelism": int64(3)}
	if w.chain {
		kind, work = "steps", map[string]any{"total": w.total, "perStep": pace + "s", "every": int64(5)}
	}
	_, err := j.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": cluster.Group + "/" + cluster.Version, "kind": "Job", "metadata": map[string]any{"name": w.name},
		"spec": map[string]any{
			kind: work, "memory": "64Mi", "image": "example.com/work:1", "workdir": store.Scheme + j.workdir,
			"command": []any{"bash", "work.sh"},
			"startup": "5s", "tauMin": "1s", "overheadMax": "0.9", "grace": "1s", "theta": "0.01", "maxFailures": int64(1000),
			"env": map[string]any{"NOTES": filepath.Join(j.notes, w.name), "LIFE": strconv.FormatInt(w.life, 10), "PACE": pace,
				"KIND": kind},
		},
	}}, metav1.CreateOptions{})
	return err
}

// left says which jobs of a list are not complete, and how they fare.
func (j *jobs) left(ctx context.Context, work []workload) (list []string) {
	for _, w := range work {
		o, err := j.Get(ctx, w.name, metav1.GetOptions{})
		if err != nil {
			list = append(list, err.Error())
			continue
		}
		if state, _, _ := unstructured.NestedString(o.Object, "status", "state"); state != "COMPLETED" {
			list = append(list, fmt.Sprint(w.name, ": ", o.Object["status"]))
		}
	}
	return list
}

func number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return -1
	}
	return n
}
