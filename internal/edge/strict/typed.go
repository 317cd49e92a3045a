package strict

import (
	"time"

	"sluice.dev/sluice/internal/core/quantity"
)

// The readers below read a value as its form says, and give the form's default where the key was left out.
func (v Value) AsNumber() int64 {
	return v.Integer(v.Form.Least, v.Form.Most, v.Form.or)
}

// AsLength reads a length of time as its form says.
func (v Value) AsLength() time.Duration { return v.AsLengthOr(time.Duration(v.Form.or)) }

// AsLengthOr is asLength for a default that depends on other keys.
func (v Value) AsLengthOr(or time.Duration) time.Duration {
	return v.Duration(time.Duration(v.Form.Least), time.Duration(v.Form.Most), or)
}

// AsAmount reads a size as its form says.
func (v Value) AsAmount(or quantity.Amount) quantity.Amount {
	return v.Bytes(quantity.Amount(v.Form.Least), or)
}

// AsShare reads a share as its form says.
func (v Value) AsShare() int64 {
	return v.Fraction(v.Form.Scale, v.Form.Least, v.Form.Most, v.Form.or)
}

// AsChoice reads a choice as its form says.
func (v Value) AsChoice() int { return v.Choice(v.Form.Words...) }

// AsText reads a text as its form says.
func (v Value) AsText() string { return v.Text(v.Form.want, "") }

// AsPlain is the value in the first of the two forms that it may have.
func (v Value) AsPlain() Value {
	v.Form = &v.Form.Alternatives[0]
	return v
}

// AsMapping is the value in the second of the two forms that it may have.
func (v Value) AsMapping() Value {
	v.Form = &v.Form.Alternatives[1]
	return v
}

// AsObject reads a mapping with the keys of the form, and no other.
func (v Value) AsObject() Object {
	o := v.Object(readable(v.Form.Keys)...)
	o.known = v.Form.Keys
	return o
}

// AsList reads a list; its elements have the form's elem.
func (v Value) AsList() []Value {
	out := v.List(v.Form.want, int(v.Form.Most))
	for i := range out {
		out[i].Form = v.Form.Elem
	}
	return out
}

// AsTable reads a mapping with any keys; its values have the form's elem.
func (v Value) AsTable() Object {
	o := v.Object()
	for i := range o.fields {
		o.fields[i].Form = v.Form.Elem
	}
	return o
}
