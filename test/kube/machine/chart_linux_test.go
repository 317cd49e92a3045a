//go:build kubernetes && machine

package machine_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sluice.dev/sluice/test/kube/bucket"
	"sluice.dev/sluice/test/kube/machine"
	"sluice.dev/sluice/test/kube/plane"
)

// The chart's image, where its operator is, and what it is about.
const (
	operatorImage = "machine.test/operator"
	system        = "sluice-system"
	mig           = "nvidia.com/mig-1g.10gb"
)

// stored is an object of the store, as it is named to people.
var stored = regexp.MustCompile("store://[0-9a-f]{64}")

// stores is a bucket, as we reach it and as the machine's Pods do.
func stores(t *testing.T, m *machine.Machine) (ours, theirs string) {
	t.Helper()
	s := bucket.Start(t, t.TempDir())
	return bucket.Spec(s.Address), bucket.Spec(m.Reach(t, s.Address))
}

// helm builds the program of Helm's library, a module of its own, and returns what runs it on the plane.
func helm(t *testing.T, p *plane.Plane) func(args ...string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "helm")
	build := exec.Command("go", "build", "-o", path, ".")
	build.Dir = "../../../tools/helm"
	build.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), path, args...)
		cmd.Env = append(os.Environ(), "KUBECONFIG="+p.Kubeconfig(), "HOME="+t.TempDir())
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("helm %q: %v\n%s\n%s", args, err, out, state(p, system))
		}
	}
}

// state is what a person would look at.
func state(p *plane.Plane, namespace string) string {
	pods, _ := p.Kubectl("-n", namespace, "get", "pods,pvc,events", "-o", "wide")
	logs, _ := p.Kubectl("-n", namespace, "logs", "deploy/sluice", "--tail=40")
	return pods + logs
}

// TestFromHelmInstallToAFinishedJob is the page's title on real parts: the image that `make image` makes, the chart with Helm's library,
// the operator as a Pod with its account, volume, probes and restrictions, a bucket, and a job applied with kubectl, to the output that a
// person reads; then the operator is deleted while a job runs, and all of it removed.
func TestFromHelmInstallToAFinishedJob(t *testing.T) {
	p, m := plane.Of(t), machine.Of(t)
	kubectl := func(stdin string, args ...string) string {
		t.Helper()
		out, err := p.KubectlWith(stdin, args...)
		if err != nil {
			t.Fatalf("%v\n%s\n%s", err, out, state(p, system))
		}
		return out
	}
	run := helm(t, p)
	sluice := machine.Build(t, "sluice", "s3 kubernetes", "./cmd/sluice")
	m.Image(t, operatorImage+":v1", sluice, machine.Build(t, "sluice-shim", "s3 kubernetes", "./cmd/sluice-shim"))
	m.Image(t, programImage, machine.Build(t, "program", "", "./test/kube/machine/program"))
	m.Have(t, mig, 2)
	ours, store := stores(t, m)

	kubectl("", "create", "namespace", system)
	t.Cleanup(func() { _, _ = p.Kubectl("delete", "namespace", system, "--wait=false") })
	kubectl("", "label", "namespace", system, "pod-security.kubernetes.io/enforce=restricted")
	kubectl("", "-n", system, "create", "secret", "generic", "store", "--from-literal=AWS_ACCESS_KEY_ID=access",
		"--from-literal=AWS_SECRET_ACCESS_KEY=a-secret-of-tests")
	kubectl(
		fmt.Sprintf(
			`{"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "journal"}, "spec": {"capacity": {"storage": "10Gi"}, "accessModes": ["ReadWriteOnce"],
"persistentVolumeReclaimPolicy": "Retain", "hostPath": {"path": %q}}}`, m.Directory(t, "journal", 65532)), "apply", "-f", "-")
	run("install", "sluice", system, "../../../deploy/helm/sluice", "image.repository="+operatorImage, "image.tag=v1", "store.url="+store,
		"store.secret=store")

	theirs := p.Namespace(t, "pod-security.kubernetes.io/enforce", "restricted")
	kubectl("apiVersion: sluice.dev/v1alpha1\nkind: SlicePool\nmetadata: {name: mig}\nspec: {extendedResources: [{name: "+mig+"}]}\n",
		"apply", "-f", "-")
	job := func(name, each string) string {
		return fmt.Sprintf("apiVersion: sluice.dev/v1alpha1\nkind: Job\nmetadata: {name: %s}\nspec:\n  items: {total: 40, perItem: %s, "+
			"parallelism: 2}\n  memory: 64Mi\n  image: %s\n  command: [/program, count, %[2]s]\n", name, each, programImage)
	}
	var want strings.Builder
	for i := range 40 {
		fmt.Fprintf(&want, "unit %d\n", i)
	}
	finished := func(name string) {
		t.Helper()
		if out, err := p.Kubectl("-n", theirs, "wait", "--for=condition=Complete", "--timeout=180s", "jobs.sluice.dev/"+name); err != nil {
			said, _ := p.Kubectl("-n", theirs, "get", "jobs.sluice.dev,pods,events", "-o", "wide")
			t.Fatalf("%v\n%s\n%s\n%s", err, out, said, state(p, system))
		}
		var got strings.Builder
		for _, digest := range stored.FindAllString(kubectl("", "-n", system, "exec", "deploy/sluice", "--", "/sluice", "output",
			theirs+"."+name), -1) {
			dir := filepath.Join(t.TempDir(), "output")
			get := exec.CommandContext(t.Context(), sluice, "store", "get", digest, dir, "--store", ours)
			get.Env = append(os.Environ(), "AWS_ACCESS_KEY_ID=access", "AWS_SECRET_ACCESS_KEY=a-secret-of-tests")
			if out, err := get.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			text, err := os.ReadFile(filepath.Join(dir, "out"))
			if err != nil {
				t.Fatal(err)
			}
			got.Write(text)
		}
		if got.String() != want.String() {
			t.Errorf("%s has put %q", name, got.String())
		}
	}
	kubectl(job("late", "50ms"), "-n", theirs, "apply", "-f", "-")
	finished("late")
	t.Logf("\n%s%s%s%s", kubectl("", "-n", theirs, "get", "jobs.sluice.dev"),
		kubectl("", "-n", theirs, "get", "events", "--field-selector=involvedObject.name=late"),
		kubectl("", "get", "slicepools"), kubectl("", "-n", system, "get", "pods"))

	hostsWait(t, p, theirs)

	// The operator's Pod goes while a job runs, and another comes: on the same volume, and the lease that was given back.
	kubectl(job("long", "500ms"), "-n", theirs, "apply", "-f", "-")
	kubectl("", "-n", theirs, "wait", "--for=condition=Running", "--timeout=120s", "jobs.sluice.dev/long")
	kubectl("", "-n", system, "delete", "pod", "-l", "app.kubernetes.io/name=sluice")
	finished("long")

	kubectl("", "delete", "jobs.sluice.dev", "--all", "-A", "--timeout=120s")
	run("uninstall", "sluice", system)
	plane.Eventually(t, "nothing of it runs any more", func() (bool, string) {
		list, err := p.Kubectl("get", "pods", "-A", "-o", "name")
		return err == nil && !strings.Contains(list, "sluice"), list
	})
	kubectl("", "delete", "crd", "jobs.sluice.dev", "queues.sluice.dev", "slicepools.sluice.dev", "requests.sluice.dev", "--timeout=120s")
	kubectl("", "delete", "pv", "journal", "--timeout=120s")
}
