package cli

import (
	"strings"
	"testing"

	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/face/api/apitest"
)

// TestTheStateOfAnAirlock in its first line, where nobody looks, nothing was heard, or it is short for one of its reasons.
func TestTheStateOfAnAirlock(t *testing.T) {
	storm := apitest.New().AirlockList[0]
	for _, c := range []struct {
		change func(*status.Airlock)
		want   string
	}{
		{func(a *status.Airlock) { *a = apitest.New().AirlockList[1] },
			"node-2: off, nobody looks at its memory: key airlock of the daemon's file says so\n"},
		{func(a *status.Airlock) { a.Strain.At = 0 }, "node-1: its memory has not been looked at yet\n"},
		{func(a *status.Airlock) { a.Strain.Old = true }, "node-1: nothing was heard of its memory for long, so nothing follows from it\n"},
		{func(a *status.Airlock) { a.Short, a.Stands = false, nil }, "node-1: severe\n"},
		{func(a *status.Airlock) {
			a.Short, a.Full, a.Left, a.Strain.Level, a.Stands = false, true, 3<<30, "calm", nil
		}, "node-1: calm; nothing is granted until there is room for what had to leave, 3Gi\n"},
		{func(a *status.Airlock) { a.Stands, a.Stuck = nil, "gang" }, "node-1: severe; it is short of memory, so nothing is granted and " +
			"nothing begins; the lowest that runs, of job gang, can neither be suspended nor yield, and those above it don't make up " +
			"for it\n"},
		{func(a *status.Airlock) { a.Stands = append(a.Stands, a.Stands...) },
			"node-1: severe; it is short of memory, so nothing is granted and nothing begins; 2 subjobs give way\n"},
	} {
		fake := apitest.New()
		a := storm
		c.change(&a)
		fake.AirlockList = []status.Airlock{a}
		if r := sluice(t, answering(t, fake), "", "airlock"); r.code != 0 || !strings.HasPrefix(r.out, c.want) {
			t.Errorf("it says\n%s\nwant\n%s", r.out, c.want)
		}
	}
	none := apitest.New()
	none.AirlockList = nil
	if r := sluice(t, answering(t, none), "", "airlock"); r.code != 0 || r.out != "no nodes\n" {
		t.Errorf("without a node it says %q", r.out)
	}
	if r := sluice(t, answering(t, none), "", "airlock", "-o", "json"); r.code != 0 || r.out != "[]\n" {
		t.Errorf("without a node it says %q", r.out)
	}
}

// TestPressureIsAirlock: the command answers to both names, in every form and in its help.
func TestPressureIsAirlock(t *testing.T) {
	addr := answering(t, apitest.New())
	for _, args := range [][]string{nil, {"-o", "wide"}, {"-o", "json"}, {"--help"}, {"no-node"}} {
		want, got := sluice(t, addr, "", append([]string{"airlock"}, args...)...),
			sluice(t, addr, "", append([]string{"pressure"}, args...)...)
		if got.code != want.code || got.out != want.out || got.err != want.err {
			t.Errorf("%q: code %d\n%s%s\nairlock: code %d\n%s%s", args, got.code, got.out, got.err, want.code, want.out, want.err)
		}
	}
	if help := sluice(t, addr, "", "pressure", "--help"); !strings.Contains(help.out, "airlock, pressure") {
		t.Errorf("its help names not both:\n%s", help.out)
	}
}

// TestOnlyTheLatestStepsOfAStorm stand in a table, unless it is wide.
func TestOnlyTheLatestStepsOfAStorm(t *testing.T) {
	fake := apitest.New()
	a := &fake.AirlockList[0]
	for len(a.Steps) < 60 {
		a.Steps = append(a.Steps, a.Steps[1])
	}
	addr := answering(t, fake)
	narrow, wide := sluice(t, addr, "", "airlock"), sluice(t, addr, "", "airlock", "-o", "wide")
	if n := strings.Count(narrow.out, "too much"); n != 20 || !strings.Contains(narrow.out, "and 43 before these\n") {
		t.Errorf("%d steps in\n%s", n, narrow.out)
	}
	of := sluice(t, addr, "", "explain", "count-words")
	if n := strings.Count(of.out, "too much"); n != 20 || !strings.Contains(of.out, "and 39 before these\n") {
		t.Errorf("%d steps of a job in\n%s", n, of.out)
	}
	if n := strings.Count(wide.out, "too much"); n < 57 || !strings.Contains(wide.out, "and 3 before these\n") {
		t.Errorf("%d steps in\n%s", n, wide.out)
	}
}

// TestNamesInAnAirlockDoNothingToATerminal, whatever a job, a slice or a driver is called.
func TestNamesInAnAirlockDoNothingToATerminal(t *testing.T) {
	const bad = "x\x1b[2Jy\nnode-1: calm\u202e"
	fake := apitest.New()
	a := &fake.AirlockList[0]
	a.Node, a.Guard.Why, a.Guard.Kind, a.Stuck = bad, bad, bad, bad
	a.Stands[0].Job, a.Stands[0].Slice, a.Stands[0].Why = bad, bad, bad
	for i := range a.Steps {
		a.Steps[i].Job, a.Steps[i].Slice, a.Steps[i].Spared, a.Steps[i].Below, a.Steps[i].Why, a.Steps[i].Step = bad, bad, bad, bad, bad,
			bad
	}
	addr := answering(t, fake)
	for _, args := range [][]string{{"airlock"}, {"airlock", "-o", "wide"}, {"explain", "count-words"}, {"top"}} {
		r := sluice(t, addr, "", args...)
		if r.code != 0 || strings.ContainsAny(r.out, "\x1b\u202e") || strings.Contains(r.out, "\nnode-1: calm") {
			t.Errorf("%v: exit %d\n%q", args, r.code, r.out)
		}
	}
}
