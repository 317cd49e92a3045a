package protocol

import (
	"reflect"
	"testing"

	"sluice.dev/sluice/internal/core/job"
)

func TestOtherNamesStay(t *testing.T) {
	r := Renames{"old": "new"}
	for id, want := range map[job.SliceID]job.SliceID{
		"old/gpu0": "new/gpu0", "old/gpu0/1g": "new/gpu0/1g", "older/gpu0": "older/gpu0", "old": "old", "": "", "new/old/x": "new/old/x",
	} {
		if got := r.Slice(id); got != want {
			t.Errorf("%q is %q, want %q", id, got, want)
		}
	}
	zone := Fact{Actor: Address{Role: Zone, ID: "old"}, Job: "old", Body: &Terms{Zone: "old", Text: "old/gpu0"}}
	if same := zone; r.Fact(&zone) || !reflect.DeepEqual(zone, same) {
		t.Errorf("what is no node was renamed: %+v", zone)
	}
	if node := (Fact{Actor: Address{Role: Node, ID: "old"}}); Renames(nil).Fact(&node) || !r.Fact(&node) || node.Actor.ID != "new" {
		t.Errorf("%+v", node)
	}
}
