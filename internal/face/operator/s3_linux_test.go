//go:build kubernetes

package operator_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice.dev/sluice/internal/edge/cluster"
	"sluice.dev/sluice/internal/edge/executor/kubernetes/podtest"
	"sluice.dev/sluice/internal/edge/store"
	"sluice.dev/sluice/internal/edge/store/tree"
	"sluice.dev/sluice/internal/face/operator"
	"sluice.dev/sluice/test/kube/bucket"
	"sluice.dev/sluice/test/kube/plane"
)

// steps is the program of a job of steps, which lies in its work directory. Its state is a line for each step that was ever done, so that
// a checkpoint that is not the right one is seen at once; what it does it writes into a folder that no part of Sluice knows.
const steps = `cd "$SLUICE_OUTPUT_DIR"; : > state
if [ -n "$SLUICE_RESUME_DIR" ]; then cp "$SLUICE_RESUME_DIR/state" state; fi
if [ $(wc -l < state) != $SLUICE_FROM ]; then echo "from $SLUICE_FROM with $(wc -l < state) steps" >> $HISTORY/wrong; exit 3; fi
mv state ../state; told=; trap 'told=1' TERM; at=$SLUICE_FROM; echo $at >> $HISTORY/began
while [ $at -lt $SLUICE_TO ] && [ -z "$told" ]; do
  for i in 1 2 3 4 5; do echo $at >> ../state; echo $at >> out; at=$((at+1)); done
  cp ../state "$SLUICE_CHECKPOINT_DIR/state"; echo '{"progress":'$at',"checkpoint":true}' > $SLUICE_PROGRESS_FILE.new; mv $SLUICE_PROGRESS_FILE.new $SLUICE_PROGRESS_FILE
  while [ $at -ge $(cat $HISTORY/until) ] && [ -z "$told" ]; do sleep 0.05; done
done
echo $at >> $HISTORY/ended; [ $at -ge $SLUICE_TO ] || exit 85`

// TestTheStoreIsABucket: the whole life of a job over a real S3 server: its work directory is read from there, checkpoints and outputs go
// there, and the server is killed while subjobs run, end and begin, and while an operator begins. It is judged by what lies in the bucket
// and by what the program has written.
func TestTheStoreIsABucket(t *testing.T) {
	b := bucket.Start(t, t.TempDir())
	p := plane.Start(t, plane.With(plane.Scheduler, plane.Controllers))
	s := newSite(t, p)
	leftoverClass(t, p)
	w := podtest.NewWorld(t, p.Client(), s.name(), s.ns, map[string]int64{"nvidia.com/mig-1g.10gb": 2})
	where, err := bucket.Open(t.Context(), b.Address)
	if err != nil {
		t.Fatal(err)
	}
	begin := func(name string) *op {
		t.Helper()
		own, err := bucket.Open(t.Context(), b.Address)
		if err != nil {
			t.Fatal(err)
		}
		x := s.begin(t, name, func(o *operator.Options) {
			o.Name, o.Parts = w.Operator, operator.Kinds{Store: own, ShimImage: "sluice"}.Parts(o)
		})
		return x
	}
	first := begin("a")
	first.works(t)
	s.apply(t, "apiVersion: sluice.dev/v1alpha1\nkind: SlicePool\nmetadata: {name: mig}\nspec: {extendedResources: [{name: "+
		"nvidia.com/mig-1g.10gb}]}\n")

	history, total := t.TempDir(), 40
	read := func(file string) []string {
		text, err := os.ReadFile(filepath.Join(history, file))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		return strings.Fields(string(text))
	}
	until := func(step int) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(history, "until"), []byte(strconv.Itoa(step)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	has := func(file string, n int) {
		t.Helper()
		plane.Eventually(t, fmt.Sprintf("%s has %d entries", file, n), func() (bool, string) {
			return len(read(file)) >= n,
				fmt.Sprint(read(file))
		})
	}
	work := t.TempDir()
	if err = os.WriteFile(filepath.Join(work, "steps.sh"), []byte(steps), 0o600); err != nil {
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
	until(5)
	s.apply(t, fmt.Sprintf(`apiVersion: sluice.dev/v1alpha1
kind: Job
metadata: {name: train}
spec:
  steps: {total: %d, perStep: 2s, every: 5}
  memory: 64Mi
  grace: 2s
  theta: 0.01
  image: registry.example.com/team/train:v1
  workdir: store://%s
  command: [sh, steps.sh]
  env: {HISTORY: %q}
`, total, o.Digest, history))
	has("began", 1)

	// A subjob is stopped by hand, and the next one goes on from its checkpoint.
	pod := func() (name string) {
		t.Helper()
		plane.Eventually(t, "one Pod runs", func() (bool, string) {
			list, err := p.Client().CoreV1().Pods(s.ns).List(t.Context(), metav1.ListOptions{LabelSelector: cluster.LabelOperator})
			if err != nil {
				return false, err.Error()
			}
			running := slices.DeleteFunc(list.Items, func(x corev1.Pod) bool {
				return x.Status.Phase != corev1.PodRunning || x.DeletionTimestamp != nil
			})
			if len(running) == 1 {
				name = running[0].Name
			}
			return len(running) == 1, fmt.Sprint(len(list.Items))
		})
		return name
	}
	if err = p.Client().CoreV1().Pods(s.ns).Delete(t.Context(), pod(), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	has("ended", 1)
	has("began", 2)

	// The server is killed under one that runs; that ends meanwhile, and can put nothing. An operator begins with the store away. Then the
	// server is back.
	b.Kill()
	if err = p.Client().CoreV1().Pods(s.ns).Delete(t.Context(), pod(), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	has("ended", 2)
	if err = first.end(t); err != nil {
		t.Fatal(err)
	}
	health := begin("b").works(t)
	plane.Eventually(t, "the operator says what is wrong", func() (bool, string) {
		resp, err := http.Get("http://" + health + "/readyz")
		if err != nil {
			return false, err.Error()
		}
		text, err := io.ReadAll(resp.Body)
		return errors.Join(err, resp.Body.Close()) == nil && strings.Contains(string(text), "the store is away"), string(text)
	})
	if n := len(read("began")); n != 2 {
		t.Errorf("%d subjobs have begun, though nobody could know what the second one has left", n)
	}
	if err = b.Begin(); err != nil {
		t.Fatal(err)
	}
	has("began", 3)
	until(total)
	if got := s.until(t, "train", "is done", done); got.Progress != fmt.Sprint(total, "/", total) || got.Lost != 0 {
		t.Errorf("%+v", got)
	}
	if wrong := read("wrong"); len(wrong) > 0 {
		t.Errorf("a subjob began %v", wrong)
	}
	if from := read("began"); fmt.Sprint(from[:3]) != "[0 5 10]" {
		t.Errorf("subjobs began at %v", from)
	}

	// What is in the bucket: every step in one output, a checkpoint, and nothing at the places that Pods write to.
	seen := map[string]int{}
	err = where.Names(t.Context(), "outputs", func(n store.Named) error {
		r, err := where.Open(t.Context(), n.Refs["output"])
		if err != nil {
			return err
		}
		at := filepath.Join(t.TempDir(), "tree")
		if _, _, err = tree.Restore(r, at, tree.Limits{Bytes: 1 << 20, Entries: 100}); err != nil {
			return err
		}
		text, err := os.ReadFile(filepath.Join(at, "out"))
		for _, step := range strings.Fields(string(text)) {
			seen[step]++
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range total {
		if seen[strconv.Itoa(i)] != 1 {
			t.Errorf("step %d is in %d outputs", i, seen[strconv.Itoa(i)])
		}
	}
	plane.Eventually(t, "nothing is left at places", func() (bool, string) {
		l, err := b.Objects("incoming")
		l = slices.DeleteFunc(l, func(p string) bool { return strings.Contains(p, "beats/") }) // the operator lives, and says so
		return err == nil && len(l) == 0, fmt.Sprint(l, err)
	})
	if out, err := s.Kubectl("-n", s.ns, "delete", "--timeout=120s", "jobs.sluice.dev/train"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	plane.Eventually(t, "nothing is named but its work directory", func() (bool, string) {
		var names []string
		err := where.Names(t.Context(), "", func(n store.Named) error { names = append(names, n.Name); return nil })
		return err == nil && len(names) == 1 && strings.HasPrefix(names[0], "work/"), fmt.Sprint(names, err)
	})
}
