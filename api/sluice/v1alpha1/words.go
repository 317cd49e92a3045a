// Package sluicev1alpha1 is the API of a Sluice daemon: its messages, and in sluicev1alpha1connect its client and its handler.
// All of it but this file is generated from the .proto files beside it.
package sluicev1alpha1

import (
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// Word is a value as tables, -o json and job files write it: the state of a job as it is named here (COMPLETED), everything else in
// lower case (start-failed). Empty for what is unspecified or of a later version.
func Word(v protoreflect.Enum) string {
	d := v.Descriptor().Values().ByNumber(v.Number())
	if v.Number() == 0 || d == nil {
		return ""
	}
	if _, job := v.(Job_State); job {
		return string(d.Name())
	}
	return strings.ToLower(strings.ReplaceAll(string(d.Name()), "_", "-"))
}

// Value is the value that Word writes as word; unspecified if there is none.
func Value[E protoreflect.Enum](word string) E {
	var unspecified E
	d := unspecified.Descriptor().Values().ByName(protoreflect.Name(strings.ToUpper(strings.ReplaceAll(word, "-", "_"))))
	if d == nil {
		return unspecified
	}
	e, _ := unspecified.Type().New(d.Number()).(E)
	return e
}
