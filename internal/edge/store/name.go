package store

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
)

// Refs are the objects that a name needs, by what they are for ("output", "checkpoint").
type Refs map[string]Digest

// Named is a name with what it stands for.
type Named struct {
	Name string
	Refs Refs
	// Changed is when it was set, by the store's own clock.
	Changed time.Time
}

// maxName is the longest name in bytes, maxRefs the most objects that it may need.
const (
	maxName = 512
	maxRefs = 64
)

// CheckName says what is wrong with a name: it is one to eight words of letters, digits and -_.=, with / between them. Kinds use names
// as parts of paths, so nothing else passes.
func CheckName(name string) error {
	bad := func(why string) error {
		return errkind.Errorf(errkind.Invalid, "name %.80q %s: want words of letters, digits and -_.= with / between them, such as "+
			"pinned/imagenet", name, why)
	}
	words := strings.Split(name, "/")
	if name == "" || len(name) > maxName || len(words) > 8 {
		return bad("is empty, too long or too deep")
	}
	for _, w := range words {
		if w == "" || w[0] == '.' {
			return bad("has an empty word or one that begins with a dot")
		}
		for _, c := range []byte(w) {
			if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-_.=", c) >= 0) {
				return bad("has a character that a name may not have")
			}
		}
	}
	return nil
}

// Encode is how refs lie in a store.
func (r Refs) Encode() ([]byte, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	data, err := json.Marshal(struct{ Refs Refs }{r})
	return append(data, '\n'), err
}

func (r Refs) check() error {
	if len(r) == 0 || len(r) > maxRefs {
		return errkind.Errorf(errkind.Invalid, "a name of %d objects: want 1 to %d", len(r), maxRefs)
	}
	for role, d := range r {
		if err := d.Check(); err != nil {
			return fmt.Errorf("%s: %w", role, err)
		}
	}
	return nil
}

// DecodeRefs reads what Encode wrote. Errors are of kind Corrupt.
func DecodeRefs(name string, data []byte) (Refs, error) {
	var v struct{ Refs Refs }
	err := json.Unmarshal(data, &v)
	if err == nil {
		err = v.Refs.check()
	}
	if err != nil {
		return nil, errkind.Errorf(errkind.Corrupt, "the name %s is damaged (%w): nothing is collected before it is named anew, or "+
			"removed by `sluice store unname %s`", name, err, name)
	}
	return v.Refs, nil
}

// NoName is the error of a name that is not there.
func NoName(name, where string) error {
	return errkind.Errorf(errkind.NotFound, "there is no name %s in %s", name, where)
}
