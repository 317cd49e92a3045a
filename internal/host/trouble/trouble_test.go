package trouble

import (
	"log/slog"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/observe"
	"sluice.dev/sluice/internal/host/inbox"
	"sluice.dev/sluice/internal/host/nodes"
)

// TestAReportStandsUntilItsSourceIsWell: the executor's store answers again while the inventory's cluster is still away.
func TestAReportStandsUntilItsSourceIsWell(t *testing.T) {
	b, log := inbox.New(nil), slog.New(slog.DiscardHandler)
	s := New(nodes.Nodes{"a"}, b, observe.New(observe.Options{Log: log}), log)
	for i, c := range []struct {
		from, text string
		want       string
	}{
		{"executor", "no store", "no store"}, {"inventory", "no cluster", "no store; no cluster"}, {"executor", "", "no cluster"},
		{"executor", "", "no cluster"}, {"inventory", "", ""},
	} {
		s.Report(c.from, &protocol.Condition{Unhealthy: c.text != "", Text: c.text})
		said := ""
		if a := s.blocked.Load(); a != nil {
			said = *a
		}
		if said != c.want || c.want != "" && !strings.HasSuffix(s.Text(""), c.want) || c.want == "" && s.Text("") != "" {
			t.Errorf("%d: %+v: it is said that %q, want %q; in all %q", i, c, said, c.want, s.Text(""))
		}
	}
	var told []string
	messages, _ := b.Take(100, 0, nil, nil)
	for i := range messages {
		told = append(told, messages[i].Body.(*protocol.Condition).Text)
	}
	if got := strings.Join(told, " | "); got != "no store | no store; no cluster | no cluster | no cluster | " {
		t.Errorf("the node was told %q", got)
	}
}
