package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"go.yaml.in/yaml/v3"

	"sluice.dev/sluice/internal/face/terminal"
)

// record is an object whose keys keep their order, in JSON and in YAML. Values are nil, bool, string, integers,
// float64, record, []record and []string.
type record []pair

type pair struct {
	key   string
	value any
}

// MarshalJSON writes the keys in order.
func (r record) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, p := range r {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Quote(p.key))
		b.WriteByte(':')
		v, err := plain(p.value)
		if err != nil {
			return nil, err
		}
		b.Write(v)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// plain is JSON without the escapes that are for HTML.
func plain(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

// column is one property of a T: in lists a column of the table, in JSON a key.
type column[T any] struct {
	// key in JSON and YAML; empty for a column that is only for the table.
	key string
	// head of the table's column; empty for a property that is only for programs.
	head string
	// wide columns are only shown by -o wide.
	wide  bool
	value func(T) any
	// text for the table; nil: the value as it prints.
	text func(T) string
}

func (c column[T]) show(item T) string {
	if c.text != nil {
		return c.text(item)
	}
	if v := c.value(item); v != nil {
		return fmt.Sprint(v)
	}
	return ""
}

// formats of a list; the first is the default.
func formats() []string { return []string{"table", "wide", "json", "yaml", "name"} }

// show writes a list in the format asked for. none is said instead of an empty table.
func show[T any](a *app, items []T, columns []column[T], name func(T) string, none string) error {
	switch a.format {
	case "name":
		for _, it := range items {
			fmt.Fprintln(a.Out, name(it))
		}
		return nil
	case "json", "yaml":
		list := make([]record, len(items))
		for i, it := range items {
			list[i] = describe(it, columns)
		}
		return a.dump(list)
	}
	if len(items) == 0 {
		fmt.Fprintln(a.Out, none)
		return nil
	}
	return grid(a.Out, a.format == "wide", items, columns)
}

func describe[T any](item T, columns []column[T]) record {
	var r record
	for _, c := range columns {
		if c.key != "" {
			r = append(r, pair{c.key, c.value(item)})
		}
	}
	return r
}

// grid writes a table.
func grid[T any](out io.Writer, wide bool, items []T, columns []column[T]) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	line := func(cell func(column[T]) string) {
		var cells []string
		for _, c := range columns {
			if c.head != "" && (wide || !c.wide) {
				cells = append(cells, cell(c))
			}
		}
		fmt.Fprintln(w, strings.TrimRight(strings.Join(cells, "\t"), "\t"))
	}
	line(func(c column[T]) string { return c.head })
	for _, it := range items {
		line(func(c column[T]) string { return flat(c.show(it)) })
	}
	return w.Flush()
}

// flat is a cell: one line that is harmless for a terminal, a dash for nothing.
func flat(s string) string {
	if s = strings.TrimSpace(terminal.Line(s)); s == "" {
		return "-"
	}
	return s
}

// dump writes a value as JSON or YAML.
func (a *app) dump(v any) error {
	if list, ok := v.([]record); ok && list == nil {
		v = []record{}
	}
	data, err := plain(v)
	if err != nil {
		return err
	}
	return a.dumpJSON(data)
}

// dumpJSON writes what is JSON already, as JSON or YAML.
func (a *app) dumpJSON(data []byte) error {
	if a.format == "json" {
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
