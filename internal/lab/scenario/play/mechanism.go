package play

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"sluice.dev/sluice/internal/core/backfill"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/federation/flow"
	"sluice.dev/sluice/internal/core/market/auction"
	"sluice.dev/sluice/internal/core/policy"
	"sluice.dev/sluice/internal/edge/strict"
	"sluice.dev/sluice/internal/lab/filler"
	"sluice.dev/sluice/internal/lab/oom"
	"sluice.dev/sluice/internal/lab/planner"
	"sluice.dev/sluice/internal/lab/scenario"
	"sluice.dev/sluice/internal/lab/swarm"
)

// Mechanism is one way to run a workload: the real gate, zone and nodes under a policy, or a planner that runs every job
// as one rigid block.
type Mechanism struct {
	Name, Summary string
	// Policy of the zone; nil for a planner. Rigid is what the zone takes of a planner for its rigid jobs.
	Policy policy.Policy
	Rigid  backfill.Discipline
	// Market negotiates; nil for all but jasda.
	Market *auction.Config
	// Flow has tickets search for places, among zones; nil for all but laminar.
	Flow *flow.Config
	// Planner of the whole cluster, or Filler of a host's gaps; nil for sja and jasda.
	Planner *planner.Kind
	Filler  *filler.Discipline
	// Swarm places short tasks on lean nodes; nil for all others.
	Swarm *swarm.Kind
	// Survivor is who acts where a host's memory runs out: airlock, or what others have; empty for whom the scenario names.
	Survivor string
	// Cold: no program stays between subjobs.
	Cold bool
	// Host places the work of the scenario's host; nil where there is none.
	Host *planner.Kind
}

// The mechanisms that are ours; with a policy of their own they are called sja:throughput and so on.
const (
	// SJA: the scheduler picks among the jobs that are interested in a window.
	SJA = "sja"
	// JASDA: jobs bid for windows with variants, and a market clears.
	JASDA = "jasda"
	// Laminar: each job's ticket searches for a place among zones and nodes. On lean nodes the mechanism of that name plays the same.
	Laminar = "laminar"
)

// Cold behind the name of one that is ours, as in sja:cold, plays it with programs that end with their subjobs.
const Cold = ":cold"

// All stands for every mechanism there is.
const All = "all"

// Table is what mechanisms there are. The first policy is the default; Policy finds one by its name, or a name it had before.
type Table struct {
	Policies []policy.Policy
	Policy   func(name string) (policy.Policy, error)
	Planners []planner.Kind
	// Swarm are the mechanisms for lean nodes.
	Swarm []swarm.Kind
}

// Names lists the mechanisms: sja and jasda, each also under every policy, then the planners.
func (t Table) Names() []string {
	var names []string
	for _, ours := range []string{SJA, JASDA} {
		names = append(names, ours)
		for _, p := range t.Policies {
			names = append(names, ours+":"+p.Name())
		}
		names = append(names, ours+Cold)
	}
	for i := range t.Planners {
		names = append(names, t.Planners[i].Name)
	}
	for _, d := range filler.Disciplines() {
		if !slices.Contains(names, d.Name) {
			names = append(names, d.Name)
		}
	}
	for i := range t.Swarm {
		names = append(names, t.Swarm[i].Name)
	}
	return append(names, scenario.Survivors()...)
}

// Find gives the mechanisms of these names, each once, in this order; all is sja, jasda and every planner, or beside a host every
// filler. sja and jasda alone run under the scenario's policy. The error lists every name that is not known, with what was perhaps
// meant.
func (t Table) Find(s *scenario.Scenario, names []string) ([]Mechanism, error) {
	if s.Swarm != nil {
		return t.findLean(s, names)
	}
	var out []Mechanism
	var problems []error
	host, err := t.hostOf(s)
	if err != nil {
		return nil, err
	}
	add := func(m Mechanism) {
		m.Host = host
		if !slices.ContainsFunc(out, func(o Mechanism) bool { return o.Name == m.Name }) {
			out = append(out, m)
		}
	}
	for _, name := range names {
		if name == All && s.Memory != nil {
			names = append(scenario.Survivors(), slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == All })...)
		} else if name == All {
			names = append([]string{SJA, JASDA}, names...)
		}
	}
	for _, name := range names {
		if name == All && host != nil {
			for _, d := range filler.Disciplines() {
				add(fills(d))
			}
			continue
		}
		if name == All {
			for i := range t.Planners {
				add(t.planner(i))
			}
			continue
		}
		m, err := t.find(s, name)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		add(m)
	}
	if len(problems) > 0 {
		return nil, errkind.Errorf(errkind.Invalid, "%w", errors.Join(problems...))
	}
	return out, nil
}

func (t Table) planner(i int) Mechanism {
	k := &t.Planners[i]
	return Mechanism{Name: k.Name, Summary: k.Summary, Planner: k}
}

// fills is a filler as a mechanism.
func fills(d filler.Discipline) Mechanism {
	return Mechanism{Name: d.Name, Summary: d.Summary, Filler: &d}
}

func (t Table) find(s *scenario.Scenario, name string) (Mechanism, error) {
	if d, known, err := filler.Named(name); known && s.Host != nil {
		return fills(d), err
	}
	for i := range t.Planners {
		if t.Planners[i].Name == name {
			return t.planner(i), nil
		}
	}
	if name == Laminar {
		return t.laminar(s)
	}
	if slices.Contains(scenario.Survivors(), name) {
		return t.surviving(s, name)
	}
	if warm, is := strings.CutSuffix(name, Cold); is {
		return t.cold(s, name, warm)
	}
	base, wanted, own := strings.Cut(name, ":")
	if base != SJA && base != JASDA {
		for i := range t.Swarm {
			if t.Swarm[i].Name == name {
				return Mechanism{}, fmt.Errorf("mechanism %s: it places short tasks on lean nodes, and scenario %s has none", name, s.Name)
			}
		}
		if _, known, _ := filler.Named(name); known {
			return Mechanism{}, fmt.Errorf("mechanism %s: it fills the gaps of a host, and scenario %s has none", name, s.Name)
		}
		return Mechanism{}, fmt.Errorf("there is no mechanism %q; %s", name, strict.Hint(name, append(t.Names(), All)))
	}
	if !own {
		wanted = s.Settings.Policy
	}
	if wanted == "" && len(t.Policies) > 0 {
		wanted = t.Policies[0].Name()
	}
	rigid, err := backfill.Named(cmp.Or(s.Settings.Rigid, backfill.Default))
	if err != nil {
		return Mechanism{}, fmt.Errorf("mechanism %s: %w", name, err)
	}
	p, err := t.Policy(wanted)
	if err != nil {
		var known []string
		for _, p := range t.Policies {
			known = append(known, p.Name())
		}
		return Mechanism{}, fmt.Errorf("mechanism %s: there is no policy %q; %s", name, wanted, strict.Hint(wanted, known))
	}
	if own {
		name = base + ":" + p.Name()
	}
	m := Mechanism{Name: name, Summary: "gaps sold to subjobs, policy " + p.Name(), Policy: p, Rigid: rigid}
	if base == JASDA {
		m.Summary = "jobs bid for gaps and a market clears, policy " + p.Name()
		m.Market = &s.Settings.Market
	}
	return m, nil
}

// laminar is the mechanism of that name over the real actors. Its policy orders nothing but what people are shown.
func (t Table) laminar(s *scenario.Scenario) (Mechanism, error) {
	rigid, err := backfill.Named(backfill.Default)
	if err != nil {
		return Mechanism{}, err
	}
	wanted := s.Settings.Policy
	if wanted == "" && len(t.Policies) > 0 {
		wanted = t.Policies[0].Name()
	}
	p, err := t.Policy(wanted)
	if err != nil {
		return Mechanism{}, fmt.Errorf("mechanism %s: %w", Laminar, err)
	}
	terms := auction.Config{}.Under(p)
	return Mechanism{Name: Laminar, Summary: "tickets search for places, zone by zone", Policy: p, Rigid: rigid, Flow: &s.Settings.Flow,
		Market: &terms}, nil
}

// cold is a mechanism under which no program stays.
func (t Table) cold(s *scenario.Scenario, name, warm string) (Mechanism, error) {
	m, err := t.find(s, warm)
	switch {
	case err != nil:
		return m, err
	case m.Policy == nil || m.Flow != nil || m.Survivor != "" || m.Cold:
		return m, fmt.Errorf("mechanism %s: programs stay under %s and %s alone; leave %s out", name, SJA, JASDA, Cold)
	case !s.Workload.Stays():
		return m, fmt.Errorf("mechanism %s: no job of scenario %s is resident, so that it is the same as %s", name, s.Name, warm)
	}
	m.Name, m.Summary, m.Cold = name, m.Summary+"; each subjob starts a program of its own", true
	return m, nil
}

// surviving is sja, with name acting on hosts that run out of memory.
func (t Table) surviving(s *scenario.Scenario, name string) (Mechanism, error) {
	if s.Memory == nil {
		return Mechanism{}, fmt.Errorf("mechanism %s: it acts where a host's memory runs out, and scenario %s has none", name, s.Name)
	}
	m, err := t.find(s, SJA)
	m.Name, m.Survivor, m.Summary = name, name, "what is worth least is suspended, yields, or is ended"
	if k := oom.Named(name); k != nil {
		m.Summary = k.Summary
	}
	return m, err
}

// hostOf finds the planner of the scenario's host; nil where it has none.
func (t Table) hostOf(s *scenario.Scenario) (*planner.Kind, error) {
	if s.Host == nil {
		return nil, nil
	}
	var names []string
	for i := range t.Planners {
		k := &t.Planners[i]
		if k.Name == s.Host.Planner && !k.Preempts {
			return k, nil
		}
		if !k.Preempts {
			names = append(names, k.Name)
		}
	}
	return nil, errkind.Errorf(errkind.Invalid, "host: there is no planner %q that stops nothing; %s", s.Host.Planner,
		strict.Hint(s.Host.Planner, names))
}

// lean is a mechanism for lean nodes.
func lean(k *swarm.Kind) Mechanism { return Mechanism{Name: k.Name, Summary: k.Summary, Swarm: k} }

// findLean gives the mechanisms of these names for a world of lean nodes; all is every one.
func (t Table) findLean(s *scenario.Scenario, names []string) (out []Mechanism, err error) {
	var known []string
	for i := range t.Swarm {
		known = append(known, t.Swarm[i].Name)
	}
	seen := map[string]bool{}
	add := func(i int) {
		if !seen[t.Swarm[i].Name] {
			seen[t.Swarm[i].Name] = true
			out = append(out, lean(&t.Swarm[i]))
		}
	}
	var problems []error
names:
	for _, name := range names {
		for i := range t.Swarm {
			if name == All {
				add(i)
			} else if name == t.Swarm[i].Name {
				add(i)
				continue names
			}
		}
		if name != All {
			problems = append(problems, fmt.Errorf("mechanism %q does not place short tasks on lean nodes, which scenario %s has; %s", name,
				s.Name, strict.Hint(name, append(known, All))))
		}
	}
	if len(problems) > 0 {
		return nil, errkind.Errorf(errkind.Invalid, "%w", errors.Join(problems...))
	}
	return out, nil
}
