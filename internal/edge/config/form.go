package config

import (
	"fmt"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// field is one key of the job file: what may stand there, what counts if it is left out, what it means. The reader takes the
// bounds from it, and the reference (`sluice explain spec`, docs/job.md) and the JSON Schema are made of it, so that they
// can't say anything else.
type field struct {
	key  string
	form form
	// doc says what it means: sentences for people, of which the first stands alone in lists.
	doc string
	// example is what may be written, in YAML's flow style.
	example string
	// need: the key must be there.
	need bool
	// unset says what counts without the key, where the form's default does not.
	unset string
	// of names the kinds of work that have the key; none: all.
	of []string
}

// kind of a form.
type kind uint8

const (
	isText   kind = iota // text of the kind that want says
	isNumber             // a number from least to most
	isLength             // a time.Duration from least to most
	isAmount             // bytes, at least least
	isShare              // parts of scale from least to most, written as 0.05 or 5%
	isBoolean
	isChoice // one of words; the first is the default
	isName   // a label
	isMoment
	isObject // keys
	isList   // of elem, at most most
	isTable  // any keys, each an elem
	isEither // the first of alternatives is a plain value, the second a mapping
)

// form is what may stand in one place of a file.
type form struct {
	kind        kind
	least, most int64
	scale       int64
	// or is the default of what is a number, a length, an amount or a share.
	or    int64
	words []string
	// want names what a text or a list should be.
	want         string
	keys         []field
	elem         *form
	alternatives []form
}

func aNumber(least, most, or int64) form {
	return form{kind: isNumber, least: least, most: most, or: or}
}
func aLength(least, most, or time.Duration) form {
	return form{kind: isLength, least: int64(least), most: int64(most), or: int64(or)}
}
func anAmount(least quantity.Amount) form {
	return form{kind: isAmount, least: int64(least), most: int64(trp.MaxAmount)}
}
func aShare(scale, least, most, or int64) form {
	return form{kind: isShare, scale: scale, least: least, most: most, or: or}
}
func aText(want string) form       { return form{kind: isText, want: want} }
func aChoice(words ...string) form { return form{kind: isChoice, words: words} }
func anObject(keys ...field) form  { return form{kind: isObject, keys: keys} }
func aList(want string, elem form, most int) form {
	return form{kind: isList, want: want, elem: &elem, most: int64(most)}
}
func aTable(elem form, most int) form { return form{kind: isTable, elem: &elem, most: int64(most)} }
func plainOr(plain, otherwise form) form {
	return form{kind: isEither, alternatives: []form{plain, otherwise}}
}

// names are the keys of an object's fields.
func names(fields []field) []string {
	out := make([]string, len(fields))
	for i := range fields {
		out[i] = fields[i].key
	}
	return out
}

// find is the field of a key, nil if there is none.
func find(fields []field, key string) *field {
	for i := range fields {
		if fields[i].key == key {
			return &fields[i]
		}
	}
	return nil
}

// String is the form for people.
func (f *form) String() string {
	switch f.kind {
	case isNumber:
		return fmt.Sprintf("a whole number from %d to %d", f.least, f.most)
	case isLength:
		return fmt.Sprintf("a length of time such as 90s or 2h, %s to %s", formatDuration(time.Duration(f.least)), formatDuration(time.Duration(f.most)))
	case isAmount:
		return fmt.Sprintf("a size such as 600Mi or 4Gi, %s to %s", quantity.ExactBytes(quantity.Amount(f.least)), quantity.ExactBytes(quantity.Amount(f.most)))
	case isShare:
		return fmt.Sprintf("a share such as 0.05 or 5%%, from %s to %s", formatFraction(f.least, f.scale), formatFraction(f.most, f.scale))
	case isBoolean:
		return "true or false"
	case isChoice:
		return "one of " + strings.Join(f.words, ", ")
	case isName:
		return "a name: " + job.NameRule
	case isMoment:
		return "a moment such as 2026-03-01T18:00:00Z, with its time zone"
	case isObject:
		return "a mapping"
	case isList:
		return fmt.Sprintf("a list of at most %d, each %s", f.most, f.elem)
	case isTable:
		return fmt.Sprintf("a mapping of at most %d keys, each %s", f.most, f.elem)
	case isEither:
		return f.alternatives[0].String() + "; or " + f.alternatives[1].String()
	default:
		return f.want
	}
}

// without is what counts for a key that is left out, for people; empty where that is nothing.
func (f *field) without() string {
	switch {
	case f.need:
		return ""
	case f.unset != "":
		return f.unset
	}
	switch g := &f.form; g.kind {
	case isNumber:
		return fmt.Sprint(g.or)
	case isLength:
		return formatDuration(time.Duration(g.or))
	case isShare:
		return formatFraction(g.or, g.scale)
	case isBoolean:
		return "false"
	case isChoice:
		return g.words[0]
	default:
		return ""
	}
}

// The readers below read a value as its form says, and give the form's default where the key was left out.

func (v value) asNumber() int64 {
	return v.integer(v.form.least, v.form.most, v.form.or)
}

func (v value) asLength() time.Duration { return v.asLengthOr(time.Duration(v.form.or)) }

// asLengthOr is asLength for a default that depends on other keys.
func (v value) asLengthOr(or time.Duration) time.Duration {
	return v.duration(time.Duration(v.form.least), time.Duration(v.form.most), or)
}

func (v value) asAmount(or quantity.Amount) quantity.Amount {
	return v.bytes(quantity.Amount(v.form.least), or)
}

func (v value) asShare() int64 {
	return v.fraction(v.form.scale, v.form.least, v.form.most, v.form.or)
}

func (v value) asChoice() int { return v.choice(v.form.words...) }

func (v value) asText() string { return v.text(v.form.want, "") }

// asPlain and asMapping are the value in one of the two forms that it may have.
func (v value) asPlain() value {
	v.form = &v.form.alternatives[0]
	return v
}

func (v value) asMapping() value {
	v.form = &v.form.alternatives[1]
	return v
}

// asObject reads a mapping with the keys of the form, and no other.
func (v value) asObject() object {
	o := v.object(names(v.form.keys)...)
	o.known = v.form.keys
	return o
}

// asList reads a list; its elements have the form's elem.
func (v value) asList() []value {
	out := v.list(v.form.want, int(v.form.most))
	for i := range out {
		out[i].form = v.form.elem
	}
	return out
}

// asTable reads a mapping with any keys; its values have the form's elem.
func (v value) asTable() object {
	o := v.object()
	for i := range o.fields {
		o.fields[i].form = v.form.elem
	}
	return o
}
