// Package errkind is the small closed set of kinds an operational error can have. An error says what was wrong, where
// and what to do; its kind says what a program should do about it. Broken invariants are not errors: see package
// invariant.
package errkind

import (
	"errors"
	"fmt"
)

// Kind classifies an operational error. The set is closed; the order is part of the wire format and only grows.
type Kind uint8

const (
	// Unknown is an error nobody classified.
	Unknown Kind = iota
	// Invalid is bad input: a spec, a flag, a message. The sender must change it.
	Invalid
	// NotFound names something that does not exist.
	NotFound
	// Exists names something that exists already, with other content.
	Exists
	// Conflict is a request that lost against the present state; asking again later may work.
	Conflict
	// Denied is a request the caller may not make.
	Denied
	// Exhausted is a limit reached: a queue's cap, a full disk. It passes when room is made.
	Exhausted
	// Unavailable is a part that is not there now. It passes by itself.
	Unavailable
	// Unsupported is a thing this build or machine cannot do.
	Unsupported
	// Corrupt is stored data that is damaged. Nothing was changed; a person must decide.
	Corrupt
)

var names = [...]string{"unknown", "invalid", "not found", "exists", "conflict", "denied", "exhausted", "unavailable", "unsupported",
	"corrupt"}

// String is the kind's name in messages.
func (k Kind) String() string {
	if int(k) < len(names) {
		return names[k]
	}
	return names[Unknown]
}

// Error is an operational error with its kind.
type Error struct {
	Kind Kind
	Err  error
}

// Error returns the message of the wrapped error; the kind is for programs.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the wrapped error.
func (e *Error) Unwrap() error { return e.Err }

// Errorf builds an error of kind k. It understands %w like fmt.Errorf.
func Errorf(k Kind, format string, args ...any) error {
	return &Error{Kind: k, Err: fmt.Errorf(format, args...)}
}

// Of returns the kind of the outermost classified error in err's chain, Unknown if there is none.
func Of(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return Unknown
}
