package wire

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/civil"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/federation/flow"
	"sluice.dev/sluice/internal/core/health"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/reclaim"
	"sluice.dev/sluice/internal/core/supply"
	"sluice.dev/sluice/internal/core/trp"
)

// lasts are the largest members of the closed sets.
var lasts = map[reflect.Type]uint64{
	reflect.TypeFor[protocol.Role]():            uint64(protocol.Provider),
	reflect.TypeFor[protocol.NoticeKind]():      uint64(protocol.Concluded),
	reflect.TypeFor[protocol.Wanted]():          uint64(protocol.Subjob),
	reflect.TypeFor[protocol.ReservationKind](): uint64(protocol.ForHold),
	reflect.TypeFor[protocol.Class]():           protocol.Classes - 1,
	reflect.TypeFor[protocol.Stance]():          protocol.Stances - 1,
	reflect.TypeFor[health.Cause]():             health.Causes - 1,
	reflect.TypeFor[job.Kind]():                 uint64(job.Rigid),
	reflect.TypeFor[job.OnBadItem]():            uint64(job.BadItemSkips),
	reflect.TypeFor[job.Overrun]():              uint64(job.OverrunExtends),
	reflect.TypeFor[job.LineFormat]():           uint64(job.CSV),
	reflect.TypeFor[job.Level]():                uint64(job.SameZone),
	reflect.TypeFor[job.Outcome]():              uint64(job.Lost),
	reflect.TypeFor[job.State]():                uint64(job.Impossible),
	reflect.TypeFor[trp.Form]():                 uint64(trp.Envelope),
	reflect.TypeFor[trp.Combine]():              uint64(trp.Maximum),
	reflect.TypeFor[flow.Class]():               flow.MaxClasses - 1,
	reflect.TypeFor[flow.Kind]():                uint64(flow.Lasting),
	reflect.TypeFor[flow.Phase]():               uint64(flow.Expired),
	reflect.TypeFor[flow.Why]():                 uint64(flow.PastDeadline),
	reflect.TypeFor[civil.Days]():               uint64(civil.AllDays),
	reflect.TypeFor[reclaim.TermKind]():         uint64(reclaim.HasCapacity),
	reflect.TypeFor[reclaim.Holder]():           uint64(reclaim.Others),
	reflect.TypeFor[supply.State]():             uint64(supply.Leaving),
	reflect.TypeFor[supply.How]():               uint64(supply.Vanished),
	reflect.TypeFor[uint8]():                    255, // a count
}

// pinned are the members that the golden files have of sets that have grown since: an old line never changes.
var pinned = map[reflect.Type]uint64{reflect.TypeFor[protocol.Role](): uint64(protocol.Archive)}

// draw fills v, every field of it, with drawn values; about half of the fields stay zero.
func draw(t *rapid.T, v reflect.Value) {
	if f, ok := v.Addr().Interface().(*protocol.Fact); ok { // within a message
		*f = drawFact(t)
		return
	}
	if v.Type() == reflect.TypeFor[protocol.Body]() { // its kind says which
		return
	}
	if v.Kind() != reflect.Struct && v.Kind() != reflect.Array && rapid.Bool().Draw(t, "zero") {
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			draw(t, v.Field(i))
		}
	case reflect.Array:
		for i := range v.Len() {
			draw(t, v.Index(i))
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		draw(t, v.Elem())
	case reflect.Slice:
		s := reflect.MakeSlice(v.Type(), rapid.IntRange(1, 3).Draw(t, "len"), 3)
		for i := range s.Len() {
			draw(t, s.Index(i))
		}
		v.Set(s)
	case reflect.Interface:
		kind := errkind.Kind(rapid.IntRange(0, int(errkind.Corrupt)).Draw(t, "errkind"))
		v.Set(reflect.ValueOf(&errkind.Error{Kind: kind, Err: errors.New(rapid.String().Draw(t, "text"))}))
	case reflect.String:
		v.SetString(string(rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(t, "text")))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int16, reflect.Int32, reflect.Int64:
		bits := v.Type().Bits()
		v.SetInt(rapid.Int64().Draw(t, "int") >> (64 - bits))
	case reflect.Uint8:
		last, ok := lasts[v.Type()]
		if !ok {
			t.Fatalf("%s is a set that lasts does not name", v.Type())
		}
		v.SetUint(rapid.Uint64Range(0, last).Draw(t, "member"))
	case reflect.Uint16, reflect.Uint32, reflect.Uint64:
		bits := v.Type().Bits()
		v.SetUint(rapid.Uint64().Draw(t, "uint") >> (64 - bits))
	default:
		t.Fatalf("a core type has a field of kind %s, which this test cannot fill", v.Kind())
	}
}

// messageOf is a message of a kind, with a body that says nothing where the kind has one.
func messageOf(k protocol.Kind) protocol.Message {
	m := protocol.Message{Kind: k}
	if of := bodies[k]; of.fresh != nil {
		m.Body = of.fresh()
	}
	return m
}

// factOf is a fact of a kind, with a body that says nothing where the kind has one.
func factOf(k protocol.FactKind) protocol.Fact {
	f := protocol.Fact{Kind: k}
	if of := facts[k]; of.fresh != nil {
		f.Body = of.fresh()
	}
	return f
}

// complete gives a fact what none of its kind is without, and returns what takes it away again.
func complete(f *protocol.Fact) (undo func()) {
	var v layout
	of := facts[f.Kind]
	if of.needs != 0 {
		v = of.bind(f.Body)
	}
	switch of.needs {
	case 0:
		return func() {}
	case 20:
		return fill(v.spec)
	case 23:
		return fill(v.result)
	case 27:
		record := fill(v.record)
		spec := fill(&(*v.record).Spec)
		return func() { spec(); record() }
	}
	panic(fmt.Sprintf("field %d is needed, which this test cannot fill", of.needs))
}

// fill has a pointer point to something, if it doesn't.
func fill[T any](p **T) (undo func()) {
	was := *p
	*p = cmp.Or(was, new(T))
	return func() { *p = was }
}

// drawFact is a fact of a drawn kind, with all that it may say.
func drawFact(t *rapid.T) protocol.Fact {
	f := factOf(rapid.SampledFrom(factKinds).Draw(t, "fact kind"))
	drawFields(t, &f)
	if f.Body != nil {
		draw(t, reflect.ValueOf(f.Body).Elem())
	}
	if f.Kind == protocol.Claimed || f.Kind == protocol.LeaseMade { // the slice is in the body
		f.Slice = ""
	}
	complete(&f)
	if facts[f.Kind].optional && rapid.Bool().Draw(t, "without a body") {
		f.Body = nil
	}
	return f
}

// everyFactLeaf calls f for every leaf of a fact's header, and of every body of every kind.
func everyFactLeaf(f func(path string, of *protocol.Fact)) {
	of := protocol.Fact{Kind: protocol.QuarantineLifted}
	leaves(&of, func(path string) { f(path, &of) })
	for _, k := range factKinds {
		if of := factOf(k); of.Body != nil {
			leaves(of.Body, func(path string) { f(fmt.Sprintf("kind %02x %s", uint8(k), path), &of) })
		}
	}
}

// everyLeaf calls f for every leaf of a message's header, and of every type of body with a kind that it goes with.
func everyLeaf(f func(path string, m *protocol.Message)) {
	m := protocol.Message{Kind: protocol.Tick}
	leaves(&m, func(path string) { f(path, &m) })
	seen := map[reflect.Type]bool{}
	for _, k := range messageKinds {
		m := messageOf(k)
		if t := reflect.TypeOf(m.Body); m.Body != nil && !seen[t] {
			seen[t] = true
			leaves(m.Body, func(path string) { f(path, &m) })
		}
	}
}

// drawFields fills all fields of the struct p points to but Kind.
func drawFields(t *rapid.T, p any) {
	v := reflect.ValueOf(p).Elem()
	for i := range v.NumField() {
		if v.Type().Field(i).Name != "Kind" {
			draw(t, v.Field(i))
		}
	}
}

// leaves calls f once for every leaf field reachable from the struct p points to, with all the rest zero and the leaf
// set to a value that tells its place: leaf number i gets 1+i, or the last member of a closed set, or the pinned one.
func leaves(p any, f func(path string)) {
	root := reflect.ValueOf(p).Elem()
	n := uint64(0)
	var walk func(v reflect.Value, path string)
	leaf := func(v reflect.Value, path string, set func()) {
		n++
		set()
		f(path)
		v.SetZero()
	}
	walk = func(v reflect.Value, path string) {
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				name, whole := v.Type().Field(i).Name, false
				switch v.Addr().Interface().(type) {
				case *protocol.Fact, *protocol.Message:
					whole = true
				}
				if whole && (name == "Kind" || name == "Body") {
					continue
				}
				walk(v.Field(i), path+"."+name)
			}
		case reflect.Array:
			for i := range v.Len() {
				walk(v.Index(i), path)
			}
		case reflect.Pointer:
			leaf(v, path, func() { v.Set(reflect.New(v.Type().Elem())) })
			v.Set(reflect.New(v.Type().Elem()))
			walk(v.Elem(), path)
			v.SetZero()
		case reflect.Slice:
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			if f, ok := v.Index(0).Addr().Interface().(*protocol.Fact); ok {
				f.Kind = protocol.QuarantineLifted
			}
			walk(v.Index(0), path)
			v.SetZero()
		case reflect.Interface:
			leaf(v, path, func() {
				v.Set(reflect.ValueOf(&errkind.Error{Kind: errkind.Denied, Err: errors.New("text")}))
			})
		case reflect.String:
			leaf(v, path, func() { v.SetString("text") })
		case reflect.Bool:
			leaf(v, path, func() { v.SetBool(true) })
		case reflect.Int, reflect.Int16, reflect.Int32, reflect.Int64:
			leaf(v, path, func() { v.SetInt(int64(n)) })
		case reflect.Uint8:
			leaf(v, path, func() { v.SetUint(cmp.Or(pinned[v.Type()], lasts[v.Type()])) })
		case reflect.Uint16, reflect.Uint32, reflect.Uint64:
			leaf(v, path, func() { v.SetUint(n) })
		default:
			panic("a core type has a field of kind " + v.Kind().String() + ", which this test cannot fill")
		}
	}
	walk(root, root.Type().Name())
}
