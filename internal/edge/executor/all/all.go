// Package all is the ordered table of the executor kinds that a node can be configured with.
package all

import (
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/executor/fake"
	"sluice.dev/sluice/internal/edge/executor/process"
)

// Kind is one way to run subjobs.
type Kind struct {
	// Name in the configuration; About is one line for people.
	Name, About string
	// New makes an executor of this kind. Options that a kind has no use for are ignored.
	New func(process.Options) (executor.Executor, error)
}

// Kinds returns the kinds; the first is the default.
func Kinds() []Kind {
	return []Kind{
		{
			Name: "process", About: "processes of this machine, each subjob below a supervisor that outlives the daemon",
			New: func(o process.Options) (executor.Executor, error) {
				ex, err := process.New(o)
				if err != nil {
					return nil, err // and not an interface that holds a nil
				}
				return ex, nil
			},
		},
		{
			Name: "fake", About: "nothing runs: every subjob takes exactly what was planned for it, for trials",
			New: func(o process.Options) (executor.Executor, error) {
				if o.Deliver == nil {
					return nil, errkind.Errorf(errkind.Invalid, "executor: no function to deliver answers to")
				}
				return fake.New(o.Deliver, fake.Planned), nil
			},
		},
	}
}
