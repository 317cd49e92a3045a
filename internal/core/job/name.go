package job

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// NameRule is what ValidName wants, for people: "want " + NameRule.
const NameRule = "1 to 63 of a-z, 0-9 and -, beginning and ending with a letter or digit"

// ValidName says whether s may name a job, a queue, a template or an option: a DNS label (RFC 1123) of 1 to 63 lower-case letters, digits
// and inner hyphens, so that it can be a host, a file or a Kubernetes object. It is the one rule for names from any source.
func ValidName[T ~string](s T) bool {
	if len(s) < 1 || len(s) > 63 || s[0] == '-' || s[len(s)-1] == '-' {
		return false
	}
	for i := range len(s) {
		if b := s[i]; (b < 'a' || b > 'z') && (b < '0' || b > '9') && b != '-' {
			return false
		}
	}
	return true
}

// ValidID says whether s may be the id of a job: a name, or a namespace and a name with a dot between them, which jobs of a Kubernetes
// cluster have. No file of a job gives it the latter: who knows its namespace does.
func ValidID[T ~string](s T) bool {
	namespace, name, two := strings.Cut(string(s), ".")
	return ValidName(namespace) && (!two || ValidName(name))
}

// CheckNames lists every invalid name of a job: its own, its queue's, its template's where it has one, and those of its options, which must
// also differ. nil if all are good.
func (s *Spec) CheckNames(own ID) error {
	var errs []error
	check := func(field, name string) {
		if !ValidName(name) {
			errs = append(errs, fmt.Errorf("%s: is %.80q; want %s", field, name, NameRule))
		}
	}
	if !ValidID(own) {
		errs = append(errs, fmt.Errorf("metadata.name: is %.80q; want %s", own, NameRule))
	}
	check("spec.queue", s.Queue)
	if s.Template != "" {
		check("spec.template", s.Template)
	}
	for i := range s.Options {
		name := s.Options[i].Name
		check(fmt.Sprintf("spec.options[%d].name", i), name)
		if slices.ContainsFunc(s.Options[:i], func(o Option) bool { return o.Name == name }) {
			errs = append(errs, fmt.Errorf("spec.options[%d].name: is %.80q like that of an option before it; names are unique", i, name))
		}
	}
	return errors.Join(errs...)
}
