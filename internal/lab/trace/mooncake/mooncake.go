// Package mooncake reads the request traces of Mooncake: one JSON object a line with timestamp (milliseconds since the
// trace's start), input_length and output_length (tokens), and hash_ids, the ids of the input's blocks of 512 tokens.
package mooncake

import (
	"bytes"
	"io"
	"strings"

	"sluice.dev/sluice/internal/lab/trace"
)

// Format of the file. Records are requests with blocks.
func Format() trace.Format {
	return trace.Format{Name: "mooncake", Doc: "requests to Moonshot's language model with their shared prefixes (JSON lines)",
		Kinds: []trace.Kind{trace.Request}, Open: open}
}

// Keys of an object, each exactly once, in any order.
const (
	timestamp = iota
	input
	output
	blocks
)

var keyNames = [...]string{timestamp: "timestamp", input: "input_length", output: "output_length", blocks: "hash_ids"}

func open(r io.Reader, file string) trace.Reader {
	var p parser
	return trace.OpenLines(r, file, func(l *trace.Line, r *trace.Record) bool {
		p.line, p.at, p.blocks = l, 0, p.blocks[:0]
		p.object(r)
		return true
	})
}

// parser reads the small part of JSON that the format uses: objects of whole numbers and lists of them. A general decoder
// would allocate for every list, and does not say where a number stands.
type parser struct {
	line   *trace.Line
	at     int
	blocks []int64 // every record's
}

// object reads one line. It stops at its first problem: the rest can't be separated.
func (p *parser) object(r *trace.Record) {
	r.Kind = trace.Request
	if !p.expect('{', "an object with timestamp, input_length, output_length and hash_ids") {
		return
	}
	var seen [len(keyNames)]bool
	for n := 0; !p.skip('}'); n++ {
		if n > 0 && !p.expect(',', "a comma or the object's end") {
			return
		}
		at := p.blank()
		key := p.key()
		switch {
		case key < 0:
			p.line.Fail(at, "expected one of the keys \"%s\"", strings.Join(keyNames[:], `", "`))
			return
		case seen[key]:
			p.line.Fail(at, "%s is there twice", keyNames[key])
			return
		}
		seen[key] = true
		if !p.expect(':', "a colon") || !p.value(key, r) {
			return
		}
	}
	if end := p.blank(); end < len(p.line.Text) {
		p.line.Fail(end, "expected nothing behind the object")
	}
	for key, there := range seen {
		if !there {
			p.line.Fail(0, "the object lacks %s", keyNames[key])
		}
	}
}

// value reads what belongs to key into r.
func (p *parser) value(key int, r *trace.Record) bool {
	if key != blocks {
		f, ok := p.number(keyNames[key])
		switch {
		case !ok:
		case key == timestamp:
			r.At = f.Milliseconds()
		case key == input:
			r.Request.Input = f.Count()
		case key == output:
			r.Request.Output = f.Count()
		}
		return ok
	}
	if !p.expect('[', "a list of ids") {
		return false
	}
	for n := 0; !p.skip(']'); n++ {
		if n > 0 && !p.expect(',', "a comma or the list's end") {
			return false
		}
		f, ok := p.number(keyNames[key])
		if !ok {
			return false
		}
		p.blocks = append(p.blocks, f.Count())
	}
	r.Request.Blocks = p.blocks
	return true
}

// blank skips blanks and returns the place behind them.
func (p *parser) blank() int {
	for p.at < len(p.line.Text) && (p.line.Text[p.at] == ' ' || p.line.Text[p.at] == '\t') {
		p.at++
	}
	return p.at
}

// skip takes c if it comes next.
func (p *parser) skip(c byte) bool {
	if at := p.blank(); at == len(p.line.Text) || p.line.Text[at] != c {
		return false
	}
	p.at++
	return true
}

// expect takes c, or notes that it is not there.
func (p *parser) expect(c byte, what string) bool {
	if p.skip(c) {
		return true
	}
	p.line.Fail(p.at, "expected %s", what)
	return false
}

// key takes a key in quotes and returns its index, or -1.
func (p *parser) key() int {
	for i, name := range keyNames {
		if rest := p.line.Text[p.at:]; len(rest) > len(name)+1 && rest[0] == '"' && rest[len(name)+1] == '"' &&
			bytes.HasPrefix(rest[1:], []byte(name)) {
			p.at += len(name) + 2
			return i
		}
	}
	return -1
}

// number takes what could be one, up to the next mark; its field says whether it is.
func (p *parser) number(name string) (trace.Field, bool) {
	from := p.blank()
	for p.at < len(p.line.Text) && bytes.IndexByte([]byte(" \t,:[]{}\""), p.line.Text[p.at]) < 0 {
		p.at++
	}
	if p.at == from {
		p.line.Fail(from, "%s: expected a number", name)
		return trace.Field{}, false
	}
	return p.line.Field(name, from, p.at), true
}
