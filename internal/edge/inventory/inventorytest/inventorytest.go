// Package inventorytest is the conformance suite that every kind of inventory must pass.
package inventorytest

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/edge/inventory"
)

// Run checks an inventory that has at least one slice. open makes a new one over the same machine each time.
func Run(t *testing.T, open func(t *testing.T) inventory.Inventory) {
	t.Run("slices are whole and in order", func(t *testing.T) {
		inv := opened(t, open)
		all := list(t, inv)
		if len(all) == 0 {
			t.Fatal("no slices")
		}
		if !slices.IsSortedFunc(all, func(a, b protocol.Slice) int { return strings.Compare(string(a.ID), string(b.ID)) }) {
			t.Errorf("not in order of id: %v", ids(all))
		}
		devices := map[string]bool{}
		for i, s := range all {
			if i > 0 && all[i-1].ID == s.ID {
				t.Errorf("%s is there twice", s.ID)
			}
			if s.ID == "" || strings.HasPrefix(string(s.ID), "/") || strings.ContainsAny(string(s.ID), " \t\n") {
				t.Errorf("id %q: want a name without blanks or a slash in front", s.ID)
			}
			if s.Model == "" || s.Profile == "" || s.Capacity[trp.Memory] <= 0 || s.Speed < 1 || s.Speed > 1000 {
				t.Errorf("%s is not whole: %+v", s.ID, s)
			}
			if s.Simulated != (s.Device == "") {
				t.Errorf("%s: simulated %v, but its device is %q", s.ID, s.Simulated, s.Device)
			}
			if devices[s.Device] && s.Device != "" {
				t.Errorf("%s: device %s is offered twice", s.ID, s.Device)
			}
			devices[s.Device] = true
		}
	})
	t.Run("GPUs are named where there are any", func(t *testing.T) {
		inv := opened(t, open)
		real := slices.ContainsFunc(list(t, inv), func(s protocol.Slice) bool { return !s.Simulated })
		gpus := inv.GPUs()
		if real != (len(gpus) > 0) {
			t.Errorf("real slices: %v, but GPUs are %v", real, gpus)
		}
		if !slices.IsSorted(gpus) || len(slices.Compact(slices.Clone(gpus))) != len(gpus) {
			t.Errorf("GPUs are not sorted and unique: %v", gpus)
		}
	})
	t.Run("the same machine gives the same slices", func(t *testing.T) {
		first, second := opened(t, open), opened(t, open)
		a, again, b := list(t, first), list(t, first), list(t, second)
		if !reflect.DeepEqual(a, again) || !reflect.DeepEqual(a, b) {
			t.Errorf("they differ:\n%+v\n%+v\n%+v", a, again, b)
		}
		a[0].ID = "changed"
		if list(t, first)[0].ID == "changed" {
			t.Error("the caller can change what the inventory holds")
		}
	})
	t.Run("it describes itself in one line", func(t *testing.T) {
		if d := opened(t, open).Describe(); strings.TrimSpace(d) == "" || strings.Contains(d, "\n") {
			t.Errorf("description %q", d)
		}
	})
	t.Run("watching ends with its context", func(t *testing.T) {
		inv := opened(t, open)
		ctx, cancel := context.WithCancel(t.Context())
		var over, late atomic.Bool
		done := make(chan error, 1)
		go func() {
			done <- inv.Watch(ctx, func(job.SliceID, int) bool { return true }, func(s inventory.Sighting) {
				if over.Load() {
					late.Store(true)
				}
			})
		}()
		cancel()
		select {
		case err := <-done:
			over.Store(true)
			if err != nil {
				t.Errorf("it ended with %v", err)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("it goes on after its context ended")
		}
		if late.Load() {
			t.Error("it reported after it returned")
		}
	})
	t.Run("it closes twice", func(t *testing.T) {
		inv := open(t)
		for range 2 {
			if err := inv.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

func opened(t *testing.T, open func(t *testing.T) inventory.Inventory) inventory.Inventory {
	t.Helper()
	inv := open(t)
	t.Cleanup(func() {
		if err := inv.Close(); err != nil {
			t.Error(err)
		}
	})
	return inv
}

func list(t *testing.T, inv inventory.Inventory) []protocol.Slice {
	t.Helper()
	all, err := inv.Slices(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func ids(all []protocol.Slice) []job.SliceID {
	var out []job.SliceID
	for _, s := range all {
		out = append(out, s.ID)
	}
	return out
}
