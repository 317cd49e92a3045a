//go:build kubernetes

package operator_test

import (
	"fmt"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/face/operator"
	"sluice.dev/sluice/test/kube/plane"
)

// TestTwoOperatorsOfOneNamespace: one is for all of the cluster, the other for this namespace alone, and both see each Job. Each is run by
// one of them, as long as it is there: judged by what their executors were told to start.
func TestTwoOperatorsOfOneNamespace(t *testing.T) {
	p := plane.Of(t)
	wide := newSite(t, p)
	narrow := &site{Plane: p, ns: wide.ns, data: t.TempDir()}
	begin := func(s *site, name, watch string) *op {
		t.Helper()
		x := s.begin(t, name, func(o *operator.Options) { o.Name, o.Watch = name, watch })
		x.works(t)
		return x
	}
	a, b := begin(wide, "wide", ""), begin(narrow, "narrow", wide.ns)
	owner := func(name string) string {
		out, err := wide.Kubectl("-n", wide.ns, "get", "jobs.sluice.dev", name, "-o",
			`jsonpath={.metadata.annotations.sluice\.dev/operator}/{.status.operator}`)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	const jobs = 12
	var manifests []string
	for i := range jobs {
		manifests = append(manifests, items(fmt.Sprint("short-", i), 100, "1ms"))
	}
	manifests = append(manifests, items("long", 1_000_000, "100ms"))
	wide.apply(t, strings.Join(manifests, "---\n"))
	for i := range jobs {
		wide.until(t, fmt.Sprint("short-", i), "is done", done)
	}
	wide.until(t, "long", "runs", working)
	for i := range jobs {
		once(t, wide, narrow, fmt.Sprint(wide.ns, ".short-", i))
	}
	once(t, wide, narrow, wide.ns+".long")

	// What is asked about it its own operator answers, and nobody else: neither at once, nor after.
	mine0, _, _ := strings.Cut(owner("long"), "/")
	wide.apply(t, "apiVersion: sluice.dev/v1alpha1\nkind: Request\nmetadata: {name: why}\nspec: {ask: Explain, job: long, operator: "+mine0+
		"}\n")
	plane.Eventually(t, "an answer", func() (bool, string) {
		out, err := wide.Kubectl("-n", wide.ns, "get", "requests.sluice.dev", "why", "-o",
			`jsonpath={.status.operator} {.status.conditions[0].reason}`)
		return err == nil && out == mine0+" Answered", fmt.Sprint(out, err)
	})

	// Whose it is stays, whoever else comes back; and only its own operator lets it go.
	mine, stops, goes := wide, b, a
	if owner("long") == "narrow/narrow" {
		mine, stops, goes = narrow, a, b
	}
	if err := stops.end(t); err != nil {
		t.Fatal(err)
	}
	// as kubectl replace does
	if out, err := wide.Kubectl("-n", wide.ns, "patch", "jobs.sluice.dev/long", "--type=merge", "-p",
		`{"metadata":{"annotations":null}}`); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if mine == wide {
		begin(narrow, "narrow", wide.ns)
	} else {
		begin(wide, "wide", "")
	}
	wide.apply(t, items("after", 100, "1ms"))
	wide.until(t, "after", "is done", done)
	if err := goes.end(t); err != nil {
		t.Fatal(err)
	}
	if out, err := wide.Kubectl("-n", wide.ns, "delete", "--wait=false", "jobs.sluice.dev/long"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	wide.apply(t, items("last", 100, "1ms"))
	wide.until(t, "last", "is done", done)
	if out, err := wide.Kubectl("-n", wide.ns, "get", "jobs.sluice.dev/long", "-o", "jsonpath={.metadata.finalizers}"); err != nil ||
		!strings.Contains(out, "sluice.dev/job") {
		t.Errorf("the other operator has let it go: %s, %v", out, err)
	}
	if mine == wide {
		begin(wide, "wide", "")
	} else {
		begin(narrow, "narrow", wide.ns)
	}
	if out, err := wide.Kubectl("-n", wide.ns, "wait", "--for=delete", "--timeout=120s", "jobs.sluice.dev/long"); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	once(t, wide, narrow, wide.ns+".long")
}

// once fails where a job was started by both of two sites, or by neither.
func once(t *testing.T, a, b *site, id string) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	b.mu.Lock()
	defer b.mu.Unlock()
	if x, y := a.began[id], b.began[id]; (x == 0) == (y == 0) {
		t.Errorf("job %s: %d subjobs of one operator, %d of the other", id, x, y)
	}
}
