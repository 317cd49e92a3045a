package daemon

import (
	"errors"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/airlock"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/joint"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/edge/config"
	"sluice.dev/sluice/internal/edge/survival"
)

// machine is a survival that says how much memory there is, and nothing else.
type machine struct {
	survival.Survival
	least quantity.Amount
	err   error
}

func (m machine) Sense(_ time.Duration, s *survival.Memory) error {
	*s = survival.Memory{Capacity: 1 << 40, Least: m.least}
	return m.err
}

// TestWhatOfTheMachinesMemoryIsCounted: what lies below the severe line, unless it can't be known, or the slices are larger than any part
// of it.
func TestWhatOfTheMachinesMemoryIsCounted(t *testing.T) {
	const gib = quantity.Amount(1) << 30
	slice := func(memory quantity.Amount, device string) protocol.Slice {
		return protocol.Slice{ID: job.SliceID("s"), Capacity: trp.Vector{memory}, Device: device}
	}
	hosted := []protocol.Slice{slice(40*gib, ""), slice(40*gib, ""), slice(40*gib, "")}
	for _, c := range []struct {
		name   string
		o      config.Airlock
		s      survival.Survival
		nodes  int
		slices []protocol.Slice
		want   joint.Config
		says   string
	}{
		{"a machine", config.Airlock{}, machine{least: 100 * gib}, 1, hosted, joint.Config{Memory: 92 * gib, Excess: 10_000},
			"92Gi for the peaks of 3 slices, which may pass it with a chance of 0.01"},
		{"other lines", config.Airlock{Lines: airlock.Config{Severe: 900}, Excess: 1000}, machine{least: 100 * gib}, 2, hosted,
			joint.Config{Memory: 90 * gib, Excess: 1000}, "a chance of 0.001"},
		{"slices larger than a node's part of it", config.Airlock{}, machine{least: 100 * gib}, 3, hosted, joint.Config{},
			"a slice has 40Gi"},
		{"so they are, and it is counted all the same", config.Airlock{Memory: 30 * gib}, nil, 1, hosted,
			joint.Config{Memory: 30 * gib, Excess: 10_000}, "30Gi"},
		{"devices have their own", config.Airlock{}, machine{least: 100 * gib}, 1,
			[]protocol.Slice{slice(200*gib, "GPU-1"), slice(8*gib, "")}, joint.Config{Memory: 92 * gib, Excess: 10_000}, "1 slices"},
		{"devices alone", config.Airlock{}, machine{least: 100 * gib}, 1, []protocol.Slice{slice(80*gib, "GPU-1")}, joint.Config{},
			"a device"},
		{"off", config.Airlock{Uncounted: true}, machine{least: 100 * gib}, 1, hosted, joint.Config{}, "airlock.memory"},
		{"nobody looks", config.Airlock{}, nil, 1, hosted, joint.Config{}, "airlock.kind"},
		{"it can't be read", config.Airlock{}, machine{err: errors.New("no /proc")}, 1, hosted, joint.Config{}, "no /proc"},
	} {
		got, said := heldAgainst(&c.o, c.s, c.nodes, c.slices)
		if got != c.want || !strings.Contains(said, c.says) {
			t.Errorf("%s: %+v, %q; want %+v and %q", c.name, got, said, c.want, c.says)
		}
	}
}
