package strict

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Object is a mapping with a fixed set of keys.
type Object struct {
	at Value
	// fields are the values of the keys in order. A job file is read for every submission, and its mappings are small: places is their
	// index by key only where there are many.
	fields []Value
	order  []string
	places map[string]int
	// older are the older names of keys that are still read, by the older name.
	older map[string]string
	// near are the keys that unknown ones were taken for.
	near []string
	// known are the fields of the keys, where the file has a schema.
	known []Field
}

// Object reads the value as a mapping whose keys are among keys; without keys, any may be there. Unknown and duplicate keys are reported.
// An absent or wrong value gives an object without fields. A renamed key is written new|old: either is read, not both, and the old one in a
// file is reported (Renamed).
func (v Value) Object(keys ...string) Object {
	o := Object{at: v}
	if !v.Given() {
		return o
	}
	if v.node.Kind != yaml.MappingNode {
		v.Wrong("is %s; want a mapping of keys to values", v.What())
		return o
	}
	keys, o.older = names(keys)
	n := len(v.node.Content) / 2
	if n > fewKeys {
		o.places, n = map[string]int{}, fewKeys
	}
	o.fields, o.order = make([]Value, 0, n), make([]string, 0, n)
	for i := 0; i+1 < len(v.node.Content); i += 2 {
		key, child := v.node.Content[i], v.node.Content[i+1]
		path := join(v.path, key.Value)
		at := Value{c: v.c, path: path, node: key}
		name, old := key.Value, false
		if now, renamed := o.older[name]; renamed {
			name, old = now, true
		}
		first := o.place(name)
		switch {
		case key.Kind != yaml.ScalarNode:
			v.c.At(key, v.path, "a key is %s; want a word", Value{c: v.c, path: v.path, node: key}.What())
		case key.Tag == "!!merge":
			at.Wrong("merge keys are not read; write the values out")
		case len(keys) > 0 && !slices.Contains(keys, name):
			meant, hint := Suggest(key.Value, keys)
			o.near = append(o.near, meant)
			at.Wrong("unknown key; %s", hint)
		case first >= 0 && o.fields[first].path != path:
			at.Wrong("is %s by another name, which is in line %d; leave one of them out", name, o.fields[first].node.Line)
		case first >= 0:
			at.Wrong("given twice; the first is in line %d", o.fields[first].node.Line)
		case child.Kind == yaml.ScalarNode && child.Tag == "!!null":
			at.Wrong("has no value; give one or leave the key out")
		default:
			if o.places != nil {
				o.places[name] = len(o.order)
			}
			o.fields, o.order = append(o.fields, Value{c: v.c, path: path, node: child}), append(o.order, name)
			if old {
				v.c.renamed(path, name)
			}
		}
	}
	return o
}

// names splits keys into their names, and the older ones of those that have one.
func names(keys []string) (now []string, older map[string]string) {
	for i, k := range keys {
		name, old, renamed := strings.Cut(k, "|")
		if !renamed {
			continue
		}
		if older == nil {
			keys, older = slices.Clone(keys), map[string]string{}
		}
		keys[i], older[old] = name, name
	}
	return keys, older
}

// fewKeys is how many keys are searched one by one.
const fewKeys = 64

// place is where a key is among the fields, -1 if it is not.
func (o Object) place(key string) int {
	if o.places == nil {
		return slices.Index(o.order, key)
	}
	if i, ok := o.places[key]; ok {
		return i
	}
	return -1
}

// Get is the value of a key, without node if it was left out.
func (o Object) Get(key string) Value {
	var v Value
	if i := o.place(key); i >= 0 {
		v = o.fields[i]
	} else {
		v = Value{c: o.at.c, path: join(o.at.path, key)}
	}
	if f := Find(o.known, key); f != nil {
		v.Form = &f.Form
	}
	return v
}

// Has reports whether the key is there, right or wrong or misspelt: one that is reported already is not reported again as
// missing.
func (o Object) Has(key string) bool {
	if slices.Contains(o.near, key) {
		return true
	}
	if !o.at.Mapped() {
		return false
	}
	for i := 0; i < len(o.at.node.Content); i += 2 {
		if name := o.at.node.Content[i].Value; name == key || o.older[name] == key {
			return true
		}
	}
	return false
}

// Must is get for a key that must be there, with the example of its field.
func (o Object) Must(key string) Value { return o.Need(key, Find(o.known, key).Example) }

// Need is get for a key that must be there; example is what to write.
func (o Object) Need(key, example string) Value {
	if o.at.Mapped() && !o.Has(key) {
		o.at.Wrong("%q is missing; write for example %s: %s", key, key, example)
	}
	return o.Get(key)
}

// join is the path of a key. A hostile key is cut: it would be repeated in messages.
func join(path, key string) string {
	if len(key) > 80 {
		key = strings.ToValidUTF8(key[:80], "") + "..."
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

// Keys are the keys of the mapping that were read, in the order of the file.
func (o Object) Keys() []string { return o.order }

// Misspelt reports whether a key was there that is none and was taken for another.
func (o Object) Misspelt() bool { return len(o.near) > 0 }

// Given reports whether the mapping is there, right or wrong.
func (o Object) Given() bool { return o.at.Given() }

// Wrong reports a problem of the mapping as a whole.
func (o Object) Wrong(format string, args ...any) { o.at.Wrong(format, args...) }

// Count is how many problems the file has so far.
func (o Object) Count() int { return o.at.Count() }

// As is the same mapping with the fields of its keys, whose forms its values get.
func (o Object) As(keys []Field) Object {
	o.known = keys
	return o
}

// Mapped reports whether it is a mapping at all.
func (o Object) Mapped() bool { return o.at.Mapped() }

// Sound reports whether no problem was found so far with the given keys, or with their totals, and none was left out of the list.
func (o Object) Sound(keys ...string) bool {
	found := &o.at.c.found
	for _, p := range found.List {
		for _, k := range keys {
			if at := join(o.at.path, k); p.Path == at || p.Path == at+".total" {
				return false
			}
		}
	}
	return found.More == 0
}
