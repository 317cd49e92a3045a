package config

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/edge/strict"
)

// RenderJob writes a spec as the YAML of a job file, defaults filled: what ParseJob reads back as an equal spec with the
// given workdir, Launch.Workdir apart, which is no part of the file. An error says that the spec did not come from a
// job file.
func RenderJob(s *job.Spec, workdir string) ([]byte, error) {
	spec := mapping(
		entry("queue", text(s.Queue)),
		entry("priority", number(int64(s.Priority))),
	)
	switch s.Kind {
	case job.Items:
		key, per := "items", "perItem"
		if s.External {
			key, per = "external", "perUnit"
		}
		units := renderUnits(s, per)
		add(units, "grid", number(s.Grid))
		add(units, "parallelism", number(int64(s.Parallelism)))
		add(spec, key, units)
		add(spec, "onItemFailure", text([]string{"fail", "skip"}[s.OnBadItem]))
	case job.Steps:
		key, per, grid := "steps", "perStep", "every"
		if s.External {
			key, per, grid = "external", "perUnit", "grid"
		}
		chain := renderUnits(s, per)
		add(chain, grid, number(s.Grid))
		add(chain, "restore", length(s.Restore))
		add(chain, "checkpoint", length(s.Checkpoint))
		if s.External {
			add(chain, "chain", number("true"))
		}
		add(spec, key, chain)
	case job.Rigid:
		r := mapping(entry("slices", number(int64(s.Slices))))
		if s.Topology != job.SameNode {
			add(r, "topology", text(s.Topology.String()))
		}
		if s.Walltime > 0 {
			add(r, "walltime", length(s.Walltime))
			add(r, "onOverrun", text([]string{"kill", "extend"}[s.OnOverrun]))
		}
		if s.Saves {
			add(r, "steps", mapping(entry("total", number(s.Total)), entry("every", number(s.Grid))))
		}
		if s.Patience > 0 {
			add(r, "maxWait", length(s.Patience))
		}
		add(spec, "rigid", r)
	default:
		return nil, fmt.Errorf("job %s: kind %d has no form in a job file", s.Name, s.Kind)
	}
	memory, err := renderMemory(s)
	if err != nil {
		return nil, err
	}
	add(spec, "memory", memory)
	add(spec, "memoryRisk", number(strict.FormatFraction(s.Theta, 1_000_000)))
	add(spec, "minRuntime", length(s.TauMin))
	add(spec, "overheadMax", number(strict.FormatFraction(int64(s.OverheadMax), 1000)))
	if s.Deadline != quantity.Never {
		add(spec, "deadline", text(s.Deadline.Time().Format(time.RFC3339Nano)))
	}
	if s.Kind != job.Rigid {
		add(spec, "startup", length(s.Startup))
	}
	if len(s.Speeds) > 0 {
		speeds := mapping()
		for _, on := range s.Speeds {
			add(speeds, on.Profile, number(strict.FormatFraction(on.Permille, 1000)))
		}
		add(spec, "speeds", speeds)
	}
	renderChoices(spec, s)
	if s.Continue {
		add(spec, "continue", number("true"))
	}
	if s.Resident {
		add(spec, "resident", number("true"))
	}
	add(spec, "maxFailures", number(int64(s.MaxFailures)))
	renderLaunch(spec, &s.Launch, workdir)

	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	err = enc.Encode(mapping(
		entry("apiVersion", text(APIVersion)), entry("kind", text(JobKind)),
		entry("metadata", mapping(entry("name", text(string(s.Name))))), entry("spec", spec)))
	if err = errors.Join(err, enc.Close()); err != nil {
		return nil, fmt.Errorf("job %s: writing it as YAML: %w", s.Name, err)
	}
	return b.Bytes(), nil
}

// renderUnits begins what both divisible kinds have: the units, and their time if one was given.
func renderUnits(s *job.Spec, per string) *yaml.Node {
	units := mapping(entry("unit", text(s.Unit)))
	if !s.Open() {
		units = mapping(entry("total", number(s.Total)), entry("unit", text(s.Unit)))
	}
	if s.PerUnit > 0 {
		add(units, per, length(s.PerUnit))
	}
	return units
}

func renderLaunch(spec *yaml.Node, l *job.Launch, workdir string) {
	if l.Image != "" {
		add(spec, "image", text(l.Image))
	}
	if workdir != "" {
		add(spec, "workdir", text(workdir))
	}
	if l.Subdir != "" {
		add(spec, "subdir", text(l.Subdir))
	}
	cmd := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
	for _, arg := range l.Command {
		cmd.Content = append(cmd.Content, quoted(arg))
	}
	add(spec, "command", cmd)
	if lines := &l.Adapter.Lines; lines.Input != "" {
		m := mapping(entry("input", quoted(lines.Input)), entry("format", text(lines.Format.String())))
		if lines.Index != "" {
			add(m, "index", quoted(lines.Index))
		}
		if lines.Header {
			add(m, "header", number("true"))
		}
		if lines.AnswersHeader {
			add(m, "answersHeader", number("true"))
		}
		add(spec, "adapter", mapping(entry("lines", m)))
	}
	if tasks := renderTasks(&l.Adapter); tasks != nil {
		add(spec, "adapter", tasks)
	}
	if d := &l.Adapter.Directory; d.Path != "" {
		m := mapping(entry("path", quoted(d.Path)))
		if d.Progress != "" {
			add(m, "progress", quoted(d.Progress))
		}
		add(spec, "adapter", mapping(entry("directory", m)))
	}
	renderVariables(spec, l.Env)
	if l.Umask.Named {
		add(spec, "umask", quoted(fmt.Sprintf("%03o", l.Umask.Bits)))
	}
	add(spec, "grace", length(l.Grace))
	for name, n := range signals() {
		if n == l.WarnSignal {
			add(spec, "warn", mapping(entry("signal", text(name)), entry("before", length(l.WarnBefore))))
		}
	}
	if l.LogLimit > 0 || l.OutputLimit > 0 {
		limits := mapping()
		if l.LogLimit > 0 {
			add(limits, "log", size(quantity.Amount(l.LogLimit)))
		}
		if l.OutputLimit > 0 {
			add(limits, "output", size(quantity.Amount(l.OutputLimit)))
		}
		add(spec, "limits", limits)
	}
}

// renderTasks are the keys of an adapter that runs tasks; nil: it is none.
func renderTasks(a *job.Adapter) *yaml.Node {
	switch {
	case a.Array.Indices != "":
		m := mapping(entry("indices", quoted(a.Array.Indices)))
		for _, f := range []struct{ key, value string }{{"name", a.Array.Name}, {"output", a.Array.Output}, {"error", a.Array.Error}} {
			if f.value != "" {
				add(m, f.key, quoted(f.value))
			}
		}
		if a.Array.Limit > 0 {
			add(m, "limit", length(a.Array.Limit))
		}
		return mapping(entry("array", m))
	case a.Trials.Table != "":
		m := mapping(entry("table", quoted(a.Trials.Table)))
		if s := &a.Trials.Stop; s.Reduction > 0 {
			goal := goals()[0]
			if s.Maximize {
				goal = goals()[1]
			}
			add(m, "stop", mapping(entry("goal", text(goal)), entry("reduction", number(s.Reduction)), entry("from", number(s.From))))
		}
		return mapping(entry("trials", m))
	}
	return nil
}

// renderChoices writes what the job values and the other ways to run it.
func renderChoices(spec *yaml.Node, s *job.Spec) {
	share := func(n int64) *yaml.Node { return number(strict.FormatFraction(n, 1000)) }
	add(spec, "scoreWeights", mapping(entry("progress", share(s.Worth.Progress)), entry("laxity", share(s.Worth.Laxity)),
		entry("overhead", share(s.Worth.Overhead))))
	if len(s.Options) > 0 {
		list := &yaml.Node{Kind: yaml.SequenceNode}
		for _, o := range s.Options {
			e := mapping(entry("name", text(o.Name)), entry("speed", share(o.Speed)), entry("memory", share(o.Memory)))
			renderVariables(e, o.Env)
			list.Content = append(list.Content, e)
		}
		add(spec, "options", list)
	}
	if s.Template != "" {
		add(spec, "template", text(s.Template))
	}
}

func renderVariables(m *yaml.Node, entries []string) {
	if len(entries) == 0 {
		return
	}
	env := mapping()
	for _, e := range entries {
		k, v, _ := strings.Cut(e, "=")
		add(env, k, quoted(v))
	}
	add(m, "env", env)
}

func renderMemory(s *job.Spec) (*yaml.Node, error) {
	p := &s.Profile
	list := &yaml.Node{Kind: yaml.SequenceNode}
	switch p.Form {
	case trp.Phases:
		if len(p.Phases) == 1 && p.Phases[0].SD == 0 && p.Combine == trp.Union {
			return size(p.Phases[0].Mean), nil
		}
		for _, ph := range p.Phases {
			list.Content = append(list.Content, mapping(entry("upTo", number(ph.UpTo)), entry("mean", size(ph.Mean)),
				entry("sd", size(ph.SD))))
		}
		return mapping(entry("phases", list), entry("combine", text([]string{"union", "independent", "maximum"}[p.Combine]))), nil
	case trp.Envelope:
		for _, pt := range p.Curve {
			list.Content = append(list.Content, mapping(entry("upTo", number(pt.UpTo)), entry("amount", size(pt.Amount))))
		}
		return mapping(entry("envelope", list)), nil
	case trp.Ensemble:
		bounds := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
		for _, b := range p.Bounds {
			bounds.Content = append(bounds.Content, number(b))
		}
		for _, run := range p.Runs {
			peaks := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
			for _, a := range run {
				peaks.Content = append(peaks.Content, size(a))
			}
			list.Content = append(list.Content, peaks)
		}
		return mapping(entry("ensemble", mapping(entry("upTo", bounds), entry("runs", list)))), nil
	}
	return nil, fmt.Errorf("job %s: memory form %d has no form in a job file", s.Name, p.Form)
}

// pair is a key with its value.
type pair struct {
	key  string
	node *yaml.Node
}

func entry(key string, n *yaml.Node) pair { return pair{key, n} }

func mapping(fields ...pair) *yaml.Node {
	m := &yaml.Node{Kind: yaml.MappingNode}
	for _, f := range fields {
		add(m, f.key, f.node)
	}
	return m
}

func add(m *yaml.Node, key string, n *yaml.Node) { m.Content = append(m.Content, text(key), n) }

// text is a string, quoted only where YAML would read something else.
func text(s string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s} }

// quoted is a string in double quotes, which carry every character.
func quoted(s string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s, Style: yaml.DoubleQuotedStyle}
}

// number is a value that is written as it is.
func number[T int64 | string](n T) *yaml.Node {
	switch n := any(n).(type) {
	case int64:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: strconv.FormatInt(n, 10)}
	default:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: any(n).(string)}
	}
}

func length(d time.Duration) *yaml.Node { return text(strict.FormatDuration(d)) }

// size has a unit, without which it would not be read back.
func size(a quantity.Amount) *yaml.Node {
	s := quantity.ExactBytes(a)
	if a > 0 && s[len(s)-1] <= '9' {
		s += "B"
	}
	return text(s)
}
