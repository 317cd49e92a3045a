// Package all is the table of the kinds of inventory, and how one is chosen. Only the command line imports it.
package all

import (
	"context"
	"fmt"
	"strings"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/inventory"
	"sluice.dev/sluice/internal/edge/inventory/nvml"
	"sluice.dev/sluice/internal/edge/inventory/sim"
)

const (
	// Auto is the spec that looks for real GPUs first.
	Auto = "auto"
	// Fallback is what Auto simulates on a machine without a usable GPU: an A100 cut in four.
	Fallback = "sim:a100-80gb=1,layout=3g.40gb+2g.20gb+2x1g.10gb"
)

// Kind is one kind of inventory.
type Kind struct {
	// Name is the first word of its spec.
	Name string
	// Help is one line on how its spec is written.
	Help string
	// Open makes one from a whole spec.
	Open func(spec string) (inventory.Inventory, error)
}

// Kinds lists every kind, in the order Auto tries them.
func Kinds() []Kind {
	return []Kind{
		{Name: "nvml", Help: "every NVIDIA GPU and MIG instance of this machine; nvml:0,GPU-UUID for some", Open: nvml.Open},
		{Name: "sim", Help: "simulated slices: " + Fallback + ", or sim:custom,mem=1Gi+512Mi,speed=1000+500", Open: openSim},
	}
}

func openSim(spec string) (inventory.Inventory, error) {
	inv, err := sim.New(spec)
	if err != nil {
		return nil, err
	}
	return inv, nil
}

// Detect opens the inventory that spec names: a kind's spec, or Auto (or nothing). Auto takes the real GPUs; where this
// machine or this build has none it takes Fallback, and note is one line that says so and why. Every other trouble with
// real GPUs is an error: a node that lost its driver must not quietly sell simulated slices.
func Detect(ctx context.Context, spec string) (inv inventory.Inventory, note string, err error) {
	return detect(ctx, spec, Kinds())
}

func detect(ctx context.Context, spec string, kinds []Kind) (inv inventory.Inventory, note string, err error) {
	if err = ctx.Err(); err != nil {
		return nil, "", err
	}
	spec = strings.TrimSpace(spec)
	if spec == "" || spec == Auto {
		inv, err = kinds[0].Open(kinds[0].Name)
		if err == nil {
			return inv, "", nil
		}
		if k := errkind.Of(err); k != errkind.Unsupported && k != errkind.NotFound {
			return nil, "", fmt.Errorf("%w\nto go on with simulated slices, ask for them: %s", err, Fallback)
		}
		why := oneLine(err)
		if inv, err = openSim(Fallback); err != nil {
			return nil, "", err
		}
		return inv, fmt.Sprintf("no real GPU to offer (%s); offering %s instead", why, inv.Describe()), nil
	}
	name, _, _ := strings.Cut(spec, ":")
	for _, k := range kinds {
		if k.Name == name {
			inv, err = k.Open(spec)
			return inv, "", err
		}
	}
	help := make([]string, len(kinds))
	for i, k := range kinds {
		help[i] = "\n  " + k.Name + ": " + k.Help
	}
	return nil, "", errkind.Errorf(errkind.Invalid, "inventory %q is not known; want %s, or one of%s", spec, Auto, strings.Join(help, ""))
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
