// Package digesttest finds durable fields that a digest leaves out: two states that differ in one of them would look
// alike, and neither a replay nor a fold that loses it would be noticed.
package digesttest

import (
	"fmt"
	"reflect"
	"regexp"
	"testing"
	"unsafe"
)

// EveryField changes each field of the value that p points to, one at a time and however deep, unexported ones too, and
// fails where sum stays as it was, or is what another change has made it. soft are the paths ("leases", "verdict.State")
// of fields that are not durable, or told by others; one that does not exist is an error too.
func EveryField(t testing.TB, p any, sum func() uint64, soft ...string) {
	t.Helper()
	w := walker{t: t, sum: sum, soft: map[string]bool{}, seen: map[uint64]string{}}
	for _, path := range soft {
		w.soft[path] = false
	}
	v := reflect.ValueOf(p).Elem()
	w.fill(v, "")
	w.seen[sum()] = "no change"
	w.walk(v, "")
	for path, met := range w.soft {
		if !met {
			t.Errorf("%s is said not to be durable, and there is no such field", path)
		}
	}
	if len(w.seen) < 3 {
		t.Errorf("only %d different digests were seen: the search is broken", len(w.seen))
	}
}

type walker struct {
	t    testing.TB
	sum  func() uint64
	soft map[string]bool
	seen map[uint64]string
}

// index is a list's, which soft paths leave out.
var index = regexp.MustCompile(`\[\d+\]`)

func (w *walker) isSoft(field string) bool {
	_, soft := w.soft[field]
	return soft
}

// fill gives every field a value of its own, lists two elements, and pointers something to point to.
func (w *walker) fill(v reflect.Value, path string) {
	if w.isSoft(path) {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		w.fill(v.Elem(), path)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			w.fill(v.Index(i), path)
		}
	case reflect.Array:
		for i := range v.Len() {
			w.fill(v.Index(i), path)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			w.fill(settable(v.Field(i)), join(path, v.Type().Field(i)))
		}
	default:
		w.next(v)
	}
}

// next is a value that was not there before.
func (w *walker) next(v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(v.Int() + 1)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(v.Uint() + 1)
	case reflect.String:
		v.SetString(v.String() + "x")
	default:
		w.t.Fatalf("a durable field of kind %v: say here how to change it, or name it as soft", v.Kind())
	}
}

func (w *walker) walk(v reflect.Value, path string) {
	if field := index.ReplaceAllString(path, ""); w.isSoft(field) {
		w.soft[field] = true
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		w.walk(v.Elem(), path)
		was := reflect.ValueOf(v.Interface())
		v.SetZero()
		w.differs(path + " is nil")
		v.Set(was)
	case reflect.Slice:
		for i := range v.Len() {
			w.walk(v.Index(i), fmt.Sprintf("%s[%d]", path, i))
		}
		was := reflect.ValueOf(v.Interface())
		for n := range v.Len() {
			v.Set(was.Slice(0, n))
			w.differs(fmt.Sprintf("%s has %d elements", path, n))
		}
		v.Set(was)
	case reflect.Array:
		for i := range v.Len() {
			w.walk(v.Index(i), fmt.Sprintf("%s[%d]", path, i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			w.walk(settable(v.Field(i)), join(path, v.Type().Field(i)))
		}
	default:
		was := reflect.New(v.Type()).Elem()
		was.Set(v)
		w.next(v)
		w.differs(path)
		v.Set(was)
	}
}

func (w *walker) differs(what string) {
	w.t.Helper()
	sum := w.sum()
	if other, ok := w.seen[sum]; ok {
		w.t.Errorf("%s: the digest is that of %s", what, other)
	}
	w.seen[sum] = what
}

// settable is a field that may be set although it is not exported.
func settable(f reflect.Value) reflect.Value {
	return reflect.NewAt(f.Type(), unsafe.Pointer(f.UnsafeAddr())).Elem()
}

func join(path string, f reflect.StructField) string {
	switch {
	case f.Anonymous:
		return path
	case path == "":
		return f.Name
	}
	return path + "." + f.Name
}
