package protocol

import (
	"reflect"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/core/job"
)

// visit calls each for everything that names a node or a slice and can be reached from v. With make it fills in what is missing on the
// way there: pointers, and lists with one element.
func visit(v reflect.Value, path string, fill bool, each func(path string, v reflect.Value)) {
	switch v.Interface().(type) {
	case job.NodeID, job.SliceID, Address:
		each(path, v)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() && fill {
			v.Set(reflect.New(v.Type().Elem()))
		}
		if !v.IsNil() {
			visit(v.Elem(), path, fill, each)
		}
	case reflect.Slice:
		if v.Len() == 0 && fill {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		}
		for i := range v.Len() {
			visit(v.Index(i), path, fill, each)
		}
	case reflect.Array:
		for i := range v.Len() {
			visit(v.Index(i), path, fill, each)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				visit(v.Field(i), path+"."+f.Name, fill, each)
			}
		}
	default: // names nobody
	}
}

// TestEveryNameInAFactIsRenamed: a field of a fact that names a node or a slice, wherever it is, has the new name. A field that is added
// and not renamed fails here.
func TestEveryNameInAFactIsRenamed(t *testing.T) {
	var f Fact
	seen := map[string]bool{}
	visit(reflect.ValueOf(&f), "Fact", true, func(path string, v reflect.Value) {
		seen[path] = true
		switch v.Addr().Interface().(type) {
		case *job.NodeID:
			v.SetString("old-1")
		case *job.SliceID:
			v.SetString("old-1/gpu0/2")
		case *Address:
			v.Set(reflect.ValueOf(Address{Role: Node, ID: "old-1"}))
		}
	})
	for _, path := range []string{"Fact.Actor", "Fact.Node", "Fact.Slice", "Fact.Also", "Fact.Members.Node", "Fact.Reservation.Slice",
		"Fact.Record.Claims.Members.Node", "Fact.Record.Past.Claim.Slice", "Fact.Record.Unpublished.Node"} {
		if !seen[path] {
			t.Errorf("%s was not looked at", path)
		}
	}
	r := Renames{"old-1": "new-1", "old-2": "new-2"}
	if !r.Fact(&f) {
		t.Error("nothing was renamed")
	}
	visit(reflect.ValueOf(&f), "Fact", false, func(path string, v reflect.Value) {
		var got string
		if at, ok := v.Interface().(Address); ok {
			got = at.ID
		} else {
			got = v.String()
		}
		if !strings.HasPrefix(got, "new-1") {
			t.Errorf("%s is %q still", path, got)
		}
	})
	if r.Fact(&f) {
		t.Error("the new names were renamed")
	}
}

func TestOtherNamesStay(t *testing.T) {
	r := Renames{"old": "new"}
	for id, want := range map[job.SliceID]job.SliceID{
		"old/gpu0": "new/gpu0", "old/gpu0/1g": "new/gpu0/1g", "older/gpu0": "older/gpu0", "old": "old", "": "", "new/old/x": "new/old/x",
	} {
		if got := r.Slice(id); got != want {
			t.Errorf("%q is %q, want %q", id, got, want)
		}
	}
	zone := Fact{Actor: Address{Role: Zone, ID: "old"}, Zone: "old", Job: "old", Text: "old/gpu0"}
	if same := zone; r.Fact(&zone) || !reflect.DeepEqual(zone, same) {
		t.Errorf("what is no node was renamed: %+v", zone)
	}
	if node := (Fact{Actor: Address{Role: Node, ID: "old"}}); Renames(nil).Fact(&node) || !r.Fact(&node) || node.Actor.ID != "new" {
		t.Errorf("%+v", node)
	}
}
