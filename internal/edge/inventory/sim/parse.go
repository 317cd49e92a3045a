package sim

import (
	"errors"
	"fmt"
	"math/bits"
	"strconv"
	"strings"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/mig"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

const (
	// Prefix of a simulated inventory's spec.
	Prefix = "sim:"
	// MaxSlices bounds an inventory; MaxText the spec's length in bytes.
	MaxSlices = 1024
	// MaxText bounds the spec's length in bytes.
	MaxText = 64 << 10

	custom = "custom"
)

// group is a number of equal GPUs. The ids of pieces are what follows the GPU's number.
type group struct {
	count       int
	model, what string
	pieces      []protocol.Slice
}

func parse(spec string) ([]group, error) {
	if len(spec) > MaxText {
		return nil, errkind.Errorf(errkind.Invalid, "simulated slices: the spec is %d bytes long; want at most %d", len(spec), MaxText)
	}
	var groups []group
	var problems []error
	total := 0
	texts := strings.Split(strings.TrimPrefix(strings.TrimSpace(spec), Prefix), ";")
	for _, text := range texts {
		text = strings.TrimPrefix(strings.TrimSpace(text), Prefix)
		if text == "" && len(texts) > 1 {
			continue // a trailing ';' is no group
		}
		g, err := parseGroup(text)
		if err != nil {
			problems = append(problems, fmt.Errorf("%q: %w", text, err))
			continue
		}
		total += g.count * len(g.pieces)
		groups = append(groups, g)
	}
	if total > MaxSlices {
		problems = append(problems, fmt.Errorf("%d slices in all; want at most %d", total, MaxSlices))
	}
	if len(groups) == 0 && len(problems) == 0 {
		problems = append(problems, errors.New("no GPUs given; want for example a100-80gb=2"))
	}
	if len(problems) > 0 {
		return nil, &errkind.Error{Kind: errkind.Invalid, Err: fmt.Errorf("simulated slices: %w", errors.Join(problems...))}
	}
	return groups, nil
}

// parseGroup reads BOARD[=COUNT][,option=value...].
func parseGroup(text string) (group, error) {
	var problems []error
	head, rest, _ := strings.Cut(text, ",")
	name, number, counted := strings.Cut(head, "=")
	g := group{count: 1}
	if counted {
		n, err := strconv.Atoi(strings.TrimSpace(number))
		if err != nil || n < 1 || n > MaxSlices {
			problems = append(problems, fmt.Errorf("the count %q is not a number from 1 to %d", number, MaxSlices))
			n = 1
		}
		g.count = n
	}
	name = strings.ToLower(strings.TrimSpace(name))
	allowed := []string{"layout", "mem"}
	if name == custom {
		allowed = []string{"mem", "speed"}
	}
	options, err := parseOptions(rest, allowed)
	problems = append(problems, err)
	if name == custom {
		problems = append(problems, g.fillCustom(options))
	} else {
		problems = append(problems, g.fillBoard(name, options))
	}
	return g, errors.Join(problems...)
}

// parseOptions reads option=value pairs joined by commas.
func parseOptions(text string, allowed []string) (map[string]string, error) {
	options := map[string]string{}
	var problems []error
	for _, pair := range strings.Split(text, ",") {
		if pair = strings.TrimSpace(pair); pair == "" {
			continue
		}
		key, value, ok := strings.Cut(pair, "=")
		key = strings.ToLower(strings.TrimSpace(key))
		known := false
		for _, a := range allowed {
			known = known || a == key
		}
		_, twice := options[key]
		switch {
		case !ok || !known:
			problems = append(problems, fmt.Errorf("option %q is not known here; want %s=", pair, strings.Join(allowed, "= or ")))
		case twice:
			problems = append(problems, fmt.Errorf("option %s is given twice", key))
		default:
			options[key] = strings.TrimSpace(value)
		}
	}
	return options, errors.Join(problems...)
}

// fillBoard makes the pieces of a board of package mig.
func (g *group) fillBoard(name string, options map[string]string) error {
	board, err := mig.Board(name)
	if err != nil {
		return fmt.Errorf("%w, or %s", err, custom)
	}
	var problems []error
	memory := board.Memory
	if text, ok := options["mem"]; ok {
		if memory, err = parseMemory(text); err != nil {
			problems = append(problems, err)
			memory = board.Memory
		}
	}
	scale := func(a quantity.Amount) quantity.Amount { return scaled(a, memory, board.Memory) }
	g.model, g.what = board.Model, "whole"
	if text, ok := options["layout"]; ok {
		layout, err := board.ParseLayout(text)
		if err != nil {
			return errors.Join(append(problems, err)...)
		}
		g.what = layout.String()
		for _, i := range layout {
			g.pieces = append(g.pieces, piece(g.model, "/"+i.String(), i.Profile.Name, scale(i.Profile.Memory), i.Profile.Speed))
		}
	} else {
		g.pieces = []protocol.Slice{piece(g.model, "", "gpu", memory, 1000)}
	}
	if options["mem"] != "" {
		g.what += ", scaled to " + quantity.FormatBytes(memory)
	}
	for _, p := range g.pieces {
		if p.Capacity[trp.Memory] < 1 {
			problems = append(problems, fmt.Errorf("mem=%s leaves no memory for %s", options["mem"], p.Profile))
		}
	}
	return errors.Join(problems...)
}

// fillCustom makes made-up pieces.
func (g *group) fillCustom(options map[string]string) error {
	var problems []error
	sizes := strings.Split(options["mem"], "+")
	if options["mem"] == "" {
		problems = append(problems, errors.New("custom slices need mem=, for example mem=1Gi+512Mi"))
		sizes = nil
	}
	speeds := strings.Split(options["speed"], "+")
	if options["speed"] == "" {
		speeds = []string{"1000"}
	}
	if len(speeds) != 1 && len(speeds) != len(sizes) {
		problems = append(problems, fmt.Errorf("%d speeds for %d slices; want one for each or one for all", len(speeds), len(sizes)))
	}
	for n, text := range sizes {
		memory, err := parseMemory(text)
		problems = append(problems, err)
		speed, err := strconv.ParseInt(strings.TrimSpace(speeds[min(n, len(speeds)-1)]), 10, 64)
		if err != nil || speed < 1 || speed > 1000 {
			problems = append(problems, fmt.Errorf("the speed %q is not a number from 1 to 1000 (parts per thousand)",
				speeds[min(n, len(speeds)-1)]))
		}
		profile, id := quantity.ExactBytes(memory), ""
		if len(sizes) > 1 {
			id = fmt.Sprintf("/%s@%d", profile, n)
		}
		g.pieces = append(g.pieces, piece(custom, id, profile, memory, speed))
	}
	g.model, g.what = custom, options["mem"]
	return errors.Join(problems...)
}

func piece(model, id, profile string, memory quantity.Amount, speed int64) protocol.Slice {
	return protocol.Slice{ID: job.SliceID(id), Model: model, Profile: profile, Capacity: trp.Vector{trp.Memory: memory}, Speed: speed,
		Simulated: true}
}

func parseMemory(text string) (quantity.Amount, error) {
	a, err := quantity.ParseSize(text)
	if err == nil && (a < 1 || a > trp.MaxAmount) {
		err = fmt.Errorf("mem=%s is not from 1 byte to %s", text, quantity.FormatBytes(trp.MaxAmount))
	}
	return a, err
}

// scaled is a*to/from, at most to because a is at most from, and rounded down: a slice never has more than its share.
func scaled(a, to, from quantity.Amount) quantity.Amount {
	hi, lo := bits.Mul64(uint64(a), uint64(to))
	q, _ := bits.Div64(hi, lo, uint64(from))
	return quantity.Amount(q)
}
