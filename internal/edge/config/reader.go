package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// Other files that people write (scenarios) are read with the same strictness through the names here. Value and Object
// report what is wrong to the file's list of problems and then give a harmless value, so that one pass finds everything.
type (
	// Value is one place of a file. Its readers give the default for a key that was left out.
	Value = value
	// Object is a mapping with a fixed set of keys.
	Object = object
)

// Set is a value that replaces the one at a path of keys, such as model.network.delay; YAML flow style makes lists and
// mappings. A list's element is named by its number from 0.
type Set struct{ Path, Value string }

// Read reads a file of one document after the replacements of sets are made. read is called with its root unless the text
// itself is no YAML. The error is of kind Invalid and unwraps to *Problems: all that is wrong with the file.
func Read(name string, data []byte, sets []Set, read func(root Value)) error {
	c := &collector{file: name}
	for _, doc := range c.documents(data, 1) {
		for _, s := range sets {
			c.set(doc, s)
		}
		read(value{c: c, node: doc})
	}
	return c.err()
}

// set puts a value into the document, with the mappings that lead there.
func (c *collector) set(doc *yaml.Node, s Set) {
	var parsed yaml.Node
	at := "--set " + s.Path
	if len(s.Value) > maxSet || !c.text([]byte(s.Path+s.Value)) || yaml.Unmarshal([]byte(s.Value), &parsed) != nil || len(parsed.Content) != 1 {
		c.add(1, 1, at, "%.40q is not a YAML value; write for example %s=10ms", s.Value, s.Path)
		return
	}
	nodes := 0
	if !c.tame(&parsed, 0, &nodes) {
		return
	}
	n, keys := doc, strings.Split(s.Path, ".")
	if len(keys) > maxDepth {
		c.add(1, 1, at, "has more than %d keys", maxDepth)
		return
	}
	for _, key := range keys {
		if n = child(n, key); n == nil {
			c.add(1, 1, at, "%q has no place there: what holds it is a plain value, or a list with fewer elements", key)
			return
		}
	}
	line, column := n.Line, n.Column
	*n = *parsed.Content[0]
	n.Line, n.Column = line, column
}

// maxSet is the longest text of one replacement.
const maxSet = 64 << 10

// child is the value of a key, made if it is missing; nil where there can be none.
func child(n *yaml.Node, key string) *yaml.Node {
	switch n.Kind {
	case yaml.SequenceNode:
		for i, e := range n.Content {
			if fmt.Sprint(i) == key {
				return e
			}
		}
		return nil
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == key {
				return n.Content[i+1]
			}
		}
		k := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key, Line: n.Line, Column: n.Column}
		v := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: n.Line, Column: n.Column}
		n.Content = append(n.Content, k, v)
		return v
	default: // a plain value holds nothing
		return nil
	}
}

// Suggest says what somebody who wrote word may have meant of the known words: "did you mean x?", or the list of them.
func Suggest(word string, known []string) string {
	_, hint := suggest(word, known)
	return hint
}

// Given says whether the value is there.
func (v value) Given() bool { return v.given() }

// Plain says whether the value is there and neither list nor mapping.
func (v value) Plain() bool { return v.given() && v.node.Kind == yaml.ScalarNode }

// Listed says whether the value is there and a list.
func (v value) Listed() bool { return v.given() && v.node.Kind == yaml.SequenceNode }

// Wrong reports a problem at the value, or for a key that was left out at the top of the file.
func (v value) Wrong(format string, args ...any) {
	if v.node == nil {
		v.c.add(1, 1, v.path, format, args...)
		return
	}
	v.wrong(format, args...)
}

// Count is how many problems were found so far.
func (v value) Count() int { return v.c.count() }

// Text is a plain value as written; want says what should be there.
func (v value) Text(want, or string) string { return v.text(want, or) }

// Label is a name: a DNS label.
func (v value) Label(or string) string { return v.label(or) }

// Integer is a whole number from least to most.
func (v value) Integer(least, most, or int64) int64 { return v.integer(least, most, or) }

// Duration is a length of time with its unit, from least to most.
func (v value) Duration(least, most, or time.Duration) time.Duration {
	return v.duration(least, most, or)
}

// Bytes is a size with its unit, at least least.
func (v value) Bytes(least, or quantity.Amount) quantity.Amount { return v.bytes(least, or) }

// Fraction is a share such as 0.01 or 1%, in parts of scale (a power of ten), from least to most parts.
func (v value) Fraction(scale, least, most, or int64) int64 {
	return v.fraction(scale, least, most, or)
}

// Real is a number from least to most, such as -0.5.
func (v value) Real(least, most, or float64) float64 {
	if !v.given() {
		return or
	}
	want := fmt.Sprintf("a number from %g to %g", least, most)
	s, ok := v.scalar(want)
	if !ok {
		return or
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || !(f >= least && f <= most) {
		v.wrong("is %s; want %s", v.what(), want)
		return or
	}
	return f
}

// Boolean is true or false; or if left out.
func (v value) Boolean(or bool) bool {
	if !v.given() {
		return or
	}
	return v.boolean()
}

// Choice is the index of the word in words; the first is the default.
func (v value) Choice(words ...string) int { return v.choice(words...) }

// List is the elements, at most most of them; want says what should be there.
func (v value) List(want string, most int) []Value { return v.list(want, most) }

// Object is the value as a mapping whose keys are among keys.
func (v value) Object(keys ...string) Object { return v.object(keys...) }

// Get is the value of a key.
func (o object) Get(key string) Value { return o.get(key) }

// Need is the value of a key that must be there; example is what to write.
func (o object) Need(key, example string) Value { return o.need(key, example) }

// Keys are the keys of the mapping that were read, in the order of the file.
func (o object) Keys() []string { return o.order }

// Has says whether the key is there, right or wrong.
func (o object) Has(key string) bool { return o.has(key) }

// WorkKeys are the keys of a job file's spec that Work reads.
func WorkKeys() []string {
	return []string{"queue", "priority", "items", "steps", "rigid", "memory", "theta", "startup", "speeds", "template"}
}

// Work reads what a job file says of the work itself, and nothing of how it is started: the keys of WorkKeys, which o must
// know. theta is the default. What it returns is good only if no problem was added.
func Work(o Object, theta int64) *job.Spec {
	o.known = specFields()
	s := &job.Spec{Queue: o.get("queue").label(DefaultQueue), Deadline: quantity.Never}
	s.Priority = int32(o.get("priority").asNumber())
	kinds := kindsOfWork()
	o.c.work(o, s, kinds[:len(kinds)-1])
	o.c.risk(o, s)
	if !o.has("theta") {
		s.Theta = theta
	}
	s.Speeds = speeds(o.get("speeds"))
	s.Worth = worth(o.get("worth"))
	s.Template = o.get("template").label("")
	o.c.memory(o, s)
	return s
}

// Memory is a memory profile over total units, in one of the forms of a job file.
func (v value) Memory(total int64) trp.Profile {
	if v.Plain() {
		return trp.Profile{Form: trp.Phases, Phases: []trp.Phase{{UpTo: total, Mean: v.bytes(1, 1)}}}
	}
	s := &job.Spec{Total: total}
	if v.given() {
		memory := find(specFields(), "memory").form
		v.form = &memory
		forms(v, s)
	}
	return s.Profile
}
