package cli

import (
	"context"
	"strings"
	"testing"
	"time"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/edge/terminal"
	"sluice.dev/sluice/internal/face/api/apitest"
)

// TestTheStateOfAnAirlock in its first line, where nobody looks, nothing was heard, or it is short for one of its reasons.
func TestTheStateOfAnAirlock(t *testing.T) {
	storm := apitest.New().AirlockList[0]
	for _, c := range []struct {
		change func(*status.Airlock)
		want   string
	}{
		{func(a *status.Airlock) { *a = apitest.New().AirlockList[1] }, "node-2: off, nobody looks at its memory: key airlock of the daemon's file says so\n"},
		{func(a *status.Airlock) { a.At = 0 }, "node-1: its memory has not been looked at yet\n"},
		{func(a *status.Airlock) { a.Old = true }, "node-1: nothing was heard of its memory for long, so nothing follows from it\n"},
		{func(a *status.Airlock) { a.Short, a.Stands = false, nil }, "node-1: severe\n"},
		{func(a *status.Airlock) { a.Short, a.Full, a.Left, a.Level, a.Stands = false, true, 3<<30, "calm", nil }, "node-1: calm; nothing is granted until there is room for what had to leave, 3Gi\n"},
		{func(a *status.Airlock) { a.Stands, a.Stuck = nil, "gang" }, "node-1: severe; it is short of memory, so nothing is granted and " +
			"nothing begins; the lowest that runs, of job gang, can't stand still or yield, and those above it don't make up for it\n"},
		{func(a *status.Airlock) { a.Stands = append(a.Stands, a.Stands...) }, "node-1: severe; it is short of memory, so nothing is granted and nothing begins; 2 subjobs give way\n"},
	} {
		fake := apitest.New()
		a := storm
		c.change(&a)
		fake.AirlockList = []status.Airlock{a}
		if r := sluice(t, daemon(t, fake), "", "airlock"); r.code != 0 || !strings.HasPrefix(r.out, c.want) {
			t.Errorf("it says\n%s\nwant\n%s", r.out, c.want)
		}
	}
	none := apitest.New()
	none.AirlockList = nil
	if r := sluice(t, daemon(t, none), "", "airlock"); r.code != 0 || r.out != "no nodes\n" {
		t.Errorf("without a node it says %q", r.out)
	}
	if r := sluice(t, daemon(t, none), "", "airlock", "-o", "json"); r.code != 0 || r.out != "[]\n" {
		t.Errorf("without a node it says %q", r.out)
	}
}

// TestOnlyTheLatestStepsOfAStorm stand in a table, unless it is wide.
func TestOnlyTheLatestStepsOfAStorm(t *testing.T) {
	fake := apitest.New()
	a := &fake.AirlockList[0]
	for len(a.Steps) < 60 {
		a.Steps = append(a.Steps, a.Steps[1])
	}
	addr := daemon(t, fake)
	narrow, wide := sluice(t, addr, "", "airlock"), sluice(t, addr, "", "airlock", "-o", "wide")
	if n := strings.Count(narrow.out, "too much"); n != stepsShown || !strings.Contains(narrow.out, "and 43 before these\n") {
		t.Errorf("%d steps in\n%s", n, narrow.out)
	}
	of := sluice(t, addr, "", "explain", "count-words")
	if n := strings.Count(of.out, "too much"); n != stepsShown || !strings.Contains(of.out, "and 39 before these\n") {
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
		a.Steps[i].Job, a.Steps[i].Slice, a.Steps[i].Spared, a.Steps[i].Below, a.Steps[i].Why, a.Steps[i].Step = bad, bad, bad, bad, bad, bad
	}
	addr := daemon(t, fake)
	for _, args := range [][]string{{"airlock"}, {"airlock", "-o", "wide"}, {"explain", "count-words"}, {"top"}} {
		r := sluice(t, addr, "", args...)
		if r.code != 0 || strings.ContainsAny(r.out, "\x1b\u202e") || strings.Contains(r.out, "\nnode-1: calm") {
			t.Errorf("%v: exit %d\n%q", args, r.code, r.out)
		}
	}
}

// TestAirlockOnAScreen fits it, and is moved through.
func TestAirlockOnAScreen(t *testing.T) {
	v := &airlocks{a: newApp(Deps{Now: apitest.Now})}
	for i := range 50 {
		v.list = append(v.list, &pb.Airlock{Node: "n", Level: "off", Why: strings.Repeat("y", i)})
	}
	for _, size := range [][2]int{{80, 24}, {20, 5}, {300, 200}} {
		rows := v.frame(size[0], size[1], "the daemon is away")
		if len(rows) > size[1] || rows[1].Text != "the daemon is away" || !strings.Contains(rows[0].Text, "12:00:00") {
			t.Errorf("%d rows on a screen of %d: %q", len(rows), size[1], pictured(rows))
		}
	}
	first := pictured(v.frame(80, 24, ""))
	v.key(terminal.KeyPageDown)
	if pictured(v.frame(80, 24, "")) == first {
		t.Error("it does not move")
	}
	for range 50 {
		v.key(terminal.KeyPageDown)
	}
	if last := v.frame(80, 24, ""); len(last) != 24 || strings.Contains(last[23].Text, "more lines") || !strings.Contains(last[23].Text, strings.Repeat("y", 49)) {
		t.Errorf("at its end it shows %q", pictured(last))
	}
}

// TestAirlockIsWatched where there is no terminal: it is printed again when it has changed.
func TestAirlockIsWatched(t *testing.T) {
	fake := apitest.New()
	v := &airlocks{a: newApp(Deps{Now: apitest.Now})}
	var out strings.Builder
	v.a.Out = &out
	ctx, cancel := context.WithCancel(t.Context())
	looks := 0
	watched := counted{v, func() {
		switch looks++; looks {
		case 3:
			fake.AirlockList[0].Short = false
		case 6:
			cancel()
		}
		v.list = nil
		for i := range fake.AirlockList {
			v.list = append(v.list, &pb.Airlock{Node: string(fake.AirlockList[i].Node), Level: "off", Short: fake.AirlockList[i].Short, Why: map[bool]string{true: "short", false: "not short"}[fake.AirlockList[i].Short]})
		}
	}}
	if err := v.a.watch(ctx, time.Millisecond, watched); err != nil {
		t.Fatal(err)
	}
	if short, not := strings.Count(out.String(), ": short"), strings.Count(out.String(), "node-1: off, nobody looks at its memory: not short"); short != 1 || not != 1 {
		t.Errorf("after %d looks it has printed\n%s", looks, out.String())
	}
}

// counted is a view whose answers are made here.
type counted struct {
	*airlocks
	look func()
}

func (c counted) fetch(context.Context) (func(), error) { return c.look, nil }
