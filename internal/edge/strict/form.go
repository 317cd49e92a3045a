package strict

import (
	"fmt"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// Field is one key of the job file: its form, its default and its meaning. The reader takes the bounds from it, and the reference (`sluice
// explain spec`, docs/job.md) and the JSON Schema are generated from it, so that all agree.
type Field struct {
	Key string
	// Old is an older name of the key that is still read.
	Old  string
	Form Form
	// Doc says what it means, in sentences for people; lists show the first alone.
	Doc string
	// Example is what may be written, in YAML's flow style.
	Example string
	// Need: the key must be there.
	Need bool
	// Unset says what applies when the key is missing, if the form's default does not say it.
	Unset string
	// Of names the kinds of work that have the key; none: all.
	Of []string
}

// kind of a form.
type kind uint8

// What a form may be.
const (
	isText   kind = iota // text of the kind that want says
	IsNumber             // a number from least to most
	IsLength             // a time.Duration from least to most
	IsAmount             // bytes, at least least
	IsShare              // parts of scale from least to most, written as 0.05 or 5%
	IsBoolean
	IsChoice // one of words; the first is the default
	IsName   // a label
	IsMoment
	IsObject // keys
	IsList   // of elem, at most most
	IsTable  // any keys, each an elem
	IsEither // the first of alternatives is a plain value, the second a mapping
)

// Form is what may stand in one place of a file.
type Form struct {
	Kind        kind
	Least, Most int64
	Scale       int64
	// or is the default of a number, a length, an amount or a share.
	or    int64
	Words []string
	// want names what a text or a list should be.
	want         string
	Keys         []Field
	Elem         *Form
	Alternatives []Form
}

// ANumber is a whole number from least to most.
func ANumber(least, most, or int64) Form {
	return Form{Kind: IsNumber, Least: least, Most: most, or: or}
}

// ALength is a length of time from least to most.
func ALength(least, most, or time.Duration) Form {
	return Form{Kind: IsLength, Least: int64(least), Most: int64(most), or: int64(or)}
}

// AnAmount is a size of at least least.
func AnAmount(least quantity.Amount) Form {
	return Form{Kind: IsAmount, Least: int64(least), Most: int64(trp.MaxAmount)}
}

// AShare is a share in parts of scale.
func AShare(scale, least, most, or int64) Form {
	return Form{Kind: IsShare, Scale: scale, Least: least, Most: most, or: or}
}

// AText is a plain text.
func AText(want string) Form { return Form{Kind: isText, want: want} }

// AChoice is one of words; the first is the default.
func AChoice(words ...string) Form { return Form{Kind: IsChoice, Words: words} }

// AnObject is a mapping with keys.
func AnObject(keys ...Field) Form { return Form{Kind: IsObject, Keys: keys} }

// AList is a list of at most most elements.
func AList(want string, elem Form, most int) Form {
	return Form{Kind: IsList, want: want, Elem: &elem, Most: int64(most)}
}

// ATable is a mapping with any keys, at most most of them.
func ATable(elem Form, most int) Form { return Form{Kind: IsTable, Elem: &elem, Most: int64(most)} }

// PlainOr is a plain value or something else.
func PlainOr(plain, otherwise Form) Form {
	return Form{Kind: IsEither, Alternatives: []Form{plain, otherwise}}
}

// readable are the names by which an object's fields are read: new|old where there are two.
func readable(fields []Field) []string {
	out := Names(fields)
	for i := range fields {
		if old := fields[i].Old; old != "" {
			out[i] += "|" + old
		}
	}
	return out
}

// Names are the keys of an object's fields.
func Names(fields []Field) []string {
	out := make([]string, len(fields))
	for i := range fields {
		out[i] = fields[i].Key
	}
	return out
}

// Find is the field of a key or of its older name, nil if there is none.
func Find(fields []Field, key string) *Field {
	for i := range fields {
		if fields[i].Key == key || fields[i].Old == key && key != "" {
			return &fields[i]
		}
	}
	return nil
}

// String is the form for people.
func (f *Form) String() string {
	switch f.Kind {
	case IsNumber:
		return fmt.Sprintf("a whole number from %d to %d", f.Least, f.Most)
	case IsLength:
		return fmt.Sprintf("a length of time such as 90s or 2h, %s to %s", FormatDuration(time.Duration(f.Least)),
			FormatDuration(time.Duration(f.Most)))
	case IsAmount:
		return fmt.Sprintf("a size such as 600Mi or 4Gi, %s to %s", quantity.ExactBytes(quantity.Amount(f.Least)),
			quantity.ExactBytes(quantity.Amount(f.Most)))
	case IsShare:
		return fmt.Sprintf("a share such as 0.05 or 5%%, from %s to %s", FormatFraction(f.Least, f.Scale), FormatFraction(f.Most, f.Scale))
	case IsBoolean:
		return "true or false"
	case IsChoice:
		return "one of " + strings.Join(f.Words, ", ")
	case IsName:
		return "a name: " + job.NameRule
	case IsMoment:
		return "a moment such as 2026-03-01T18:00:00Z, with its time zone"
	case IsObject:
		return "a mapping"
	case IsList:
		return fmt.Sprintf("a list of at most %d, each %s", f.Most, f.Elem)
	case IsTable:
		return fmt.Sprintf("a mapping of at most %d keys, each %s", f.Most, f.Elem)
	case IsEither:
		return f.Alternatives[0].String() + "; or " + f.Alternatives[1].String()
	default:
		return f.want
	}
}

// Without is what counts for a key that is left out, for people; empty where that is nothing.
func (f *Field) Without() string {
	switch {
	case f.Need:
		return ""
	case f.Unset != "":
		return f.Unset
	}
	switch g := &f.Form; g.Kind {
	case IsNumber:
		return fmt.Sprint(g.or)
	case IsLength:
		return FormatDuration(time.Duration(g.or))
	case IsShare:
		return FormatFraction(g.or, g.Scale)
	case IsBoolean:
		return "false"
	case IsChoice:
		return g.Words[0]
	default:
		return ""
	}
}

// Inner are the keys that lie below a form, if any.
func (f *Form) Inner() []Field {
	switch f.Kind {
	case IsObject:
		return f.Keys
	case IsList, IsTable:
		return f.Elem.Inner()
	case IsEither:
		return f.Alternatives[1].Inner()
	default:
		return nil
	}
}
