package wire

import (
	"errors"
	"fmt"
	"math/bits"

	"google.golang.org/protobuf/encoding/protowire"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// coder walks the fields of a value in ascending order of their numbers and either writes them or reads them. One
// function per type (fields_*.go) describes both directions, so that they cannot differ. Nothing is stored through a
// pointer while writing: values are shared.
type coder struct {
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
	shared *Decoder
}

// read starts reading a value called what in error messages, of this version.
func (c *coder) read(what string, version byte, b []byte) error {
	if len(b) == 0 {
		return errkind.Errorf(errkind.Corrupt, "%s: no bytes", what)
	}
	if b[0] != version {
		return errkind.Errorf(errkind.Unsupported, "%s: format %d is not known to this build (it reads %d): use the Sluice version that wrote it", what, b[0], version)
	}
	*c = coder{b: b, pos: 1, end: len(b), what: what, shared: c.shared}
	return nil
}

func (c *coder) fail(k errkind.Kind, format string, args ...any) {
	if c.err == nil {
		c.err = errkind.Errorf(k, "%s, byte %d: %s", c.what, c.pos, fmt.Sprintf(format, args...))
		c.pos = c.end
	}
}

func (c *coder) damaged(format string, args ...any) {
	c.fail(errkind.Corrupt, "damaged: "+format, args...)
}

func (c *coder) newer(format string, args ...any) {
	c.fail(errkind.Unsupported, "not known to this build: "+format+"; it was written by a newer one, use that", args...)
}

// finish refuses what is left of the message being read: fields come in ascending order, so it is either a number we do
// not know or an encoding that is not ours.
func (c *coder) finish() {
	if c.err != nil || c.pos == c.end {
		return
	}
	n, _, size := protowire.ConsumeTag(c.b[c.pos:c.end])
	switch {
	case size < 0:
		c.damaged("a field's number cannot be read")
	case n <= c.last:
		c.damaged("field %d after field %d", n, c.last)
	default:
		c.newer("field %d", n)
	}
}

// next says whether the next field is n, and steps over its tag.
func (c *coder) next(n protowire.Number, t protowire.Type) bool {
	if c.pos == c.end {
		return false
	}
	if c.tag.at != c.pos { // most fields are not there: the same tag is looked at by many
		got, gotType, size := protowire.ConsumeTag(c.b[c.pos:c.end])
		if size < 0 {
			c.damaged("a field's number cannot be read")
			return false
		}
		c.tag = tag{c.pos, size, got, gotType}
	}
	if c.tag.number != n {
		return false
	}
	if c.tag.kind != t || c.tag.size != protowire.SizeTag(n) {
		c.damaged("field %d has wire type %d, want %d", n, c.tag.kind, t)
		return false
	}
	c.pos += c.tag.size
	c.last = n
	return true
}

// tag is the tag that stands at a place of the input. None stands at 0, where the version is.
type tag struct {
	at, size int
	number   protowire.Number
	kind     protowire.Type
}

func (c *coder) readVarint() uint64 {
	v, size := protowire.ConsumeVarint(c.b[c.pos:c.end])
	if size < 0 || size != protowire.SizeVarint(v) {
		c.damaged("a number in field %d cannot be read", c.last)
		return 0
	}
	c.pos += size
	return v
}

// varint is the common part of all fields that are one number, zero left out. limit is the largest value allowed.
func (c *coder) varint(n protowire.Number, v, limit uint64) uint64 {
	if c.writing {
		if v != 0 {
			c.b = protowire.AppendVarint(protowire.AppendTag(c.b, n, protowire.VarintType), v)
		}
		return v
	}
	if !c.next(n, protowire.VarintType) {
		return 0
	}
	v = c.readVarint()
	switch {
	case c.err != nil:
		return 0
	case v == 0:
		c.damaged("field %d is written although it is zero", n)
	case v > limit:
		c.newer("value %d of field %d", v, n)
	}
	return v
}

// unsigned is a field that is never negative.
func unsigned[T ~uint8 | ~uint16 | ~uint32 | ~uint64](c *coder, n protowire.Number, v *T) {
	if u := c.varint(n, uint64(*v), uint64(^T(0))); !c.writing {
		*v = T(u)
	}
}

// signed is a field that may be negative; small amounts of either sign are short.
func signed[T ~int | ~int16 | ~int32 | ~int64](c *coder, n protowire.Number, v *T) {
	if c.writing {
		c.varint(n, protowire.EncodeZigZag(int64(*v)), ^uint64(0))
		return
	}
	i := protowire.DecodeZigZag(c.varint(n, 0, ^uint64(0)))
	if int64(T(i)) != i {
		c.damaged("number %d in field %d does not fit", i, n)
		return
	}
	*v = T(i)
}

// enum is a value of a closed set whose largest member this build knows is last.
func enum[T ~uint8](c *coder, n protowire.Number, v *T, last T) {
	if u := c.varint(n, uint64(*v), uint64(last)); !c.writing {
		*v = T(u)
	}
}

func boolean(c *coder, n protowire.Number, v *bool) {
	var u uint64
	if c.writing && *v {
		u = 1
	}
	if u = c.varint(n, u, 1); !c.writing {
		*v = u != 0
	}
}

// instant is a moment: eight bytes, which is shorter than any varint of a time of this century.
func instant[T ~int64](c *coder, n protowire.Number, v *T) {
	if c.writing {
		if *v != 0 {
			c.b = protowire.AppendFixed64(protowire.AppendTag(c.b, n, protowire.Fixed64Type), uint64(*v))
		}
		return
	}
	if !c.next(n, protowire.Fixed64Type) {
		return
	}
	u, size := protowire.ConsumeFixed64(c.b[c.pos:c.end])
	if size < 0 || u == 0 {
		c.damaged("the moment in field %d cannot be read", n)
		return
	}
	c.pos += size
	*v = T(u)
}

// readBytes steps over a length and returns the part of the input that it bounds.
func (c *coder) readBytes() []byte {
	length := c.readVarint()
	if c.err != nil {
		return nil
	}
	if length > uint64(c.end-c.pos) {
		c.damaged("field %d is cut short", c.last)
		return nil
	}
	b := c.b[c.pos : c.pos+int(length)]
	c.pos += int(length)
	return b
}

func text[T ~string](c *coder, n protowire.Number, v *T) {
	if c.writing {
		if *v != "" {
			c.b = protowire.AppendString(protowire.AppendTag(c.b, n, protowire.BytesType), string(*v))
		}
		return
	}
	if !c.next(n, protowire.BytesType) {
		return
	}
	b := c.readBytes()
	if c.err == nil && len(b) == 0 {
		c.damaged("field %d is written although it is empty", n)
		return
	}
	*v = T(c.shared.text(b))
}

// texts is a list of strings; an empty element is kept.
func texts[T ~string](c *coder, n protowire.Number, v *[]T) {
	if c.writing {
		for _, s := range *v {
			c.b = protowire.AppendString(protowire.AppendTag(c.b, n, protowire.BytesType), string(s))
		}
		return
	}
	for c.next(n, protowire.BytesType) {
		*v = append(*v, T(c.shared.text(c.readBytes())))
	}
}

// numbers is a list of signed numbers packed into one field.
func numbers[T ~int64](c *coder, n protowire.Number, v *[]T) {
	if c.writing {
		if len(*v) > 0 {
			start := c.open(n)
			for _, i := range *v {
				c.b = protowire.AppendVarint(c.b, protowire.EncodeZigZag(int64(i)))
			}
			c.shut(start)
		}
		return
	}
	if !c.next(n, protowire.BytesType) {
		return
	}
	if c.within(func() { *v = unpack(c, *v) }) == 0 {
		c.damaged("field %d is written although it is empty", n)
	}
}

// grid is a list of lists of numbers; an empty row is kept.
func grid[T ~int64](c *coder, n protowire.Number, v *[][]T) {
	if c.writing {
		for _, row := range *v {
			start := c.open(n)
			for _, i := range row {
				c.b = protowire.AppendVarint(c.b, protowire.EncodeZigZag(int64(i)))
			}
			c.shut(start)
		}
		return
	}
	for c.next(n, protowire.BytesType) {
		var row []T
		c.within(func() { row = unpack(c, row) })
		*v = append(*v, row)
	}
}

func unpack[T ~int64](c *coder, v []T) []T {
	for c.pos < c.end && c.err == nil {
		v = append(v, T(protowire.DecodeZigZag(c.readVarint())))
	}
	return v
}

// vector is an amount of every resource, those at the end that are zero left out. More resources than this build knows
// are refused.
func vector(c *coder, n protowire.Number, v *trp.Vector) {
	if c.writing {
		used := len(v)
		for used > 0 && v[used-1] == 0 {
			used--
		}
		list := v[:used]
		numbers(c, n, &list)
		return
	}
	var list []int64
	numbers(c, n, &list)
	if len(list) > len(v) {
		c.newer("%d resources in field %d", len(list), n)
		return
	}
	if len(list) > 0 && list[len(list)-1] == 0 {
		c.damaged("field %d ends with a zero", n)
		return
	}
	for i, a := range list {
		v[i] = quantity.Amount(a)
	}
}

// open starts a length-delimited field and returns what shut needs. One byte is kept for the length, which is enough
// for nearly all of them; shut moves the content if it is not.
func (c *coder) open(n protowire.Number) int {
	c.b = append(protowire.AppendTag(c.b, n, protowire.BytesType), 0)
	return len(c.b)
}

func (c *coder) shut(start int) {
	length := len(c.b) - start
	if extra := (bits.Len(uint(length))+6)/7 - 1; extra > 0 {
		c.b = append(c.b, make([]byte, extra)...)
		copy(c.b[start+extra:], c.b[start:start+length])
	}
	protowire.AppendVarint(c.b[:start-1], uint64(length))
}

// within reads a length-delimited field with f and returns the field's length.
func (c *coder) within(f func()) int {
	body := c.readBytes()
	if c.err != nil {
		return -1
	}
	end, last := c.end, c.last
	c.pos -= len(body)
	c.end, c.last = c.pos+len(body), 0
	f()
	c.finish()
	c.end, c.last = end, last
	if c.err != nil {
		c.pos = end
		return -1
	}
	return len(body)
}

// value is a nested value, left out when all of it is zero.
func value[T any](c *coder, n protowire.Number, v *T, fields func(*coder, *T)) {
	if c.writing {
		before := len(c.b)
		start := c.open(n)
		if fields(c, v); len(c.b) == start {
			c.b = c.b[:before]
			return
		}
		c.shut(start)
		return
	}
	if c.next(n, protowire.BytesType) && c.within(func() { fields(c, v) }) == 0 {
		c.damaged("field %d is written although it is zero", n)
	}
}

// pointer is a nested value that may be absent; one that is there and all zero is kept.
func pointer[T any](c *coder, n protowire.Number, v **T, fields func(*coder, *T)) {
	if c.writing {
		if *v != nil {
			start := c.open(n)
			fields(c, *v)
			c.shut(start)
		}
		return
	}
	if c.next(n, protowire.BytesType) {
		*v = new(T)
		c.within(func() { fields(c, *v) })
	}
}

// list is a list of nested values.
func list[S ~[]T, T any](c *coder, n protowire.Number, v *S, fields func(*coder, *T)) {
	if c.writing {
		for i := range *v {
			start := c.open(n)
			fields(c, &(*v)[i])
			c.shut(start)
		}
		return
	}
	for c.next(n, protowire.BytesType) {
		var one T
		c.within(func() { fields(c, &one) })
		*v = append(*v, one)
	}
}

// failure is an error as its kind and text. What comes back says the same, for people and for errkind.Of.
func failure(c *coder, n protowire.Number, v *error) {
	type flat struct {
		kind errkind.Kind
		text string
	}
	var f *flat
	if c.writing && *v != nil {
		f = &flat{errkind.Of(*v), (*v).Error()}
	}
	pointer(c, n, &f, func(c *coder, f *flat) {
		enum(c, 1, &f.kind, errkind.Corrupt)
		text(c, 2, &f.text)
	})
	if !c.writing && f != nil {
		*v = &errkind.Error{Kind: f.kind, Err: errors.New(f.text)}
	}
}
