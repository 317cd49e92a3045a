package airlock

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestWhatAnotherDecidedIsAccountedFor as though it had been decided here: of the steps alone, in any order.
func TestWhatAnotherDecidedIsAccountedFor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, s := config(t), host(t)
		for i := range s.Tasks { // nothing is under way
			k := &s.Tasks[i]
			k.State, k.Since, k.Parked = Running, 0, 0
		}
		a := New(c)
		own := *a.Decide(t0, s)
		own.Actions = slices.Clone(own.Actions)
		if len(own.Actions) == 0 {
			return
		}
		other := Decision{Reading: own.Reading, Room: own.Room}
		for _, x := range rapid.Permutation(own.Actions).Draw(t, "said") {
			other.Actions = append(other.Actions, Action{Task: x.Task, Token: x.Token, Step: x.Step, Cause: x.Cause})
		}
		a.Account(t0, s.Tasks, &other)
		if !slices.Equal(other.Actions, own.Actions) || other.Deficit != own.Deficit || other.Covered != own.Covered {
			t.Fatalf("it is told as %v, and was decided as %v", &other, &own)
		}
	})
}
