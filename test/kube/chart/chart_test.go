//go:build kubernetes

package chart

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"

	"sluice.dev/sluice/test/kube/plane"
)

func TestMain(m *testing.M) {
	os.Exit(plane.Run(m, plane.With(plane.Scheduler, plane.Controllers, plane.Kwok)))
}

const (
	chart   = "../../../deploy/helm/sluice"
	release = "sluice"
	system  = "sluice-system"
)

// helm builds the program of Helm's library, a module of its own, and returns what runs it on a plane.
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
			pods, _ := p.Kubectl("-n", system, "get", "all,pvc", "-o", "wide")
			t.Fatalf("helm %q: %v\n%s\n%s", args, err, out, pods)
		}
	}
}

// all names every object of a cluster, RESOURCE.GROUP NAMESPACE/NAME, with its uid; but those that come and go by themselves: events, the
// leases of the cluster's own parts, and the older form of endpoint slices.
func all(t *testing.T, p *plane.Plane) map[string]types.UID {
	t.Helper()
	client, err := dynamic.NewForConfig(p.Config())
	if err != nil {
		t.Fatal(err)
	}
	lists, err := discovery.NewDiscoveryClientForConfigOrDie(p.Config()).ServerPreferredResources()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]types.UID{}
	for _, l := range lists {
		gv, err := schema.ParseGroupVersion(l.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range l.APIResources {
			if !slices.Contains(r.Verbs, "list") || r.Name == "events" || r.Name == "componentstatuses" || r.Name == "endpoints" {
				continue
			}
			list, err := client.Resource(gv.WithResource(r.Name)).List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatalf("%s: %v", r.Name, err)
			}
			for i := range list.Items {
				o := &list.Items[i]
				if r.Name == "leases" && strings.HasPrefix(o.GetNamespace(), "kube-") {
					continue
				}
				out[strings.TrimSuffix(r.Name+"."+gv.Group, ".")+" "+o.GetNamespace()+"/"+o.GetName()] = o.GetUID()
			}
		}
	}
	return out
}

// onlyIn are the objects of a that b has not, in order.
func onlyIn(a, b map[string]types.UID) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(a)), func(name string) bool { _, there := b[name]; return there })
}

// deployment is what of the operator's Deployment changes with values.
func deployment(t *testing.T, p *plane.Plane) (args []string, ready int32) {
	t.Helper()
	d, err := p.Client().AppsV1().Deployments(system).Get(t.Context(), release, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return d.Spec.Template.Spec.Containers[0].Args, d.Status.ReadyReplicas
}

// volume is one that the chart's claim finds: there is nobody here who makes any.
func volume(t *testing.T, p *plane.Plane, name string) {
	t.Helper()
	v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeSpec{
		Capacity:                      corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")},
		AccessModes:                   []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
		PersistentVolumeSource:        corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/nowhere"}},
	}}
	if _, err := p.Client().CoreV1().PersistentVolumes().Create(t.Context(), v, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// TestTheChartComesAndGoes: helm install, upgrade with another value, rollback and uninstall, each waited for. The operator's Pod is made
// by the Deployment's controller and bound by the scheduler, on a machine that only says that it runs: its container is not started here.
// What is left at the end is what docs say: the definitions with the objects that people made, and the namespace; so that it can be
// installed again and finds them.
func TestTheChartComesAndGoes(t *testing.T) {
	p := plane.Of(t)
	run := helm(t, p)
	p.Machine(t, "chart", nil)
	volume(t, p, "journal-1")
	before := all(t, p)

	run("install", release, system, chart, "store.url=s3://sluice", "store.secret=store")
	if args, ready := deployment(t, p); ready != 1 || !slices.Contains(args, "--log=info") ||
		!slices.Contains(args, "--store=s3://sluice") {
		t.Errorf("%d ready: %v", ready, args)
	}
	installed := all(t, p)
	claim, lease := "persistentvolumeclaims "+system+"/"+release, "leases.coordination.k8s.io "+system+"/sluice-"+release
	for _, name := range []string{
		claim, lease, "clusterroles.rbac.authorization.k8s.io /sluice-user", "priorityclasses.scheduling.k8s.io /sluice-leftover",
		"networkpolicies.networking.k8s.io " + system + "/" + release,
		"customresourcedefinitions.apiextensions.k8s.io /jobs.sluice.dev",
		"customresourcedefinitions.apiextensions.k8s.io /requests.sluice.dev",
	} {
		if installed[name] == "" {
			t.Errorf("%s is not there", name)
		}
	}
	theirs := p.Namespace(t)
	if out, err := p.KubectlWith(job, "-n", theirs, "apply", "-f", "-"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}

	holder := "an operator"
	leases := p.Client().CoordinationV1().Leases(system)
	held, err := leases.Get(t.Context(), "sluice-"+release, metav1.GetOptions{})
	if err == nil {
		held.Spec.HolderIdentity = &holder
		_, err = leases.Update(t.Context(), held, metav1.UpdateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}

	// What changes is what was asked for; the journal's volume is the same, and whoever has the lease keeps it.
	run("upgrade", release, system, chart, "store.url=s3://sluice", "store.secret=store", "logLevel=debug")
	if args, ready := deployment(t, p); ready != 1 || !slices.Contains(args, "--log=debug") {
		t.Errorf("after the upgrade %d ready: %v", ready, args)
	}
	run("rollback", release, system, "1")
	if args, ready := deployment(t, p); ready != 1 || !slices.Contains(args, "--log=info") {
		t.Errorf("after the rollback %d ready: %v", ready, args)
	}
	if held, err := leases.Get(t.Context(), "sluice-"+release, metav1.GetOptions{}); err != nil || held.Spec.HolderIdentity == nil ||
		*held.Spec.HolderIdentity != holder {
		t.Errorf("the lease is %+v, %v: it was taken from its holder", held.Spec, err)
	}
	for name, uid := range all(t, p) {
		stays := !strings.HasPrefix(name, "pods ") && !strings.HasPrefix(name, "replicasets") && !strings.HasPrefix(name, "secrets ") &&
			!strings.HasPrefix(name, "controllerrevisions")
		if was := installed[name]; stays && was != "" && was != uid {
			t.Errorf("%s was made anew", name)
		}
	}

	run("uninstall", release, system)
	plane.Eventually(t, "nothing is left but what docs say", func() (bool, string) {
		left := slices.DeleteFunc(onlyIn(all(t, p), before), func(name string) bool {
			return strings.HasPrefix(name, "customresourcedefinitions.") && strings.HasSuffix(name, ".sluice.dev") ||
				name == "apiservices.apiregistration.k8s.io /v1alpha1.sluice.dev" || name == "jobs.sluice.dev "+theirs+"/kept" ||
				name == "namespaces /"+system || name == "namespaces /"+theirs || strings.HasSuffix(name, "/default") ||
				strings.HasSuffix(name, "/kube-root-ca.crt")
		})
		return len(left) == 0, strings.Join(left, "\n")
	})
	if gone := onlyIn(before, all(t, p)); len(gone) > 0 {
		t.Errorf("it took along what was not its own: %v", gone)
	}

	// Again, with a claim that stays when asked to.
	volume(t, p, "journal-2")
	run("install", release, system, chart, "store.url=s3://sluice", "persistence.keep=true")
	kept := all(t, p)[claim]
	run("uninstall", release, system)
	if now := all(t, p)[claim]; now == "" || now != kept {
		t.Errorf("the claim was %s and is %q", kept, now)
	}
	out, err := p.Kubectl("-n", theirs, "get", "jobs.sluice.dev", "kept", "-o", "json")
	var o struct{ Spec struct{ Image string } }
	if err != nil || json.Unmarshal([]byte(out), &o) != nil || o.Spec.Image == "" {
		t.Errorf("the job: %v\n%s", err, out)
	}
	for _, args := range [][]string{{"-n", system, "delete", "pvc", release}, {"delete", "crd", "jobs.sluice.dev", "queues.sluice.dev",
		"slicepools.sluice.dev", "requests.sluice.dev"}, {"delete", "namespace", system}} {
		if out, err := p.Kubectl(append(args, "--timeout=120s")...); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	}
	for _, name := range onlyIn(all(t, p), before) {
		if strings.Contains(name, "sluice") {
			t.Errorf("in the end %s is left", name)
		}
	}
}

const job = `apiVersion: sluice.dev/v1alpha1
kind: Job
metadata: {name: kept}
spec:
  items: {total: 10, perItem: 1s}
  memory: 64Mi
  image: registry.example.com/team/count:v1
  command: [/count]
`
