package config

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// object is a mapping with a fixed set of keys.
type object struct {
	value
	// fields are the values of the keys in order. A job file is read for every submission, and its mappings are small: places is their
	// index by key only where there are many.
	fields []value
	order  []string
	places map[string]int
	// near are the keys that unknown ones were taken for.
	near []string
	// known are the fields of the keys, where the file has a schema.
	known []field
}

// object reads the value as a mapping whose keys are among keys; without keys, any may be there. Unknown and doubled
// keys are reported. An absent or wrong value gives an object without fields.
func (v value) object(keys ...string) object {
	o := object{value: v}
	if !v.given() {
		return o
	}
	if v.node.Kind != yaml.MappingNode {
		v.wrong("is %s; want a mapping of keys to values", v.what())
		return o
	}
	n := len(v.node.Content) / 2
	if n > fewKeys {
		o.places, n = map[string]int{}, fewKeys
	}
	o.fields, o.order = make([]value, 0, n), make([]string, 0, n)
	for i := 0; i+1 < len(v.node.Content); i += 2 {
		key, child := v.node.Content[i], v.node.Content[i+1]
		path := join(v.path, key.Value)
		at := value{c: v.c, path: path, node: key}
		first := o.place(key.Value)
		switch {
		case key.Kind != yaml.ScalarNode:
			v.c.at(key, v.path, "a key is %s; want a word", value{c: v.c, path: v.path, node: key}.what())
		case key.Tag == "!!merge":
			at.wrong("merge keys are not read; write the values out")
		case len(keys) > 0 && !slices.Contains(keys, key.Value):
			meant, hint := suggest(key.Value, keys)
			o.near = append(o.near, meant)
			at.wrong("unknown key; %s", hint)
		case first >= 0:
			at.wrong("given twice; the first is in line %d", o.fields[first].node.Line)
		case child.Kind == yaml.ScalarNode && child.Tag == "!!null":
			at.wrong("has no value; give one or leave the key out")
		default:
			if o.places != nil {
				o.places[key.Value] = len(o.order)
			}
			o.fields, o.order = append(o.fields, value{c: v.c, path: path, node: child}), append(o.order, key.Value)
		}
	}
	return o
}

// fewKeys is how many keys are searched one by one.
const fewKeys = 64

// place is where a key is among the fields, -1 if it is not.
func (o object) place(key string) int {
	if o.places == nil {
		return slices.Index(o.order, key)
	}
	if i, ok := o.places[key]; ok {
		return i
	}
	return -1
}

// get is the value of a key, without node if it was left out.
func (o object) get(key string) value {
	var v value
	if i := o.place(key); i >= 0 {
		v = o.fields[i]
	} else {
		v = value{c: o.c, path: join(o.path, key)}
	}
	if f := find(o.known, key); f != nil {
		v.form = &f.form
	}
	return v
}

// has says whether the key is there, right or wrong or misspelt: one that is reported already is not reported again as
// missing.
func (o object) has(key string) bool {
	if slices.Contains(o.near, key) {
		return true
	}
	if !o.given() || o.node.Kind != yaml.MappingNode {
		return false
	}
	for i := 0; i < len(o.node.Content); i += 2 {
		if o.node.Content[i].Value == key {
			return true
		}
	}
	return false
}

// must is get for a key that must be there, with the example of its field.
func (o object) must(key string) value { return o.need(key, find(o.known, key).example) }

// need is get for a key that must be there; example is what to write.
func (o object) need(key, example string) value {
	if o.given() && o.node.Kind == yaml.MappingNode && !o.has(key) {
		o.wrong("%q is missing; write for example %s: %s", key, key, example)
	}
	return o.get(key)
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
