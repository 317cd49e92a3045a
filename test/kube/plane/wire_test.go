//go:build kubernetes

package plane

import (
	"context"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

func TestMain(m *testing.M) { os.Exit(Run(m)) }

func TestWhatAPathIsAbout(t *testing.T) {
	for path, want := range map[string]string{
		"/api/v1/namespaces/x/pods/y":                       "pods",
		"/api/v1/namespaces/x/pods/y/status":                "pods/status",
		"/api/v1/namespaces/x":                              "namespaces",
		"/api/v1/nodes":                                     "nodes",
		"/apis/resource.k8s.io/v1/namespaces/x/claims":      "claims",
		"/apis/resource.k8s.io/v1/resourceslices":           "resourceslices",
		"/apis/sluice.dev/v1alpha1/namespaces/a/jobs/b/log": "jobs/log",
		"/readyz": "/readyz",
	} {
		if got := resourceOf(path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

// TestAWireIsCut: a watch on it ends, a client on it comes back, and one without it has noticed nothing.
func TestAWireIsCut(t *testing.T) {
	p, ctx := Of(t), context.Background()
	ns := p.Namespace(t)
	config, wire := p.Wire()
	client, other := kubernetes.NewForConfigOrDie(config), p.Client()
	watch, err := client.CoreV1().ConfigMaps(ns).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	still, err := other.CoreV1().ConfigMaps(ns).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer still.Stop()
	wire.Down()
	for range watch.ResultChan() { // until it ends
	}
	if _, err := client.CoreV1().ConfigMaps(ns).List(ctx, metav1.ListOptions{}); err == nil {
		t.Error("a list through a wire that is down")
	}
	if _, err := other.CoreV1().ConfigMaps(ns).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "seen"}},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for e := range still.ResultChan() {
		if c, ok := e.Object.(*corev1.ConfigMap); ok && c.Name == "seen" {
			break
		}
	}
	wire.Up()
	Eventually(t, "the client is back", func() (bool, string) {
		_, err := client.CoreV1().ConfigMaps(ns).Get(ctx, "seen", metav1.GetOptions{})
		return err == nil, "not yet"
	})
	if calls := wire.Calls(); calls["WATCH configmaps"] != 1 || calls["GET configmaps"] < 2 {
		t.Errorf("counted %v", calls)
	}
}

// TestAPIServerComesBack: what was there before it was killed, or stopped, is there after.
func TestAPIServerComesBack(t *testing.T) {
	p, ctx := Start(t), context.Background()
	for i, end := range []func(Part){p.Kill, p.Stop} {
		ns := p.Namespace(t)
		end(APIServer)
		if _, err := p.Client().CoreV1().Namespaces().Get(ctx, ns, metav1.GetOptions{}); err == nil {
			t.Fatalf("%d: answered by an API server that is gone", i)
		}
		if err := p.Start(APIServer); err != nil {
			t.Fatal(err)
		}
		if err := p.Start(APIServer); err == nil {
			t.Fatal("started twice")
		}
		if _, err := p.Client().CoreV1().Namespaces().Get(ctx, ns, metav1.GetOptions{}); err != nil {
			t.Errorf("%d: after it is back: %v", i, err)
		}
		if out, err := p.Kubectl("get", "namespace", ns, "-o", "name"); err != nil || out != "namespace/"+ns+"\n" {
			t.Errorf("%d: kubectl says %q, %v", i, out, err)
		}
		if u, err := p.Usage(APIServer); err != nil || u.Resident < 50<<20 || u.Peak < u.Resident || u.CPU <= 0 {
			t.Errorf("%d: %+v, %v", i, u, err)
		}
	}
}
