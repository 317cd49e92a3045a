package strict

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

// Value is one place of a document: a node with the path that leads there. Its readers report what is wrong and then
// return a harmless value, so that one pass finds every problem. A value without node is a key that was left out: its
// readers return what they were given as the default and report nothing.
type Value struct {
	c    *File
	path string
	node *yaml.Node
	// Form of what is allowed here, where the file has a schema (jobFile).
	Form *Form
}

// Root is a document as a value of a form; nil: of any.
func (c *File) Root(doc *yaml.Node, f *Form) Value { return Value{c: c, node: doc, Form: f} }

// As is the same value, of a form.
func (v Value) As(f *Form) Value {
	v.Form = f
	return v
}

// Given reports whether the key is there.
func (v Value) Given() bool { return v.node != nil }

// Wrong reports a problem at the value, or for a key that was left out at the top of the file.
func (v Value) Wrong(format string, args ...any) {
	if v.node == nil {
		v.c.add(1, 1, v.path, format, args...)
		return
	}
	v.c.At(v.node, v.path, format, args...)
}

// Count is how many problems the file has so far, to see whether a part added some.
func (v Value) Count() int { return v.c.Count() }

// Renamed is File.Renamed, of the file that the value is in.
func (v Value) Renamed() []string { return v.c.Renamed() }

// Line is where the value stands in its file.
func (v Value) Line() int { return v.node.Line }

// Raw is a plain value as it is written, whatever it is.
func (v Value) Raw() string { return v.node.Value }

// Mapped reports whether the value is there and a mapping.
func (v Value) Mapped() bool { return v.Given() && v.node.Kind == yaml.MappingNode }

// Hollow says that a list or a mapping has nothing in it.
func (v Value) Hollow() bool { return len(v.node.Content) == 0 }

// Want is the form's description, and Most its bound.
func (v Value) Want() string { return v.Form.want }

// Most is the largest number, or how many elements there may be.
func (v Value) Most() int64 { return v.Form.Most }

// What describes the node for people.
func (v Value) What() string {
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

// Scalar is the text of a plain value; want says what should be there.
func (v Value) Scalar(want string) (string, bool) {
	if v.node.Kind == yaml.ScalarNode {
		switch v.node.Tag {
		case "!!str", "!!int", "!!float", "!!bool", "!!timestamp":
			return v.node.Value, true
		}
	}
	v.Wrong("is %s; want %s", v.What(), want)
	return "", false
}

// Text is any plain value as it is written.
func (v Value) Text(want, or string) string {
	if !v.Given() {
		return or
	}
	s, ok := v.Scalar(want)
	if ok && strings.ContainsRune(s, 0) {
		v.Wrong("holds a zero byte, which no program can be given")
		return or
	}
	if !ok {
		return or
	}
	return s
}

// Integer is a whole number from least to most.
func (v Value) Integer(least, most, or int64) int64 {
	if !v.Given() {
		return or
	}
	want := fmt.Sprintf("a whole number from %d to %d", least, most)
	s, ok := v.Scalar(want)
	if !ok {
		return or
	}
	n, err := strconv.ParseInt(strings.ReplaceAll(s, "_", ""), 10, 64)
	if err != nil || v.node.Tag != "!!int" || n < least || n > most {
		v.Wrong("is %s; want %s", v.What(), want)
		return or
	}
	return n
}

// Duration is a length of time with its unit, from least to most.
func (v Value) Duration(least, most, or time.Duration) time.Duration {
	if !v.Given() {
		return or
	}
	s, ok := v.Scalar("a length of time such as 90s or 2h")
	if !ok {
		return or
	}
	d, err := quantity.ParseDuration(s)
	switch {
	case err != nil:
		v.Wrong("%v", err)
	case d < least || d > most:
		v.Wrong("is %s; want %s to %s", s, FormatDuration(least), FormatDuration(most))
	default:
		return d
	}
	return or
}

// Bytes is an amount of memory or disk with its unit, from least to the most a profile may name.
func (v Value) Bytes(least, or quantity.Amount) quantity.Amount {
	const most = trp.MaxAmount
	if !v.Given() {
		return or
	}
	s, ok := v.Scalar("a size such as 600Mi or 4Gi")
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
		v.Wrong("%v", err)
	case a < least || a > most:
		v.Wrong("is %s; want %s to %s", s, quantity.ExactBytes(least), quantity.ExactBytes(most))
	default:
		return a
	}
	return or
}

// Fraction is a share such as 0.01 or 1%, in parts of scale, from least to most parts.
func (v Value) Fraction(scale, least, most, or int64) int64 {
	if !v.Given() {
		return or
	}
	want := fmt.Sprintf("a share from %s to %s, such as 0.05 or 5%%", FormatFraction(least, scale), FormatFraction(most, scale))
	s, ok := v.Scalar(want)
	if !ok {
		return or
	}
	n, ok := parseFraction(s, scale)
	if !ok || n < least || n > most {
		v.Wrong("is %s; want %s", v.What(), want)
		return or
	}
	return n
}

// Boolean is true or false; or if left out.
func (v Value) Boolean(or bool) bool {
	if !v.Given() {
		return or
	}
	if v.node.Kind != yaml.ScalarNode || v.node.Tag != "!!bool" {
		v.Wrong("is %s; want true or false", v.What())
		return false
	}
	return strings.EqualFold(v.node.Value, "true")
}

// Choice is the index of the word in words; the first is the default.
func (v Value) Choice(words ...string) int {
	if !v.Given() {
		return 0
	}
	s, ok := v.Scalar("one of " + strings.Join(words, ", "))
	if !ok {
		return 0
	}
	for i, w := range words {
		if s == w {
			return i
		}
	}
	_, hint := Suggest(s, words)
	v.Wrong("is %s; %s", v.What(), hint)
	return 0
}

// List is the elements, at most most of them.
func (v Value) List(want string, most int) []Value {
	if !v.Given() {
		return nil
	}
	if v.node.Kind != yaml.SequenceNode {
		v.Wrong("is %s; want %s", v.What(), want)
		return nil
	}
	if len(v.node.Content) > most {
		v.Wrong("has %d elements; want at most %d", len(v.node.Content), most)
		return nil
	}
	out := make([]Value, len(v.node.Content))
	for i, n := range v.node.Content {
		out[i] = Value{c: v.c, path: fmt.Sprintf("%s[%d]", v.path, i), node: n}
	}
	return out
}

// Plain reports whether the value is there and neither list nor mapping.
func (v Value) Plain() bool { return v.Given() && v.node.Kind == yaml.ScalarNode }

// Listed reports whether the value is there and a list.
func (v Value) Listed() bool { return v.Given() && v.node.Kind == yaml.SequenceNode }

// Real is a number from least to most, such as -0.5.
func (v Value) Real(least, most, or float64) float64 {
	if !v.Given() {
		return or
	}
	want := fmt.Sprintf("a number from %g to %g", least, most)
	s, ok := v.Scalar(want)
	if !ok {
		return or
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || !(f >= least && f <= most) {
		v.Wrong("is %s; want %s", v.What(), want)
		return or
	}
	return f
}

// Label is a name (job.ValidName); or if the key was left out.
func (v Value) Label(or string) string {
	if !v.Given() {
		return or
	}
	found := v.c.Count()
	s := v.Text("a name such as count-words", or)
	if v.c.Count() == found && !job.ValidName(s) {
		v.Wrong("is %s; want %s%s", v.What(), job.NameRule, nearLabel(s))
		return or
	}
	return s
}

// nearLabel proposes the label that s nearly is.
func nearLabel(s string) string {
	near := strings.Trim(strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		}
		return '-'
	}, s), "-")
	near = strings.Trim(near[:min(len(near), 63)], "-")
	if near == "" {
		return ""
	}
	return fmt.Sprintf(", such as %s", near)
}

// Instant is a moment as RFC 3339 writes it; Never if left out.
func (v Value) Instant() quantity.Instant {
	if !v.Given() {
		return quantity.Never
	}
	const want = "a moment such as 2026-03-01T18:00:00Z"
	s, ok := v.Scalar(want)
	if !ok {
		return quantity.Never
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil || t.Year() < 2000 || t.Year() > 2200 {
		v.Wrong("is %s; want %s, with its time zone, from the years 2000 to 2200", v.What(), want)
		return quantity.Never
	}
	return quantity.At(t)
}

// parseFraction reads a decimal such as 0.01 or 1% as parts of scale, which is a power of ten. It is exact: what would
// have to be rounded is refused.
func parseFraction(s string, scale int64) (int64, bool) {
	s, percent := strings.CutSuffix(s, "%")
	if percent {
		scale /= 100
	}
	whole, frac, dotted := strings.Cut(s, ".")
	frac = strings.TrimRight(frac, "0")
	digits := len(strconv.FormatInt(scale, 10)) - 1
	if len(frac) > digits || len(whole) > 3 || whole == "" && frac == "" && !dotted || strings.Trim(whole+frac, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(whole+frac+strings.Repeat("0", digits-len(frac)), 10, 64)
	return n, err == nil
}

// FormatFraction writes n parts of scale as a decimal.
func FormatFraction(n, scale int64) string {
	digits := len(strconv.FormatInt(scale, 10)) - 1
	s := fmt.Sprintf("%d.%0*d", n/scale, digits, n%scale)
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}

// FormatDuration writes a length of time exactly and without idle zeros: 2h, 1d12h, 1.5s.
func FormatDuration(d time.Duration) string {
	const day = 24 * time.Hour
	out := ""
	if d >= 2*day {
		if out = strconv.FormatInt(int64(d/day), 10) + "d"; d%day == 0 {
			return out
		}
		d %= day
	}
	s := d.String()
	if rest, ok := strings.CutSuffix(s, "m0s"); ok {
		s = rest + "m"
	}
	if rest, ok := strings.CutSuffix(s, "h0m"); ok {
		s = rest + "h"
	}
	return out + s
}
