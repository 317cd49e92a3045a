// Package wire turns what the actors say and decide into bytes and back: facts for the journal, messages for the tape
// and for a fabric between processes. It is the only place that knows the stored form of a core type; core types carry
// no tags for it. It must not know what a fact or a message means, who sends it, or where the bytes are kept.
//
// Below it lies the API's form: the .proto files (sluice/v1alpha1) and the Go code made from them, which is committed so
// that a build needs no protoc; generate.sh makes it again, and the face wing turns these messages into calls and back.
//
// The stored form is one version byte, then protobuf's wire encoding (tag, varint, fixed64, length-delimited) with field
// numbers given in this package and nowhere else. It is canonical: fields ascend, zero fields are left out, numbers are
// as short as they can be, so one value has one encoding. Reading is strict: what this build does not know (a version,
// a kind, a field, a value of a closed set) is refused as a whole, never skipped, because dropping a part of a promise
// is worse than not starting. Reading is tolerant in the other direction: a field added later is zero in old bytes.
//
// A number once used keeps its meaning for ever; testdata/*.golden holds one line for each, and a change of a line is a
// change of the format.
package wire
