package main

import (
	"fmt"

	"sluice.dev/sluice/internal/lab/measure"
)

// surprise is a setting in which ends come unforeseen, or sooner than was said.
type surprise struct {
	label, scenario string
	sets            []string
}

// learned shows what it is worth that the ends of gaps are learned: the same with and without.
func (p *page) learned() error {
	p.say("## Learned ends\n\nHow long gaps last is learned as they come and go, and how much of a foretold gap comes true; jobs that " +
		"lose their work when they are\n")
	p.say("killed get windows that end before the gap is likely to ([0034](adr/0034-learned-ends.md)). As shipped (theta 0.1), minus " +
		"the same without (`mechanism.ends=0`), on\n")
	p.say("the same seeds. Where programs save often enough, or a notice suffices to save, nothing is decided by it, and the difference " +
		"is 0 to the digit.\n\n")
	p.say("| scenario | mechanism | useful without | with | difference | lost work without | with | difference " +
		"|\n|---|---|---|---|---|---|---|---|\n")
	for _, c := range []surprise{
		{"`leftover-unannounced`, programs save after 5 min", "leftover-unannounced", nil},
		{"after 20 min", "leftover-unannounced", []string{"workload.synthetic.saves=20m"}},
		{"never", "leftover-unannounced", []string{"workload.synthetic.saves=0s"}},
		{"never, training alone", "leftover-unannounced", []string{"workload.synthetic.saves=0s", "workload.jobs=[]"}},
		{"`leftover`, walltimes twice too long, notice 30s", "leftover", nil},
		{"walltimes twice too long, no notice", "leftover", []string{"host.notice=0s"}},
		{"walltimes missing, no notice", "leftover", []string{"host.notice=0s", "host.walltimes=none"}},
	} {
		with, err := p.play(p.ctx, point{label: c.label + ", learned", scenario: c.scenario, mechanisms: ours(), sets: c.sets}, p.progress)
		if err != nil {
			return err
		}
		without, err := p.play(p.ctx, point{label: c.label, scenario: c.scenario, mechanisms: ours(),
			sets: append([]string{"mechanism.ends=0"}, c.sets...)}, p.progress)
		if err != nil {
			return err
		}
		for _, name := range ours() {
			p.say("| %s | %s |", c.label, name)
			for _, metric := range []string{measure.LeftoverUseful, measure.LostWork} {
				was, is := without.values(name, metric), with.values(name, metric)
				p.say(" %s | %s | %s |", estimate(metric, measure.Mean(was)), estimate(metric, measure.Mean(is)),
					points(measure.Difference(is, was)))
			}
			p.say("\n")
		}
	}
	p.say("\nBy theta, where programs never save (the first row is without): useful, lost work, and the share of the subjobs within " +
		"their prediction that\nwere cut short all the same. The promise is about all predictions, those too that are shorter than the " +
		"least useful piece; of the subjobs\nthat can keep to theirs it may be a little more than theta:\n\n")
	p.say("| theta | sja | jasda |\n|---|---|---|\n")
	for _, theta := range []string{"0", "0.02", "0.05", "0.1", "0.2", "0.3", "0.4"} {
		o, err := p.play(p.ctx, point{label: "theta " + theta, scenario: "leftover-unannounced", mechanisms: ours(),
			sets: []string{"workload.synthetic.saves=0s", "mechanism.ends=" + theta}}, p.progress)
		if err != nil {
			return err
		}
		p.say("| %s |", theta)
		for _, name := range ours() {
			cut := ""
			if theta != "0" {
				cut = fmt.Sprintf(", %s", value(measure.CutShort, measure.Mean(o.values(name, measure.CutShort)).Mean))
			}
			p.say(" %s, %s%s |", estimate(measure.LeftoverUseful, measure.Mean(o.values(name, measure.LeftoverUseful))),
				estimate(measure.LostWork, measure.Mean(o.values(name, measure.LostWork))), cut)
		}
		p.say("\n")
	}
	p.say("\n")
	return nil
}
