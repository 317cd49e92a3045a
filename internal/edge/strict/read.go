package strict

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Set is a value that replaces the one at a path of keys, such as model.network.delay; YAML flow style makes lists and
// mappings. A list's element is named by its number from 0.
type Set struct{ Path, Value string }

// Read reads a file of one document after the replacements of sets are made. read is called with its root unless the text
// itself is no YAML. The error is of kind Invalid and unwraps to *Problems: all that is wrong with the file.
func Read(name string, data []byte, sets []Set, read func(root Value)) error {
	c := New(name, false)
	for _, doc := range c.Documents(data, 1) {
		for _, s := range sets {
			c.Set(doc, s)
		}
		read(c.Root(doc, nil))
	}
	return c.Err()
}

// Set puts a value into the document, with the mappings that lead there.
func (c *File) Set(doc *yaml.Node, s Set) {
	var parsed yaml.Node
	at := "--set " + s.Path
	if len(s.Value) > maxSet || !c.text([]byte(s.Path+s.Value)) || yaml.Unmarshal([]byte(s.Value), &parsed) != nil ||
		len(parsed.Content) != 1 {
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
