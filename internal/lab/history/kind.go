package history

import (
	"strings"

	"sluice.dev/sluice/internal/core/mig"
	"sluice.dev/sluice/internal/core/quantity"
)

// Kind is a kind of device.
type Kind struct {
	// Name as the scheduler has it without "gpu:", such as "a100", "1g.10gb"; "gpu" where it has no type.
	Name string
	// Weight is the part of a whole GPU in thousandths, cut: 142 for one of seven. Memory in bytes where the name says it, otherwise 0.
	Weight int64
	Memory quantity.Amount
}

// kind is what the name of a kind says: a profile of MIG may stand behind a model, as in "a100_1g.5gb".
func kind(name string) Kind {
	for _, text := range []string{name, name[strings.LastIndexAny(name, "_-")+1:]} {
		if profile, ok := mig.Canonical(text); ok {
			known := mig.Lookup("", profile)
			return Kind{name, known.Speed, known.Memory}
		}
	}
	return Kind{Name: name, Weight: 1000}
}
