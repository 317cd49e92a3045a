package wire

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
)

// visit calls each for everything that names a node or a slice and can be reached from v. With make it fills in what is missing on the
// way there: pointers, and lists with one element.
func visit(v reflect.Value, path string, fill bool, each func(path string, v reflect.Value)) {
	switch v.Interface().(type) {
	case job.NodeID, job.SliceID, protocol.Address:
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
	case reflect.Interface: // the body
		if !v.IsNil() {
			visit(v.Elem(), path, fill, each)
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
	r, seen := protocol.Renames{"old-1": "new-1", "old-2": "new-2"}, map[string]bool{}
	for _, k := range factKinds {
		f := factOf(k)
		name := fmt.Sprintf("%T", f.Body)
		visit(reflect.ValueOf(&f), name, true, func(path string, v reflect.Value) {
			seen[path] = true
			switch v.Addr().Interface().(type) {
			case *job.NodeID:
				v.SetString("old-1")
			case *job.SliceID:
				v.SetString("old-1/gpu0/2")
			case *protocol.Address:
				v.Set(reflect.ValueOf(protocol.Address{Role: protocol.Node, ID: "old-1"}))
			}
		})
		if !r.Fact(&f) {
			t.Errorf("%s: nothing was renamed", name)
		}
		visit(reflect.ValueOf(&f), name, false, func(path string, v reflect.Value) {
			got := v.String()
			if at, ok := v.Interface().(protocol.Address); ok {
				got = at.ID
			}
			if !strings.HasPrefix(got, "new-1") {
				t.Errorf("%s is %q still", path, got)
			}
		})
		if r.Fact(&f) {
			t.Errorf("%s: the new names were renamed", name)
		}
	}
	for _, path := range []string{"*protocol.Reason.Actor", "*protocol.Reason.Slice", "*protocol.Sale.Body.Node",
		"*protocol.Terms.Body.Placement.Also",
		"*protocol.Sale.Body.Members.Node", "*protocol.Reservation.Body.Slice", "*protocol.Keeping.Body.Record.Claims.Sale.Members.Node",
		"*protocol.Keeping.Body.Record.Past.Claim.Sale.Placement.Slice", "*protocol.Keeping.Body.Record.Unpublished.Node"} {
		if !seen[path] {
			t.Errorf("%s was not looked at", path)
		}
	}
}
