package flow

import (
	"reflect"
	"testing"
	"unsafe"
)

// TestATicketIsSmall: at most 128 bytes (issue: 256), and no pointers, so that a million of them are no work for the collector. A probe is
// at most 64.
func TestATicketIsSmall(t *testing.T) {
	for _, c := range []struct {
		of   reflect.Type
		size uintptr
		most uintptr
	}{
		{reflect.TypeFor[Ticket](), unsafe.Sizeof(Ticket{}), 128}, {reflect.TypeFor[Probe](), unsafe.Sizeof(Probe{}), 64},
		{reflect.TypeFor[Answer](), unsafe.Sizeof(Answer{}), 64}, {reflect.TypeFor[Summary](), unsafe.Sizeof(Summary{}), 64},
		{reflect.TypeFor[Grant](), unsafe.Sizeof(Grant{}), 48}, {reflect.TypeFor[Digest](), unsafe.Sizeof(Digest{}), 128},
	} {
		t.Logf("%v: %d bytes", c.of, c.size)
		if c.size > c.most {
			t.Errorf("%v has %d bytes, more than %d", c.of, c.size, c.most)
		}
		if why := pointers(c.of); why != "" {
			t.Errorf("%v has a pointer: %s", c.of, why)
		}
	}
}

// pointers names what is a pointer in a type, "" if there is none.
func pointers(of reflect.Type) string {
	switch of.Kind() {
	case reflect.Struct:
		for i := range of.NumField() {
			if why := pointers(of.Field(i).Type); why != "" {
				return of.Field(i).Name + " " + why
			}
		}
		return ""
	case reflect.Array:
		return pointers(of.Elem())
	case reflect.Pointer, reflect.Slice, reflect.String, reflect.Map, reflect.Interface, reflect.Func, reflect.Chan, reflect.UnsafePointer:
		return of.String()
	}
	return ""
}

// TestANodeIsALineOfCache: of a hundred thousand of them each is one miss.
func TestANodeIsALineOfCache(t *testing.T) {
	if n := unsafe.Sizeof(Node{}); n != 64 {
		t.Errorf("a node has %d bytes", n)
	}
}

func TestEveryEndHasASentence(t *testing.T) {
	for w := Unended; w <= PastDeadline; w++ {
		if (w.String() == "") != (w == Unended) {
			t.Errorf("why %d is %q", w, w)
		}
	}
	for p := Drawing; p <= Expired; p++ {
		if p.String() == "" {
			t.Errorf("phase %d has no name", p)
		}
	}
}
