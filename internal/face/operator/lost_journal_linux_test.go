//go:build kubernetes

package operator_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/cluster"
	"sluice.dev/sluice/internal/edge/executor/kubernetes/podtest"
	"sluice.dev/sluice/internal/edge/store"
	"sluice.dev/sluice/internal/edge/store/tree"
	"sluice.dev/sluice/internal/face/operator"
	"sluice.dev/sluice/test/kube/plane"
)

// TestTheJournalIsLost: the operator's data is removed between two of its lives, while Pods of its run and others have ended with an
// output that nobody has read. The next one begins at token 1-1 again. It is judged by what lies in the store and by what the Pods'
// programs have written: all units are there once, in files of Pods of the second life alone, and nothing of the first runs on.
func TestTheJournalIsLost(t *testing.T) {
	p := plane.Start(t, plane.With(plane.Scheduler, plane.Controllers))
	s := newSite(t, p)
	leftoverClass(t, p)
	w := podtest.NewWorld(t, p.Client(), s.name(), s.ns, map[string]int64{"nvidia.com/mig-1g.10gb": 2})
	begin := func(life string, anew bool) *op {
		t.Helper()
		return s.begin(t, life, func(o *operator.Options) {
			o.Name, o.NewJournal, o.Parts = w.Operator, anew, operator.Kinds{Store: w.Store, ShimImage: "sluice"}.Parts(o)
		})
	}
	dir := t.TempDir()
	note := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	note("life", "first")
	note("first.0", "") // the piece from 0 waits for this to go
	note("first", "")   // and all others for this
	first := begin("a", false)
	first.works(t)
	s.apply(t, "apiVersion: sluice.dev/v1alpha1\nkind: SlicePool\nmetadata: {name: mig}\nspec: {extendedResources: [{name: "+
		"nvidia.com/mig-1g.10gb}]}\n")
	script := fmt.Sprintf(
		`command: [sh, -c, "cd %s; l=$(cat life); echo $l $SLUICE_FROM >> began; while [ -e $l ] || [ -e $l.$SLUICE_FROM ]; do sleep 0.05; done; i=$SLUICE_FROM; while [ $i -lt $SLUICE_TO ]; do echo $l $i >> $SLUICE_OUTPUT_DIR/out; i=$((i+1)); done; echo '{\"progress\": '$i'}' > $SLUICE_PROGRESS_FILE.new; mv $SLUICE_PROGRESS_FILE.new $SLUICE_PROGRESS_FILE; echo $l $SLUICE_FROM >> ended"]`, dir)
	const total = 40
	s.apply(t, strings.Replace(items("long", total, "3s", "grace: 1s"), `command: [sh, -c, "./count.sh"]`, script, 1))
	lines := func(file string) []string {
		text, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		return strings.Split(strings.TrimSpace(string(text)), "\n")
	}
	plane.Eventually(t, "two pieces run", func() (bool, string) { l := lines("began"); return len(l) == 2, fmt.Sprint(l) })
	if err := first.end(t); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "first")); err != nil {
		t.Fatal(err)
	}
	plane.Eventually(t, "one has ended while nobody was there", func() (bool, string) {
		l := lines("ended")
		return l[0] != "",
			fmt.Sprint(l)
	})
	before, err := p.Client().CoreV1().Pods(s.ns).List(t.Context(), metav1.ListOptions{LabelSelector: cluster.LabelOperator})
	if err != nil || len(before.Items) != 2 {
		t.Fatalf("%+v, %v", before, err)
	}
	if err := os.RemoveAll(s.data); err != nil {
		t.Fatal(err)
	}

	// It may be the wrong volume: nothing is begun, and nothing ended.
	wrong := begin("wrong", false)
	err = <-wrong.ended
	wrong.ended <- err
	if errkind.Of(err) != errkind.Conflict || !strings.Contains(err.Error(), "--new-journal") ||
		!strings.Contains(err.Error(), "subjobs run under the name") {
		t.Errorf("it ends with %v", err)
	}
	for i := range before.Items {
		now, err := p.Client().CoreV1().Pods(s.ns).Get(t.Context(), before.Items[i].Name, metav1.GetOptions{})
		if err != nil || now.DeletionTimestamp != nil {
			t.Errorf("%s: %v, want it as it was", before.Items[i].Name, err)
		}
	}
	if err := os.RemoveAll(s.data); err != nil {
		t.Fatal(err)
	}

	// Pods say in which second they were made, and a journal is known from them by a later one.
	plane.Eventually(t, "the second in which its Pods were made is over", func() (bool, string) {
		now := time.Now()
		return !slices.ContainsFunc(before.Items, func(x corev1.Pod) bool {
			return !x.CreationTimestamp.Time.Before(
				now.Truncate(time.Second))
		}), now.String()
	})
	note("life", "second")
	begin("b", true).works(t)
	if got := s.until(t, "long", "is done", done); got.Progress != fmt.Sprint(total, "/", total) {
		t.Errorf("%+v", got)
	}
	plane.Eventually(t, "nothing of the first life is left", func() (bool, string) {
		list, err := p.Client().CoreV1().Pods(s.ns).List(t.Context(), metav1.ListOptions{LabelSelector: cluster.LabelOperator})
		if err != nil {
			return false, err.Error()
		}
		left := slices.DeleteFunc(list.Items, func(x corev1.Pod) bool {
			return !slices.ContainsFunc(before.Items, func(y corev1.Pod) bool { return x.UID == y.UID })
		})
		return len(left) == 0, fmt.Sprint(len(left))
	})
	if l := lines("ended"); slices.Contains(l, "first 0") {
		t.Errorf("a piece of the first life ran to its end in the second: %v", l)
	}
	committed(t, w, total)
}

// committed holds the outputs in the store against what should be there: every unit once, of the second life.
func committed(t *testing.T, w *podtest.World, total int) {
	t.Helper()
	units := map[int]int{}
	err := w.Store.Names(t.Context(), "outputs", func(n store.Named) error {
		r, err := w.Store.Open(t.Context(), n.Refs["output"])
		if err != nil {
			return err
		}
		at := filepath.Join(t.TempDir(), "tree")
		if _, _, err = tree.Restore(r, at, tree.Limits{Bytes: 1 << 20, Entries: 100}); err != nil {
			return err
		}
		text, err := os.ReadFile(filepath.Join(at, "out"))
		for line := range strings.Lines(string(text)) {
			life, unit, _ := strings.Cut(strings.TrimSpace(line), " ")
			i, bad := strconv.Atoi(unit)
			if life != "second" || bad != nil {
				t.Errorf("%s has %q", n.Name, line)
			}
			units[i]++
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range total {
		if units[i] != 1 {
			t.Errorf("unit %d is in the store %d times", i, units[i])
		}
	}
}

// name is of an operator that no other test has, in this process or in another.
func (s *site) name() string { return fmt.Sprintf("t%d", time.Now().UnixNano()%1e12) }

// leftoverClass is the PriorityClass of subjobs, as the chart makes it.
func leftoverClass(t *testing.T, p *plane.Plane) {
	t.Helper()
	never := corev1.PreemptNever
	_, err := p.Client().SchedulingV1().PriorityClasses().Create(t.Context(), &schedulingv1.PriorityClass{
		ObjectMeta: metav1.ObjectMeta{Name: cluster.Leftover}, Value: -1_000_000_000, PreemptionPolicy: &never,
	}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}
