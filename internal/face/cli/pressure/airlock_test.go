package pressure

import (
	"context"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/face/cli/clitest"
	"sluice.dev/sluice/internal/face/cli/session"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/internal/edge/terminal"
	"sluice.dev/sluice/internal/face/api/apitest"
	"sluice.dev/sluice/internal/face/cli/live"
)

// TestAirlockOnAScreen fits it, and is moved through.
func TestAirlockOnAScreen(t *testing.T) {
	v := &airlocks{a: session.New(session.Options{Now: apitest.Now})}
	for i := range 50 {
		v.list = append(v.list, &pb.Airlock{Node: "n", Level: "off", Why: strings.Repeat("y", i)})
	}
	for _, size := range [][2]int{{80, 24}, {20, 5}, {300, 200}} {
		rows := v.Frame(size[0], size[1], "the daemon is away")
		if len(rows) > size[1] || rows[1].Text != "the daemon is away" || !strings.Contains(rows[0].Text, "12:00:00") {
			t.Errorf("%d rows on a screen of %d: %q", len(rows), size[1], clitest.Pictured(rows))
		}
	}
	first := clitest.Pictured(v.Frame(80, 24, ""))
	v.Key(terminal.KeyPageDown)
	if clitest.Pictured(v.Frame(80, 24, "")) == first {
		t.Error("it does not move")
	}
	for range 50 {
		v.Key(terminal.KeyPageDown)
	}
	if last := v.Frame(80, 24, ""); len(last) != 24 || strings.Contains(last[23].Text, "more lines") ||
		!strings.Contains(last[23].Text, strings.Repeat("y", 49)) {
		t.Errorf("at its end it shows %q", clitest.Pictured(last))
	}
}

// TestAirlockIsWatched where there is no terminal: it is printed again when it has changed.
func TestAirlockIsWatched(t *testing.T) {
	fake := apitest.New()
	v := &airlocks{a: session.New(session.Options{Now: apitest.Now})}
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
			v.list = append(v.list, &pb.Airlock{Node: string(fake.AirlockList[i].Node), Level: "off", Short: fake.AirlockList[i].Short,
				Why: map[bool]string{true: "short", false: "not short"}[fake.AirlockList[i].Short]})
		}
	}}
	if err := live.Watch(ctx, v.a, time.Millisecond, watched); err != nil {
		t.Fatal(err)
	}
	if short, not := strings.Count(out.String(), ": short"),
		strings.Count(out.String(), "node-1: off, nobody looks at its memory: not short"); short != 1 || not != 1 {
		t.Errorf("after %d looks it has printed\n%s", looks, out.String())
	}
}

// counted is a view whose answers are made here.
type counted struct {
	*airlocks
	look func()
}

func (c counted) Fetch(context.Context) (func(), error) { return c.look, nil }
