//go:build kubernetes

package kubernetes

import (
	"bytes"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/executor/shim/pod"
	"sluice.dev/sluice/internal/edge/store/local"
	"sluice.dev/sluice/internal/edge/store/storetest"
)

// TestKeysLastADay: what begins later is sealed with another key; who waited a week finds its own still; no life seals with what it has
// not made itself; and where nothing runs none are left.
func TestKeysLastADay(t *testing.T) {
	under, err := local.Open(t.TempDir() + "/store")
	if err != nil {
		t.Fatal(err)
	}
	client, now := fake.NewClientset(), time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	open := func() *Executor {
		e, err := Open(Options{Client: client, Store: storetest.Lend(t, under), Operator: "main", ShimImage: "s",
			Deliver: func(protocol.Message) {}, Clock: func() time.Time { return now }})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = e.Close() })
		return e
	}
	there := func() map[string][]byte {
		s, err := client.CoreV1().Secrets("team").Get(t.Context(), "sluice-main-keys", metav1.GetOptions{})
		if err != nil {
			return nil
		}
		return s.Data
	}
	key := func(e *Executor, want int) pod.Key {
		t.Helper()
		k, err := e.keys.key(t.Context(), "team")
		if err != nil {
			t.Fatal(err)
		}
		if all := there(); len(all) != want || string(all[k.ID]) != k.Text() {
			t.Fatalf("%d keys there, want %d with the one that is sealed with", len(all), want)
		}
		return k
	}
	e := open()
	first := key(e, 1)
	if again := key(e, 1); again.ID != first.ID {
		t.Error("another key at once")
	}
	now = now.Add(25 * time.Hour)
	if second := key(e, 2); second.ID == first.ID || bytes.Equal(second.Secret, first.Secret) {
		t.Error("the same key after a day")
	}
	e = open()
	mine := key(e, 3)
	if _, old := there()[first.ID]; !old || mine.ID == first.ID {
		t.Error("an operator that comes back has not made its own beside those that are there")
	}
	if len(e.Calls()) != 2 { // get and patch
		t.Errorf("%v", e.Calls())
	}
	now = now.Add(mostLent)
	key(e, 3)
	if _, old := there()[first.ID]; old {
		t.Error("a key stays though nothing that it opens is good for anything")
	}
	// Somebody takes them all, or one, or writes over one: they are put back, and asked for no more often than that.
	for name, do := range map[string]func(){
		"all": func() {
			_ = client.CoreV1().Secrets("team").Delete(t.Context(), "sluice-main-keys", metav1.DeleteOptions{})
		},
		"one": func() {
			s, _ := client.CoreV1().Secrets("team").Get(t.Context(), "sluice-main-keys", metav1.GetOptions{})
			s.Data[mine.ID] = []byte("nonsense")
			_, _ = client.CoreV1().Secrets("team").Update(t.Context(), s, metav1.UpdateOptions{})
		},
	} {
		do()
		now = now.Add(checkKeys)
		if err := e.keys.have(t.Context(), "team"); err != nil || string(there()[mine.ID]) != mine.Text() {
			t.Errorf("%s: %v, and the key is not there", name, err)
		}
		asked := e.Calls()["get secret"]
		if err := e.keys.have(t.Context(), "team"); err != nil || e.Calls()["get secret"] != asked {
			t.Errorf("asked again at once, %v", err)
		}
	}
	e.mu.Lock()
	e.runs[job.Token{Seq: 1}] = newRun(e, record{Job: "team.x"})
	e.mu.Unlock()
	if err := e.keys.drop(t.Context(), "team"); err != nil || len(there()) == 0 {
		t.Errorf("keys are gone though something runs, %v", err)
	}
	clear(e.runs)
	if err := e.keys.drop(t.Context(), "team"); err != nil || there() != nil {
		t.Errorf("keys are left where nothing runs, %v", err)
	}
	if after := key(e, 1); bytes.Equal(after.Secret, mine.Secret) {
		t.Error("a key that was taken away is there again")
	}
}
