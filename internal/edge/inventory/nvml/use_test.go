package nvml

import (
	"maps"
	"testing"

	"sluice.dev/sluice/internal/core/errkind"
)

func TestUse(t *testing.T) {
	lib := machine()
	inv := opened(t, lib, Spec)
	first := lib.gpus[1].instances[0]
	lib.change(func() {
		first.processes = []process{{PID: 10, Memory: 5}, {PID: 11, Memory: -1}, {PID: 10, Memory: 7}, {PID: 12}}
	})
	got, err := inv.Use("gpu0/3g.40gb@4")
	if want := map[int]int64{10: 7, 12: 0}; err != nil || !maps.Equal(got, want) {
		t.Errorf("use %v, %v; want %v", got, err, want)
	}
	if got, err := inv.Use("gpu1"); err != nil || len(got) != 0 {
		t.Errorf("use of an idle GPU: %v, %v", got, err)
	}
	if _, err := inv.Use("gpu7"); errkind.Of(err) != errkind.NotFound {
		t.Errorf("an unknown slice: %v, want not found", err)
	}
	lib.change(func() { first.procErr = unavailable("fell off the bus") })
	if _, err := inv.Use("gpu0/3g.40gb@4"); errkind.Of(err) != errkind.Unavailable {
		t.Errorf("a lost GPU: %v, want unavailable", err)
	}
}
