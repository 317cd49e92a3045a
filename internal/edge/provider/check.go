package provider

import (
	"errors"
	"fmt"
	"regexp"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
)

// soundName is what a pilot may be called: also a machine's name, a host's job name and a file's name are made of it.
var soundName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$`)

// Check lists every problem of a pilot whose host counts lengths in steps. Errors: Invalid.
func (p Pilot) Check(step time.Duration) error {
	var errs []error
	if !soundName.MatchString(p.Name) {
		errs = append(errs, fmt.Errorf("name %q is not 1 to 40 lower-case letters, digits and hyphens, with no hyphen at its ends", p.Name))
	}
	if p.Length <= 0 || p.Length%step != 0 {
		errs = append(errs, fmt.Errorf("length %v is not a positive multiple of %v", p.Length, step))
	}
	if p.Head == "" {
		errs = append(errs, errors.New("there is no address of a head to call"))
	}
	if p.Token == "" {
		errs = append(errs, errors.New("there is no token to join by"))
	}
	if err := errors.Join(errs...); err != nil {
		return errkind.Errorf(errkind.Invalid, "pilot: %w", err)
	}
	return nil
}
