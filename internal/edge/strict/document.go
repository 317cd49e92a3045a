package strict

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// ByteOrderMark is what some editors put before UTF-8 text. It is no part of the text.
const ByteOrderMark = "\ufeff"

// Documents splits a file into its YAML documents. Hostile input is refused before and after parsing: size, bytes that
// are no text, nesting, number of nodes, anchors and aliases (the bombs are made of them).
func (c *File) Documents(data []byte, most int) []*yaml.Node {
	if len(data) > MaxFileBytes {
		c.add(1, 1, "", "the file has %d bytes; at most %d are read", len(data), MaxFileBytes)
		return nil
	}
	data = bytes.TrimPrefix(data, []byte(ByteOrderMark))
	if !c.text(data) {
		return nil
	}
	var docs []*yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(joinSurrogates(data)))
	for {
		var doc yaml.Node
		err := dec.Decode(&doc)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			line, text := syntaxError(err)
			c.add(line, 1, "", "not valid YAML: %s", text)
			return nil
		}
		if empty(&doc) {
			continue
		}
		if len(docs) == most {
			c.At(&doc, "", "more than %d documents in one file; split the file", most)
			return nil
		}
		nodes := 0
		if !c.tame(&doc, 0, &nodes) {
			return nil
		}
		docs = append(docs, doc.Content[0])
	}
	if len(docs) == 0 {
		c.add(1, 1, "", "the file is empty")
	}
	return docs
}

// text checks that data is UTF-8 without control characters and says where it is not.
func (c *File) text(data []byte) bool {
	line, column := 1, 1
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			c.add(line, column, "", "byte 0x%02x is not UTF-8 text", data[i])
			return false
		case r < ' ' && r != '\n' && r != '\t' && r != '\r', r == 0x7f:
			c.add(line, column, "", "control character 0x%02x; write it as an escape in double quotes", r)
			return false
		}
		i += n
		column++
		if r == '\n' {
			line, column = line+1, 1
		}
	}
	return true
}

// empty reports whether a document holds nothing, as between two separators.
func empty(doc *yaml.Node) bool {
	return len(doc.Content) == 0 || doc.Content[0].Kind == yaml.ScalarNode && doc.Content[0].Tag == "!!null" && doc.Content[0].Value == ""
}

// tame checks the shape of a document.
func (c *File) tame(n *yaml.Node, depth int, nodes *int) bool {
	*nodes++
	switch {
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		c.At(n, "", "anchors and aliases are not read; write the value out")
		return false
	case depth > maxDepth:
		c.At(n, "", "nested deeper than %d levels", maxDepth)
		return false
	case *nodes > maxNodes:
		c.At(n, "", "more than %d values in one document", maxNodes)
		return false
	}
	for _, child := range n.Content {
		if !c.tame(child, depth+1, nodes) {
			return false
		}
	}
	return true
}

// syntaxError takes the YAML reader's error apart: the line, and the rest without its prefix.
func syntaxError(err error) (int, string) {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	if m := regexp.MustCompile(`^line (\d+): `).FindStringSubmatch(text); m != nil {
		line, _ := strconv.Atoi(m[1]) // digits only; an absurd number becomes line 1
		return line, strings.TrimPrefix(text, m[0])
	}
	return 1, text
}

// joinSurrogates rewrites JSON's way of writing a character beyond the first 65,536, as \ud83d\ude00: YAML has no such
// pairs. Only a file that begins as JSON is touched, and only between double quotes, where a backslash is an escape.
func joinSurrogates(data []byte) []byte {
	trimmed := bytes.TrimLeft(data, " \t\r\n")
	if len(trimmed) == 0 || trimmed[0] != '{' || !bytes.Contains(data, []byte(`\u`)) {
		return data
	}
	out := make([]byte, 0, len(data))
	for i := 0; i < len(data); i++ {
		if data[i] != '\\' || i+1 >= len(data) {
			out = append(out, data[i])
			continue
		}
		high, low := escape(data[i:]), rune(0)
		if high >= 0xd800 && high < 0xdc00 {
			low = escape(data[i+6:])
		}
		if low >= 0xdc00 && low < 0xe000 {
			out = utf8.AppendRune(out, (high-0xd800)<<10+(low-0xdc00)+0x10000)
			i += 11
			continue
		}
		out = append(out, data[i], data[i+1])
		i++
	}
	return out
}

// escape is the number of an escape at the start of b that is written as \u and four digits, 0 if there is none.
func escape(b []byte) rune {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0
	}
	n, err := strconv.ParseUint(string(b[2:6]), 16, 16)
	if err != nil {
		return 0
	}
	return rune(n)
}
