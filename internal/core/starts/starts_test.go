package starts

import (
	"fmt"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
)

func cold(took time.Duration) *job.Result {
	return &job.Result{Start: 1, Startup: took, Prepare: time.Hour}
}

func stayed(prepare time.Duration) *job.Result {
	return &job.Result{Start: 1, Stayed: true, Prepare: prepare, Startup: time.Hour}
}

func TestColdAndResidentAreLearnedApartByFamilyAndMachine(t *testing.T) {
	var b Book
	for _, kind := range []func(string, job.NodeID) (time.Duration, bool){b.Cold, b.Resident} {
		if took, known := kind("f", "n"); known || took != 0 {
			t.Fatalf("an empty book says %v", took)
		}
	}
	b.Learn("f", "n", cold(60*time.Second))
	b.Learn("f", "n", cold(20*time.Second))
	b.Learn("f", "m", cold(70*time.Second))
	b.Learn("f", "n", stayed(3*time.Second))
	b.Learn("f", "n", &job.Result{Start: 1})           // a program that does not say when it is ready
	b.Learn("f", "n", &job.Result{Startup: time.Hour}) // one that never started
	for _, c := range []struct {
		family string
		node   job.NodeID
		kind   func(string, job.NodeID) (time.Duration, bool)
		want   time.Duration
		known  bool
	}{
		{"f", "n", b.Cold, 60 * time.Second, true},
		{"f", "m", b.Cold, 70 * time.Second, true},
		{"f", "other", b.Cold, 70 * time.Second, true}, // the longest of any
		{"f", "n", b.Resident, 3 * time.Second, true},
		{"f", "m", b.Resident, 3 * time.Second, true},
		{"g", "n", b.Cold, 0, false},
	} {
		if took, known := c.kind(c.family, c.node); took != c.want || known != c.known {
			t.Errorf("%s on %s: %v, %v; want %v, %v", c.family, c.node, took, known, c.want, c.known)
		}
	}
	for range mostSeen {
		b.Learn("f", "n", cold(time.Second))
	}
	if took, _ := b.Cold("f", "n"); took != time.Second {
		t.Errorf("%v: a start of long ago counts", took)
	}
}

func TestWhatIsRememberedIsBounded(t *testing.T) {
	var b Book
	b.Learn("old", "n", cold(time.Second))
	for i := range mostFamilies - 1 {
		b.Learn(fmt.Sprint("f", i), "n", cold(time.Second))
	}
	b.Learn("old", "n", cold(2*time.Second)) // taught again: f0 is the oldest now
	b.Learn("new", "n", cold(time.Second))
	if _, known := b.Cold("f0", "n"); known || len(b.families) != mostFamilies || len(b.order) != mostFamilies {
		t.Errorf("%d families in an order of %d", len(b.families), len(b.order))
	}
	if took, _ := b.Cold("old", "n"); took != 2*time.Second {
		t.Errorf("what was taught last is %v", took)
	}
	for i := range 2 * mostMachines {
		b.Learn("new", job.NodeID(fmt.Sprint("m", i)), cold(time.Second))
	}
	if n := len(b.families["new"].machines); n != mostMachines {
		t.Errorf("%d machines", n)
	}
}
