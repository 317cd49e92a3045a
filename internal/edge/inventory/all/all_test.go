package all

import (
	"context"
	"errors"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/inventory"
	"sluice.dev/sluice/internal/edge/inventory/inventorytest"
	"sluice.dev/sluice/internal/edge/inventory/sim"
)

// withReal replaces the first kind: real GPUs as this test wants them.
func withReal(open func(string) (inventory.Inventory, error)) []Kind {
	kinds := Kinds()
	kinds[0].Open = open
	return kinds
}

func TestAutoTakesRealGPUs(t *testing.T) {
	real, err := sim.New("h200-141gb") // stands for them
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range []string{"", "auto", " auto "} {
		inv, note, err := detect(t.Context(), spec, withReal(func(spec string) (inventory.Inventory, error) {
			if spec != "nvml" {
				t.Errorf("asked for %q", spec)
			}
			return real, nil
		}))
		if err != nil || note != "" || inv != inventory.Inventory(real) {
			t.Errorf("%q: %v, %q, %v", spec, inv, note, err)
		}
	}
}

func TestAutoFallsBackAndSaysSo(t *testing.T) {
	for _, kind := range []errkind.Kind{errkind.Unsupported, errkind.NotFound} {
		inv, note, err := detect(t.Context(), Auto, withReal(func(string) (inventory.Inventory, error) {
			return nil, errkind.Errorf(kind, "no driver\nhere")
		}))
		if err != nil {
			t.Fatal(err)
		}
		if want := "no real GPU to offer (no driver here); offering 1 simulated NVIDIA A100-SXM4-80GB (3g.40gb+2g.20gb+2x1g.10gb) instead"; note != want {
			t.Errorf("it says %q, want %q", note, want)
		}
		if all, _ := inv.Slices(t.Context()); len(all) != 4 || !all[0].Simulated {
			t.Errorf("slices %v", all)
		}
	}
}

func TestAutoDoesNotHideABrokenDriver(t *testing.T) {
	broken := errkind.Errorf(errkind.Unavailable, "driver and library differ")
	inv, _, err := detect(t.Context(), Auto, withReal(func(string) (inventory.Inventory, error) { return nil, broken }))
	if inv != nil || !errors.Is(err, broken) || !strings.Contains(err.Error(), "ask for them: "+Fallback) {
		t.Errorf("%v, %v", inv, err)
	}
}

func TestDetectByName(t *testing.T) {
	inv, note, err := Detect(t.Context(), "sim:custom,mem=64Mi")
	if err != nil || note != "" || inv.Describe() != "1 simulated custom (64Mi)" {
		t.Errorf("%v, %q, %v", inv, note, err)
	}
	if inv, _, err = Detect(t.Context(), "sim:nonsense"); inv != nil || errkind.Of(err) != errkind.Invalid {
		t.Errorf("a bad spec: %v, %v", inv, err)
	}
	if inv, _, err = Detect(t.Context(), "cuda"); inv != nil || errkind.Of(err) != errkind.Invalid ||
		!strings.Contains(err.Error(), "\n  sim: simulated slices") {
		t.Errorf("an unknown kind: %v, %v", inv, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err = Detect(ctx, Auto); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestFallbackConforms(t *testing.T) {
	inventorytest.Run(t, func(t *testing.T) inventory.Inventory {
		inv, err := openSim(Fallback)
		if err != nil {
			t.Fatal(err)
		}
		return inv
	})
}
