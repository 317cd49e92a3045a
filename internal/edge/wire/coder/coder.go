// Package coder writes and reads the fields of a value, in the encoding of Protocol Buffers. It must not know what any value means.
package coder

import (
	"errors"
	"fmt"
	"math/bits"

	"google.golang.org/protobuf/encoding/protowire"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// Coder walks the fields of a value in ascending order of their numbers and either writes them or reads them. One
// function per type describes both directions, so that they cannot differ. Nothing is stored through a
// pointer while writing: values are shared.
type Coder struct {
	writing bool
	// b is the output, or the whole input.
	b []byte
	// pos and end bound what is left of the message being read.
	pos, end int
	// last is the number of the field read last in the message being read, tag the one that was looked at last.
	last protowire.Number
	tag  tag
	what string
	err  error
	// shared is what values of one journal have in common, nil for a value alone.
	shared Shared
}

// Shared is what values of one journal have in common.
type Shared interface {
	// Text is b as a string.
	Text(b []byte) string
}

// Writer writes behind what is in b.
func Writer(b []byte) Coder { return Coder{writing: true, b: b} }

// Reader shares what it reads; nil: with nothing.
func Reader(s Shared) Coder { return Coder{shared: s} }

// Writing reports the direction.
func (c *Coder) Writing() bool { return c.writing }

// Written is the output.
func (c *Coder) Written() []byte { return c.b }

// Err is why nothing more can be read; nil: it can.
func (c *Coder) Err() error { return c.err }

// Done says whether the message being read is at its end.
func (c *Coder) Done() bool { return c.pos == c.end }

// Shared is what it was made with.
func (c *Coder) Shared() Shared { return c.shared }

func (c *Coder) str(b []byte) string {
	if c.shared == nil {
		return string(b)
	}
	return c.shared.Text(b)
}

// Read starts reading a value called what in error messages, of this version.
func (c *Coder) Read(what string, version byte, b []byte) error {
	if len(b) == 0 {
		return errkind.Errorf(errkind.Corrupt, "%s: no bytes", what)
	}
	if b[0] != version {
		return errkind.Errorf(errkind.Unsupported, "%s: format %d is not known to this build (it reads %d): use the Sluice version that "+
			"wrote it", what, b[0], version)
	}
	*c = Coder{b: b, pos: 1, end: len(b), what: what, shared: c.shared}
	return nil
}

func (c *Coder) fail(k errkind.Kind, format string, args ...any) {
	if c.err == nil {
		c.err = errkind.Errorf(k, "%s, byte %d: %s", c.what, c.pos, fmt.Sprintf(format, args...))
		c.pos = c.end
	}
}

// Damaged notes that the input is not what was written.
func (c *Coder) Damaged(format string, args ...any) {
	c.fail(errkind.Corrupt, "damaged: "+format, args...)
}

// Newer notes that the input is of a newer build.
func (c *Coder) Newer(format string, args ...any) {
	c.fail(errkind.Unsupported, "not known to this build: "+format+"; it was written by a newer one, use that", args...)
}

// Finish refuses what is left of the message being read: fields come in ascending order, so it is either a number we do
// not know or an encoding that is not ours.
func (c *Coder) Finish() {
	if c.err != nil || c.pos == c.end {
		return
	}
	n, _, size := protowire.ConsumeTag(c.b[c.pos:c.end])
	switch {
	case size < 0:
		c.Damaged("a field's number cannot be read")
	case n <= c.last:
		c.Damaged("field %d after field %d", n, c.last)
	default:
		c.Newer("field %d", n)
	}
}

// Next says whether the next field is n, and steps over its tag.
func (c *Coder) Next(n protowire.Number, t protowire.Type) bool {
	if c.pos == c.end {
		return false
	}
	if c.tag.at != c.pos { // most fields are not there: the same tag is looked at by many
		got, gotType, size := protowire.ConsumeTag(c.b[c.pos:c.end])
		if size < 0 {
			c.Damaged("a field's number cannot be read")
			return false
		}
		c.tag = tag{c.pos, size, got, gotType}
	}
	if c.tag.number != n {
		return false
	}
	if c.tag.kind != t || c.tag.size != protowire.SizeTag(n) {
		c.Damaged("field %d has wire type %d, want %d", n, c.tag.kind, t)
		return false
	}
	c.pos += c.tag.size
	c.last = n
	return true
}

// tag is the tag at a place of the input. None is at 0, where the version is.
type tag struct {
	at, size int
	number   protowire.Number
	kind     protowire.Type
}

func (c *Coder) readVarint() uint64 {
	v, size := protowire.ConsumeVarint(c.b[c.pos:c.end])
	if size < 0 || size != protowire.SizeVarint(v) {
		c.Damaged("a number in field %d cannot be read", c.last)
		return 0
	}
	c.pos += size
	return v
}

// Varint is the common part of all fields that are one number, zero left out. limit is the largest value allowed.
func (c *Coder) Varint(n protowire.Number, v, limit uint64) uint64 {
	if c.writing {
		if v != 0 {
			c.b = protowire.AppendVarint(protowire.AppendTag(c.b, n, protowire.VarintType), v)
		}
		return v
	}
	if !c.Next(n, protowire.VarintType) {
		return 0
	}
	v = c.readVarint()
	switch {
	case c.err != nil:
		return 0
	case v == 0:
		c.Damaged("field %d is written although it is zero", n)
	case v > limit:
		c.Newer("value %d of field %d", v, n)
	}
	return v
}

// Unsigned is a field that is never negative.
func Unsigned[T ~uint8 | ~uint16 | ~uint32 | ~uint64](c *Coder, n protowire.Number, v *T) {
	if u := c.Varint(n, uint64(*v), uint64(^T(0))); !c.writing {
		*v = T(u)
	}
}

// Signed is a field that may be negative; small amounts of either sign are short.
func Signed[T ~int | ~int16 | ~int32 | ~int64](c *Coder, n protowire.Number, v *T) {
	if c.writing {
		c.Varint(n, protowire.EncodeZigZag(int64(*v)), ^uint64(0))
		return
	}
	i := protowire.DecodeZigZag(c.Varint(n, 0, ^uint64(0)))
	if int64(T(i)) != i {
		c.Damaged("number %d in field %d does not fit", i, n)
		return
	}
	*v = T(i)
}

// Enum is a value of a closed set whose largest member this build knows is last.
func Enum[T ~uint8](c *Coder, n protowire.Number, v *T, last T) {
	if u := c.Varint(n, uint64(*v), uint64(last)); !c.writing {
		*v = T(u)
	}
}

// Boolean is a field that is true or false.
func Boolean(c *Coder, n protowire.Number, v *bool) {
	var u uint64
	if c.writing && *v {
		u = 1
	}
	if u = c.Varint(n, u, 1); !c.writing {
		*v = u != 0
	}
}

// Instant is a moment: eight bytes, which is shorter than any varint of a time of this century.
func Instant[T ~int64](c *Coder, n protowire.Number, v *T) {
	if c.writing {
		if *v != 0 {
			c.b = protowire.AppendFixed64(protowire.AppendTag(c.b, n, protowire.Fixed64Type), uint64(*v))
		}
		return
	}
	if !c.Next(n, protowire.Fixed64Type) {
		return
	}
	u, size := protowire.ConsumeFixed64(c.b[c.pos:c.end])
	if size < 0 || u == 0 {
		c.Damaged("the moment in field %d cannot be read", n)
		return
	}
	c.pos += size
	*v = T(u)
}

// Bytes steps over a length and returns the part of the input that it bounds.
func (c *Coder) Bytes() []byte {
	length := c.readVarint()
	if c.err != nil {
		return nil
	}
	if length > uint64(c.end-c.pos) {
		c.Damaged("field %d is cut short", c.last)
		return nil
	}
	b := c.b[c.pos : c.pos+int(length)]
	c.pos += int(length)
	return b
}

// Text is a string.
func Text[T ~string](c *Coder, n protowire.Number, v *T) {
	if c.writing {
		if *v != "" {
			c.b = protowire.AppendString(protowire.AppendTag(c.b, n, protowire.BytesType), string(*v))
		}
		return
	}
	if !c.Next(n, protowire.BytesType) {
		return
	}
	b := c.Bytes()
	if c.err == nil && len(b) == 0 {
		c.Damaged("field %d is written although it is empty", n)
		return
	}
	*v = T(c.str(b))
}

// Texts is a list of strings; an empty element is kept.
func Texts[T ~string](c *Coder, n protowire.Number, v *[]T) {
	if c.writing {
		for _, s := range *v {
			c.b = protowire.AppendString(protowire.AppendTag(c.b, n, protowire.BytesType), string(s))
		}
		return
	}
	for c.Next(n, protowire.BytesType) {
		*v = append(*v, T(c.str(c.Bytes())))
	}
}

// Numbers is a list of signed numbers packed into one field.
func Numbers[T ~int64](c *Coder, n protowire.Number, v *[]T) {
	if c.writing {
		if len(*v) > 0 {
			start := c.Open(n)
			for _, i := range *v {
				c.b = protowire.AppendVarint(c.b, protowire.EncodeZigZag(int64(i)))
			}
			c.Shut(start)
		}
		return
	}
	if !c.Next(n, protowire.BytesType) {
		return
	}
	if c.Within(func() { *v = unpack(c, *v) }) == 0 {
		c.Damaged("field %d is written although it is empty", n)
	}
}

// Grid is a list of lists of numbers; an empty row is kept.
func Grid[T ~int64](c *Coder, n protowire.Number, v *[][]T) {
	if c.writing {
		for _, row := range *v {
			start := c.Open(n)
			for _, i := range row {
				c.b = protowire.AppendVarint(c.b, protowire.EncodeZigZag(int64(i)))
			}
			c.Shut(start)
		}
		return
	}
	for c.Next(n, protowire.BytesType) {
		var row []T
		c.Within(func() { row = unpack(c, row) })
		*v = append(*v, row)
	}
}

func unpack[T ~int64](c *Coder, v []T) []T {
	for c.pos < c.end && c.err == nil {
		v = append(v, T(protowire.DecodeZigZag(c.readVarint())))
	}
	return v
}

// Vector is an amount of every resource, those at the end that are zero left out. More resources than this build knows
// are refused.
func Vector(c *Coder, n protowire.Number, v *trp.Vector) {
	if c.writing {
		used := len(v)
		for used > 0 && v[used-1] == 0 {
			used--
		}
		list := v[:used]
		Numbers(c, n, &list)
		return
	}
	var list []int64
	Numbers(c, n, &list)
	if len(list) > len(v) {
		c.Newer("%d resources in field %d", len(list), n)
		return
	}
	if len(list) > 0 && list[len(list)-1] == 0 {
		c.Damaged("field %d ends with a zero", n)
		return
	}
	for i, a := range list {
		v[i] = quantity.Amount(a)
	}
}

// Open starts a length-delimited field and returns what Shut needs. One byte is kept for the length, which is enough
// for nearly all of them; Shut moves the content if it is not.
func (c *Coder) Open(n protowire.Number) int {
	c.b = append(protowire.AppendTag(c.b, n, protowire.BytesType), 0)
	return len(c.b)
}

// Shut ends the field that Open began.
func (c *Coder) Shut(start int) {
	length := len(c.b) - start
	if extra := (bits.Len(uint(length))+6)/7 - 1; extra > 0 {
		c.b = append(c.b, make([]byte, extra)...)
		copy(c.b[start+extra:], c.b[start:start+length])
	}
	protowire.AppendVarint(c.b[:start-1], uint64(length))
}

// Within reads a length-delimited field with f and returns the field's length.
func (c *Coder) Within(f func()) int { return c.Inside(c.Bytes(), f) }

// Inside reads with f what Bytes has just returned, and returns its length.
func (c *Coder) Inside(body []byte, f func()) int {
	if c.err != nil {
		return -1
	}
	end, last := c.end, c.last
	c.pos -= len(body)
	c.end, c.last = c.pos+len(body), 0
	f()
	c.Finish()
	c.end, c.last = end, last
	if c.err != nil {
		c.pos = end
		return -1
	}
	return len(body)
}

// Value is a nested value, left out when it is zero.
func Value[T any](c *Coder, n protowire.Number, v *T, fields func(*Coder, *T)) {
	if c.writing {
		before := len(c.b)
		start := c.Open(n)
		if fields(c, v); len(c.b) == start {
			c.b = c.b[:before]
			return
		}
		c.Shut(start)
		return
	}
	if c.Next(n, protowire.BytesType) && c.Within(func() { fields(c, v) }) == 0 {
		c.Damaged("field %d is written although it is zero", n)
	}
}

// Pointer is a nested value that may be absent; one that is there and all zero is kept.
func Pointer[T any](c *Coder, n protowire.Number, v **T, fields func(*Coder, *T)) {
	if c.writing {
		if *v != nil {
			start := c.Open(n)
			fields(c, *v)
			c.Shut(start)
		}
		return
	}
	if c.Next(n, protowire.BytesType) {
		*v = new(T)
		c.Within(func() { fields(c, *v) })
	}
}

// List is a list of nested values.
func List[S ~[]T, T any](c *Coder, n protowire.Number, v *S, fields func(*Coder, *T)) {
	if c.writing {
		for i := range *v {
			start := c.Open(n)
			fields(c, &(*v)[i])
			c.Shut(start)
		}
		return
	}
	for c.Next(n, protowire.BytesType) {
		var one T
		c.Within(func() { fields(c, &one) })
		*v = append(*v, one)
	}
}

// Failure is an error as its kind and text. A decoded one has the same, for people and for errkind.Of.
func Failure(c *Coder, n protowire.Number, v *error) {
	type flat struct {
		kind errkind.Kind
		text string
	}
	var f *flat
	if c.writing && *v != nil {
		f = &flat{errkind.Of(*v), (*v).Error()}
	}
	Pointer(c, n, &f, func(c *Coder, f *flat) {
		Enum(c, 1, &f.kind, errkind.Corrupt)
		Text(c, 2, &f.text)
	})
	if !c.writing && f != nil {
		*v = &errkind.Error{Kind: f.kind, Err: errors.New(f.text)}
	}
}
