package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// value is one place of a document: a node with the path that leads there. Its readers report what is wrong and then
// return a harmless value, so that one pass finds every problem. A value without node is a key that was left out: its
// readers return what they were given as the default and report nothing.
type value struct {
	c    *collector
	path string
	node *yaml.Node
	// form of what may stand here, where the file has a schema (jobFile).
	form *form
}

// given says whether the key is there.
func (v value) given() bool { return v.node != nil }

// wrong reports a problem at the value.
func (v value) wrong(format string, args ...any) { v.c.at(v.node, v.path, format, args...) }

// what describes the node for people.
func (v value) what() string {
	if v.node.Kind == yaml.MappingNode {
		return "a mapping"
	}
	if v.node.Kind == yaml.SequenceNode {
		return "a list"
	}
	switch v.node.Tag {
	case "!!null":
		return "empty"
	case "!!str", "!!int", "!!float", "!!bool", "!!timestamp":
		text := v.node.Value
		if len(text) > 40 {
			text = strings.ToValidUTF8(text[:40], "") + "..."
		}
		return strconv.Quote(text)
	}
	return v.node.Tag
}

// scalar is the text of a plain value; want says what should be there.
func (v value) scalar(want string) (string, bool) {
	if v.node.Kind == yaml.ScalarNode {
		switch v.node.Tag {
		case "!!str", "!!int", "!!float", "!!bool", "!!timestamp":
			return v.node.Value, true
		}
	}
	v.wrong("is %s; want %s", v.what(), want)
	return "", false
}

// text is any plain value as it is written.
func (v value) text(want, or string) string {
	if !v.given() {
		return or
	}
	s, ok := v.scalar(want)
	if ok && strings.ContainsRune(s, 0) {
		v.wrong("holds a zero byte, which no program can be given")
		return or
	}
	if !ok {
		return or
	}
	return s
}

// integer is a whole number from least to most.
func (v value) integer(least, most, or int64) int64 {
	if !v.given() {
		return or
	}
	want := fmt.Sprintf("a whole number from %d to %d", least, most)
	s, ok := v.scalar(want)
	if !ok {
		return or
	}
	n, err := strconv.ParseInt(strings.ReplaceAll(s, "_", ""), 10, 64)
	if err != nil || v.node.Tag != "!!int" || n < least || n > most {
		v.wrong("is %s; want %s", v.what(), want)
		return or
	}
	return n
}

// duration is a length of time with its unit, from least to most.
func (v value) duration(least, most, or time.Duration) time.Duration {
	if !v.given() {
		return or
	}
	s, ok := v.scalar("a length of time such as 90s or 2h")
	if !ok {
		return or
	}
	d, err := quantity.ParseDuration(s)
	switch {
	case err != nil:
		v.wrong("%v", err)
	case d < least || d > most:
		v.wrong("is %s; want %s to %s", s, formatDuration(least), formatDuration(most))
	default:
		return d
	}
	return or
}

// bytes is an amount of memory or disk with its unit, from least to the most a profile may name.
func (v value) bytes(least, or quantity.Amount) quantity.Amount {
	const most = trp.MaxAmount
	if !v.given() {
		return or
	}
	s, ok := v.scalar("a size such as 600Mi or 4Gi")
	if !ok {
		return or
	}
	parse := quantity.ParseSize
	if v.c.bare {
		parse = quantity.ParseBytes
	}
	a, err := parse(s)
	switch {
	case err != nil:
		v.wrong("%v", err)
	case a < least || a > most:
		v.wrong("is %s; want %s to %s", s, quantity.ExactBytes(least), quantity.ExactBytes(most))
	default:
		return a
	}
	return or
}

// fraction is a share such as 0.01 or 1%, in parts of scale, from least to most parts.
func (v value) fraction(scale, least, most, or int64) int64 {
	if !v.given() {
		return or
	}
	want := fmt.Sprintf("a share from %s to %s, such as 0.05 or 5%%", formatFraction(least, scale), formatFraction(most, scale))
	s, ok := v.scalar(want)
	if !ok {
		return or
	}
	n, ok := parseFraction(s, scale)
	if !ok || n < least || n > most {
		v.wrong("is %s; want %s", v.what(), want)
		return or
	}
	return n
}

// boolean is true or false.
func (v value) boolean() bool {
	if !v.given() {
		return false
	}
	if v.node.Kind != yaml.ScalarNode || v.node.Tag != "!!bool" {
		v.wrong("is %s; want true or false", v.what())
		return false
	}
	return strings.EqualFold(v.node.Value, "true")
}

// choice is the index of the word in words; the first is the default.
func (v value) choice(words ...string) int {
	if !v.given() {
		return 0
	}
	s, ok := v.scalar("one of " + strings.Join(words, ", "))
	if !ok {
		return 0
	}
	for i, w := range words {
		if s == w {
			return i
		}
	}
	_, hint := suggest(s, words)
	v.wrong("is %s; %s", v.what(), hint)
	return 0
}

// list is the elements, at most most of them.
func (v value) list(want string, most int) []value {
	if !v.given() {
		return nil
	}
	if v.node.Kind != yaml.SequenceNode {
		v.wrong("is %s; want %s", v.what(), want)
		return nil
	}
	if len(v.node.Content) > most {
		v.wrong("has %d elements; want at most %d", len(v.node.Content), most)
		return nil
	}
	out := make([]value, len(v.node.Content))
	for i, n := range v.node.Content {
		out[i] = value{c: v.c, path: fmt.Sprintf("%s[%d]", v.path, i), node: n}
	}
	return out
}
