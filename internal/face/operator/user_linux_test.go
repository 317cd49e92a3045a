//go:build kubernetes

package operator_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"sluice.dev/sluice/internal/edge/executor/kubernetes/podtest"
	"sluice.dev/sluice/internal/face/operator"
	"sluice.dev/sluice/test/kube/plane"
)

// user is somebody with a kubeconfig, a terminal, and kubectl with our plugin beside it.
type user struct {
	kubectl, config, path, dir string
}

// newUser is an account with no rights but those of the chart's role for users, in one namespace.
func newUser(t *testing.T, p *plane.Plane, namespace, name string) *user {
	t.Helper()
	for _, args := range [][]string{
		{"-n", namespace, "create", "serviceaccount", name},
		{"-n", namespace, "create", "rolebinding", "sluice-" + name, "--clusterrole=sluice-user", "--serviceaccount=" + namespace + ":" +
			name},
	} {
		if out, err := p.Kubectl(args...); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	token, err := p.Kubectl("-n", namespace, "create", "token", name)
	if err != nil {
		t.Fatal(err)
	}
	cluster := p.Config().TLSClientConfig
	c := api.NewConfig()
	c.Clusters["plane"] = &api.Cluster{Server: p.Config().Host, CertificateAuthority: cluster.CAFile,
		CertificateAuthorityData: cluster.CAData}
	c.AuthInfos[name] = &api.AuthInfo{Token: strings.TrimSpace(token)}
	c.Contexts["team"] = &api.Context{Cluster: "plane", AuthInfo: name, Namespace: namespace}
	c.CurrentContext = "team"
	u := &user{kubectl: p.Program("kubectl"), dir: t.TempDir()}
	u.config = filepath.Join(u.dir, "config")
	if err := clientcmd.WriteToFile(*c, u.config); err != nil {
		t.Fatal(err)
	}
	return u
}

// plugin builds the program under the name that kubectl looks for.
func plugin(t *testing.T, tags string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubectl-sluice")
	cmd := exec.Command("go", "build", "-tags", tags, "-o", path, "sluice.dev/sluice/cmd/sluice")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// says runs `kubectl sluice ARGS` as the user, and returns its exit code and what it printed on both streams.
func (u *user) says(t *testing.T, args ...string) (code int, out, said string) {
	t.Helper()
	return u.run(t, u.kubectl, append([]string{"sluice"}, args...)...)
}

// command is a program at the user's terminal.
func (u *user) command(t *testing.T, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir = u.dir
	cmd.Env = []string{"PATH=" + u.path + ":" + os.Getenv("PATH"), "KUBECONFIG=" + u.config, "HOME=" + u.dir}
	return cmd
}

func (u *user) run(t *testing.T, program string, args ...string) (code int, out, said string) {
	t.Helper()
	cmd := u.command(t, program, args...)
	var o, e bytes.Buffer
	cmd.Stdout, cmd.Stderr = &o, &e
	var exit *exec.ExitError
	if err := cmd.Run(); errors.As(err, &exit) {
		code = exit.ExitCode()
	} else if err != nil {
		t.Fatalf("%s %q: %v", program, args, err)
	}
	return code, o.String(), e.String()
}

// must is says, where nothing else than success will do.
func (u *user) must(t *testing.T, args ...string) string {
	t.Helper()
	code, out, said := u.says(t, args...)
	if code != 0 {
		t.Fatalf("kubectl sluice %q: exit %d\n%s%s", args, code, out, said)
	}
	return out
}

// refused is says, where it has to fail with an exit code and words.
func (u *user) refused(t *testing.T, code int, words []string, args ...string) {
	t.Helper()
	got, out, said := u.says(t, args...)
	for _, w := range words {
		if got != code || !strings.Contains(said, w) {
			t.Errorf("kubectl sluice %q: exit %d, want %d and %q\n%s%s", args, got, code, w, out, said)
		}
	}
}

// TestAUserOfOneNamespace: with kubectl and the plugin, under an account that has the chart's role for users in one namespace and nothing
// else. What others have it can neither see nor end.
func TestAUserOfOneNamespace(t *testing.T) {
	p := plane.Start(t, plane.With(plane.Scheduler, plane.Controllers))
	t.Cleanup(podtest.Clean)
	s := newSite(t, p)
	const release = "sluice-system"
	if out, err := p.Kubectl("create", "namespace", release); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	chart, err := os.ReadFile("../../../tools/helm/testdata/default.golden.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := p.KubectlWith(string(chart), "apply", "-f", "-"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	other := p.Namespace(t)
	u := newUser(t, p, s.ns, "alice")
	u.path = filepath.Dir(plugin(t, "kubernetes"))
	write := func(name, text string) string {
		t.Helper()
		if err := os.WriteFile(filepath.Join(u.dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return name
	}
	const script = `command: [sh, -c, "i=$SLUICE_FROM; while [ $i -lt $SLUICE_TO ]; do echo unit $i; i=$((i+1)); echo '{\"progress\": '$i'}' > $SLUICE_PROGRESS_FILE.new; mv $SLUICE_PROGRESS_FILE.new $SLUICE_PROGRESS_FILE; sleep PAUSE; done"]`
	file := func(name, pause string, total int) string {
		// What a unit is said to take is many times what it takes, so that a busy machine ends none at its deadline.
		text := strings.Replace(items(name, total, map[string]string{"0": "100ms", "0.1": "1s"}[pause], "grace: 1s"),
			`command: [sh, -c, "./count.sh"]`, script, 1)
		return write(name+".yaml", strings.Replace(text, "PAUSE", pause, 1))
	}

	// There is nobody yet who would take it, and it says so.
	if code, out, said := u.says(t, "submit", file("early", "0", 40)); code != 0 || !strings.Contains(out, "job early accepted") ||
		!strings.Contains(said, "no operator has taken it yet") {
		t.Errorf("exit %d\n%s%s", code, out, said)
	}
	w := podtest.NewWorld(t, p.Client(), "sluice", s.ns, map[string]int64{"nvidia.com/mig-1g.10gb": 2})
	s.begin(t, "a", func(o *operator.Options) {
		o.Name, o.Namespace, o.Watch = "sluice", release, ""
		o.Cluster.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + release + ":sluice",
			Groups: []string{"system:serviceaccounts", "system:authenticated"}}
		o.Parts = operator.Kinds{Store: w.Store, ShimImage: "sluice"}.Parts(o)
	}).works(t)
	s.apply(t, "apiVersion: sluice.dev/v1alpha1\nkind: SlicePool\nmetadata: {name: mig}\nspec: {extendedResources: [{name: "+
		"nvidia.com/mig-1g.10gb}]}\n")
	u.must(t, "wait", "early", "--timeout=120s")

	// Submitted once, and the same again.
	if out := u.must(t, "submit", file("late", "0", 40), "--wait"); !strings.Contains(out, "job late accepted") ||
		!strings.Contains(out, "COMPLETED, 40/40") {
		t.Errorf("%s", out)
	}
	if out := u.must(t, "submit", "late.yaml"); !strings.Contains(out, "known already, nothing changed") {
		t.Errorf("%s", out)
	}
	u.refused(t, 1, []string{"a job of this name is there already, with another spec"}, "submit", file("late", "0", 41))
	if out := u.must(t, "submit", "--replace", "late.yaml", "--wait"); !strings.Contains(out, "41/41") {
		t.Errorf("%s", out)
	}
	var list []struct{ Name, State, Kind, Unit string }
	if err := json.Unmarshal([]byte(u.must(t, "jobs", "-o", "json")), &list); err != nil || len(list) != 2 || list[0].Name != "early" ||
		list[1].State != "COMPLETED" {
		t.Errorf("%+v, %v", list, err)
	}

	// the same file: from the start
	if out := u.must(t, "submit", "--replace", "late.yaml", "--wait"); !strings.Contains(out, "job late accepted") ||
		!strings.Contains(out, "41/41") {
		t.Errorf("%s", out)
	}

	// What would never run, or in a queue that is not there, is no job; and nothing makes way for it.
	write("never.yaml", strings.Replace(items("late", 40, "10ms"), "memory: 64Mi", "memory: 900Gi", 1))
	u.refused(t, 2, []string{"never run here"}, "submit", "--replace", "never.yaml")
	u.refused(t, 2, []string{"never run here"}, "submit", "--dry-run", "never.yaml")
	if out := u.must(t, "jobs", "-o", "name"); out != "early\nlate\n" {
		t.Errorf("%s", out)
	}
	u.refused(t, 2, []string{"never run here"}, "submit",
		write("huge.yaml", strings.Replace(items("huge", 40, "10ms"), "memory: 64Mi", "memory: 900Gi", 1)))
	u.refused(t, 1, []string{`there is no queue "night"`}, "submit", write("queued.yaml", items("queued", 40, "10ms", "queue: night")))
	if out := u.must(t, "submit", "--dry-run", file("late", "0", 42)); !strings.Contains(out, "late: ") {
		t.Errorf("%s", out)
	}

	// What is wrong is said, and nothing of it is left.
	u.refused(t, 2, []string{"spec.memroy"}, "submit",
		write("wrong.yaml", strings.Replace(items("wrong", 1, "1s"), "memory:", "memroy:", 1)))
	u.refused(t, 2, []string{"spec.image"}, "submit",
		write("bare.yaml", strings.Replace(items("bare", 1, "1s"), "image: registry.example.com/team/count:v1", "", 1)))
	u.refused(t, 2, []string{"no such context: want team"}, "jobs", "--context=nowhere")
	u.refused(t, 2, []string{"top is not there for a namespace of a cluster"}, "top")

	// A directory of the user's own machine, which goes to the store by a URL; the same again needs no other upload.
	if err := os.MkdirAll(filepath.Join(u.dir, "work"), 0o755); err != nil {
		t.Fatal(err)
	}
	const count = `i=$SLUICE_FROM; while [ $i -lt $SLUICE_TO ]; do i=$((i+1)); echo '{"progress": '$i'}' > $SLUICE_PROGRESS_FILE.new; mv $SLUICE_PROGRESS_FILE.new $SLUICE_PROGRESS_FILE; done`
	if err := os.WriteFile(filepath.Join(u.dir, "work", "count.sh"), []byte("#!/bin/sh\n"+count+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	write("local.yaml", items("local", 40, "100ms", "grace: 1s", "workdir: ./work"))
	if out := u.must(t, "submit", "local.yaml", "--wait"); !strings.Contains(out, "COMPLETED, 40/40") {
		t.Errorf("%s", out)
	}
	if out := u.must(t, "submit", "local.yaml"); !strings.Contains(out, "known already, nothing changed") {
		t.Errorf("%s", out)
	}
	w.Store.SetAway(true)
	if err := os.WriteFile(filepath.Join(u.dir, "work", "more"), []byte("more"), 0o644); err != nil {
		t.Fatal(err)
	}
	u.refused(t, 3, []string{"its workdir: uploading to the store at 127.0.0.1", "503"}, "submit",
		write("other.yaml", items("other", 40, "10ms", "workdir: ./work")))
	w.Store.SetAway(false)
	if left := w.Store.Places(); slices.ContainsFunc(left, func(p string) bool { return strings.HasPrefix(p, "uploads/") }) {
		t.Errorf("places left: %v", left)
	}

	// What the operator knows of it.
	if out := u.must(t, "explain", "local"); !strings.HasPrefix(out, "local: ") {
		t.Errorf("%s", out)
	}
	var one struct {
		Name    string
		History []struct{ Slice, Outcome string }
	}
	if err := json.Unmarshal([]byte(u.must(t, "job", "local", "-o", "json")), &one); err != nil || one.Name != "local" ||
		len(one.History) == 0 || !strings.Contains(one.History[0].Slice, w.Node) {
		t.Errorf("%+v, %v", one, err)
	}
	if out, err := p.Kubectl("-n", s.ns, "get", "requests.sluice.dev", "-o", "name"); err != nil || out != "" {
		t.Errorf("requests are left: %s, %v", out, err)
	}

	// Logs while it runs, and its end.
	u.must(t, "submit", file("long", "0.1", 100_000))
	plane.Eventually(t, "logs", func() (bool, string) {
		code, out, said := u.says(t, "logs", "long")
		return code == 0 && strings.Contains(out, "unit "), out + said
	})
	follower := u.command(t, u.kubectl, "sluice", "logs", "-f", "long")
	pipe, err := follower.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := follower.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(pipe)
	if line, err := lines.ReadString('\n'); err != nil || !strings.Contains(line, " | unit ") {
		t.Errorf("%q, %v", line, err)
	}

	// An edit of its object changes nothing of it, and so neither what may be done with it.
	if out, err := p.Kubectl("-n", s.ns, "patch", "jobs.sluice.dev/long", "--type=merge", "-p", `{"spec":{"priority":7}}`); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	s.until(t, "long", "is edited", func(x seen) bool { return strings.HasPrefix(x.condition("Accepted"), "False Changed") })
	u.refused(t, 1, []string{"it is not over"}, "delete", "long")
	u.must(t, "explain", "long")
	u.must(t, "cancel", "long")
	u.refused(t, 1, []string{"long CANCELLED"}, "wait", "long", "--timeout=120s")
	if _, err := io.Copy(io.Discard, lines); err != nil {
		t.Error(err)
	}
	if err := follower.Wait(); err != nil { // the job is over
		t.Error(err)
	}
	u.refused(t, 1, []string{"it is over: CANCELLED"}, "cancel", "long")
	u.must(t, "delete", "long")
	u.refused(t, 1, []string{"not found"}, "cancel", "long")

	// What others have.
	if out, err := s.KubectlWith(strings.Replace(items("theirs", 1_000_000, "100ms"), "name: theirs", "name: theirs, namespace: "+other, 1),
		"apply", "-f", "-"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, args := range [][]string{{"jobs"}, {"explain", "theirs"}, {"job", "theirs"}, {"cancel", "theirs"}, {"delete", "theirs"},
		{"logs", "theirs"}, {"wait", "theirs"}, {"submit", "late.yaml"}} {
		u.refused(t, 1, []string{"you may not", "in namespace " + other, "--clusterrole=sluice-user"}, append(args, "-n", other)...)
	}
	if out, err := p.Kubectl("-n", other, "get", "jobs.sluice.dev", "theirs", "-o",
		"jsonpath={.status.state} {.metadata.annotations}"); err != nil || strings.Contains(out, "CANCELLED") ||
		strings.Contains(out, "cancel") {
		t.Errorf("%s, %v", out, err)
	}

	// The same program by its own name, and one without Kubernetes in it.
	if code, out, said := u.run(t, plugged(t, u), "--context=team", "jobs", "-o", "name"); code != 0 || out != "early\nlate\nlocal\n" {
		t.Errorf("exit %d\n%s%s", code, out, said)
	}
}

// plugged is the plugin's program under its own name.
func plugged(t *testing.T, u *user) string {
	t.Helper()
	own := filepath.Join(u.dir, "sluice")
	if err := os.Symlink(filepath.Join(u.path, "kubectl-sluice"), own); err != nil {
		t.Fatal(fmt.Errorf("link: %w", err))
	}
	return own
}
