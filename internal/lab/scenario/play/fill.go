package play

import (
	"context"
	"fmt"
	"strings"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/filler"
	"sluice.dev/sluice/internal/lab/scenario"
)

// fillable is an error if a mechanism can't fill the gaps of the scenario's host.
func fillable(s *scenario.Scenario, m *Mechanism) error {
	switch {
	case m.Filler == nil:
		var names []string
		for _, d := range filler.Disciplines() {
			names = append(names, d.Name)
		}
		return fmt.Errorf("mechanism %s: it places work on slices that are its own, and those of scenario %s are its host's; run sja, "+
			"jasda or one of %s", m.Name, s.Name, strings.Join(names, ", "))
	case len(s.Faults) > 0:
		return fmt.Errorf("mechanism %s: fillers know no faults, and scenario %s has some; run sja alone, or take them out with --set "+
			"faults=[]", m.Name, s.Name)
	}
	return nil
}

// playFiller plays the scenario under a discipline of fillers beside its host. It returns how far it came and whether all jobs were
// over then.
func playFiller(ctx context.Context, on stage) (quantity.Instant, bool, error) {
	s := on.scenario
	o := filler.Options{
		Discipline: *on.mechanism.Filler, Host: on.world.host, Notice: s.Host.Notice, Least: s.Host.Least, Classes: on.world.measured,
		Source: on.from, Observer: on.to, Progress: on.progress,
	}
	for i := range on.world.machines.Nodes {
		o.ClassOf = append(o.ClassOf, on.world.machines.Nodes[i].Devices...)
	}
	usable := judge{classes: on.world.classes}
	o.Usable = usable.usable
	at, over, err := filler.Play(ctx, o, s.Window.Limit)
	if err != nil && ctx.Err() == nil {
		return at, false, err
	}
	return at, over, nil
}
