package scenario

import (
	"context"
	"errors"
	"fmt"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/quantity"
)

// check lists what can't be run.
func (o *Options) check() error {
	var problems []error
	if len(o.Mechanisms) == 0 {
		problems = append(problems, errors.New("no mechanism is given"))
	}
	if o.Scenario.Workload.Compose != nil && o.Data == "" {
		problems = append(problems, fmt.Errorf("scenario %s is composed of published traces; give their folder with --data DIR", o.Scenario.Name))
	}
	if len(problems) > 0 {
		return errkind.Errorf(errkind.Invalid, "%w", errors.Join(problems...))
	}
	return nil
}

// one runs the scenario once.
func (o *Options) one(_ context.Context, _ *Mechanism, _ uint64, _ func(quantity.Instant, int)) (*Result, error) {
	return nil, errkind.Errorf(errkind.Unavailable, "nothing runs yet")
}
