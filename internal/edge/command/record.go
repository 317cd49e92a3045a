package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"go.yaml.in/yaml/v3"

	"sluice.dev/sluice/internal/edge/terminal"
)

// Record is an object whose keys keep their order, in JSON and in YAML. Values are nil, bool, string, integers,
// float64, Record, []Record and []string.
type Record []Pair

// Pair is one key of a record with its value.
type Pair struct {
	Key   string
	Value any
}

// MarshalJSON writes the keys in order.
func (r Record) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, p := range r {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Quote(p.Key))
		b.WriteByte(':')
		v, err := Plain(p.Value)
		if err != nil {
			return nil, err
		}
		b.Write(v)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// Plain is JSON without the escapes that are for HTML.
func Plain(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

// Column is one property of a T: in lists a column of the table, in JSON a key.
type Column[T any] struct {
	// Key in JSON and YAML; empty for a column that is only for the table.
	Key string
	// Head of the table's column; empty for a property that is only for programs.
	Head string
	// Wide columns are only shown by -o wide.
	Wide  bool
	Value func(T) any
	// Text for the table; nil: the value as it prints.
	Text func(T) string
}

func (c Column[T]) show(item T) string {
	if c.Text != nil {
		return c.Text(item)
	}
	if v := c.Value(item); v != nil {
		return fmt.Sprint(v)
	}
	return ""
}

// Show writes a list in the given format; none instead of an empty table.
func Show[T any](a *App, items []T, columns []Column[T], name func(T) string, none string) error {
	switch a.Format {
	case "name":
		for _, it := range items {
			fmt.Fprintln(a.Out, name(it))
		}
		return nil
	case "json", "yaml":
		list := make([]Record, len(items))
		for i, it := range items {
			list[i] = Describe(it, columns)
		}
		return a.Dump(list)
	}
	if len(items) == 0 {
		fmt.Fprintln(a.Out, none)
		return nil
	}
	return Grid(a.Out, a.Format == "wide", items, columns)
}

// Describe is an item as its columns say it.
func Describe[T any](item T, columns []Column[T]) Record {
	var r Record
	for _, c := range columns {
		if c.Key != "" {
			r = append(r, Pair{c.Key, c.Value(item)})
		}
	}
	return r
}

// Grid writes a table.
func Grid[T any](out io.Writer, wide bool, items []T, columns []Column[T]) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	line := func(cell func(Column[T]) string) {
		var cells []string
		for _, c := range columns {
			if c.Head != "" && (wide || !c.Wide) {
				cells = append(cells, cell(c))
			}
		}
		fmt.Fprintln(w, strings.TrimRight(strings.Join(cells, "\t"), "\t"))
	}
	line(func(c Column[T]) string { return c.Head })
	for _, it := range items {
		line(func(c Column[T]) string { return Flat(c.show(it)) })
	}
	return w.Flush()
}

// Flat is a cell: one line that is harmless for a terminal, a dash for nothing.
func Flat(s string) string {
	if s = strings.TrimSpace(terminal.Line(s)); s == "" {
		return "-"
	}
	return s
}

// Dump writes a value as JSON or YAML.
func (a *App) Dump(v any) error {
	if list, ok := v.([]Record); ok && list == nil {
		v = []Record{}
	}
	data, err := Plain(v)
	if err != nil {
		return err
	}
	return a.DumpJSON(data)
}

// DumpJSON writes what is JSON already, as JSON or YAML.
func (a *App) DumpJSON(data []byte) error {
	if a.Format == "json" {
		var b bytes.Buffer
		if err := json.Indent(&b, data, "", "  "); err != nil {
			return err
		}
		fmt.Fprintln(a.Out, strings.TrimSpace(b.String()))
		return nil
	}
	// JSON is YAML, so one form is made of the other, in block style.
	var n yaml.Node
	if err := yaml.Unmarshal(data, &n); err != nil {
		return err
	}
	block(&n)
	enc := yaml.NewEncoder(a.Out)
	enc.SetIndent(2)
	if err := enc.Encode(&n); err != nil {
		return err
	}
	return enc.Close()
}

func block(n *yaml.Node) {
	if len(n.Content) > 0 {
		n.Style = 0
	} else if n.Kind == yaml.ScalarNode && !strings.Contains(n.Value, "\n") {
		n.Style &^= yaml.DoubleQuotedStyle
	} else if n.Kind == yaml.ScalarNode {
		n.Style = yaml.LiteralStyle
	}
	for _, c := range n.Content {
		block(c)
	}
}
