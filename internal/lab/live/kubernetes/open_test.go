//go:build kubernetes

package kubernetes

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/lab/history/record"
)

// TestOpen: a cluster is named as kubectl has it, and is sent nothing but questions for Pods and nodes.
func TestOpen(t *testing.T) {
	n, p := aNode("n", 2), aPod("a", 0)
	n.TypeMeta, p.TypeMeta = metav1.TypeMeta{Kind: "Node", APIVersion: "v1"}, metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		kind, is := map[string]string{"/api/v1/pods": "PodList", "/api/v1/nodes": "NodeList"}[r.URL.Path]
		if r.Method != http.MethodGet || !is || r.Header.Get("Authorization") != "Bearer secret" {
			t.Errorf("%s %s with %q", r.Method, r.URL, r.Header.Get("Authorization"))
		}
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("watch") != "" {
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			return
		}
		items := []any{p}
		if kind == "NodeList" {
			items = []any{n}
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"kind": kind, "apiVersion": "v1", "items": items, // or the client is gone
			"metadata": map[string]string{"resourceVersion": "7"}})
	}))
	t.Cleanup(server.Close)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel) // before the server waits for its watches
	file := filepath.Join(t.TempDir(), "config")
	text := fmt.Sprintf("{apiVersion: v1, kind: Config, clusters: [{name: c, cluster: {server: %q, "+
		"insecure-skip-tls-verify: true}}], users: [{name: u, user: {token: secret}}], "+
		"contexts: [{name: gpus, context: {cluster: c, user: u}}]}", server.URL)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(ctx, Options{file, "other"}); errkind.Of(err) != errkind.Invalid ||
		!strings.Contains(err.Error(), `--kubeconfig: context "other" does not exist`) {
		t.Errorf("a context that is not there: %v", err)
	}
	t.Setenv("KUBECONFIG", file+".none")
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	if _, err := Open(ctx, Options{}); errkind.Of(err) != errkind.Invalid || !strings.HasPrefix(err.Error(), "no cluster is known here: ") {
		t.Errorf("no cluster at all: %v", err)
	}
	s, err := Open(ctx, Options{file, "gpus"})
	if err != nil {
		t.Fatal(err)
	}
	lines, _, err := s.Look(ctx, time.Now(), true)
	if err != nil || s.Name() != "kubernetes" {
		t.Fatal(s.Name(), err)
	}
	var hosts []record.Host
	for _, l := range lines {
		hosts = append(hosts, l.Hosts...)
	}
	if pods := podsOf(lines); len(pods) != 1 || pods[0].Name != "a" || len(hosts) != 1 || hosts[0].Name != "n" {
		t.Errorf("%v, %v", pods, hosts)
	}
}

// TestTenThousandPods: of each no more is kept than is read, whatever stands in it.
func TestTenThousandPods(t *testing.T) {
	const pods = 10_000
	made := 0
	f := newFeed(cutPod, func(_ string, err error) error { return err },
		func(_ context.Context, o metav1.ListOptions) (items []metav1.Object, at metav1.ListInterface, err error) {
			for range o.Limit {
				made++
				p := aPod(fmt.Sprint("worker-", made), 0)
				p.Annotations = map[string]string{"large": strings.Repeat("x", 1<<10) + fmt.Sprint(made)}
				for i := range 20 {
					c := &p.Spec.Containers[0]
					c.Env = append(c.Env, corev1.EnvVar{Name: fmt.Sprint(i, made), Value: fmt.Sprint(made)})
				}
				p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"memory": resource.MustParse("8Gi")}
				items = append(items, p)
			}
			more := &metav1.ListMeta{ResourceVersion: "1"}
			if made < pods {
				more.Continue = "more"
			}
			return items, more, nil
		}, nil)
	held := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := held()
	if _, err := f.all(t.Context()); err != nil {
		t.Fatal(err)
	}
	each := (held() - before) / pods
	t.Logf("%d bytes for each of %d Pods", each, len(f.now))
	if len(f.now) != pods || each > 1500 {
		t.Errorf("%d bytes for each of %d Pods", each, len(f.now))
	}
	runtime.KeepAlive(f)
}
