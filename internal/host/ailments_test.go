package host

import (
	"log/slog"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/observe"
)

// TestWhatAilsIsWellWhenAllOfItIs: the executor's store answers again while the inventory's cluster is still away.
func TestWhatAilsIsWellWhenAllOfItIs(t *testing.T) {
	h := &Host{inbox: newInbox(func(lane, uint64) {}), observer: observe.New(observe.Options{Log: slog.New(slog.DiscardHandler)}), nodes: []job.NodeID{"a"}}
	for i, c := range []struct {
		from, text string
		want       string
	}{
		{"executor", "no store", "no store"}, {"inventory", "no cluster", "no store; no cluster"}, {"executor", "", "no cluster"}, {"executor", "", "no cluster"}, {"inventory", "", ""},
	} {
		h.ail(c.from, &protocol.Ailment{Ails: c.text != "", Text: c.text})
		said := ""
		if a := h.ailing.Load(); a != nil {
			said = *a
		}
		if said != c.want || c.want != "" && !strings.HasSuffix(h.troubles(), c.want) || c.want == "" && h.troubles() != "" {
			t.Errorf("%d: %+v: it is said that %q, want %q; troubles are %q", i, c, said, c.want, h.troubles())
		}
	}
	var told []string
	messages, _ := h.inbox.take(100, 0, nil, nil)
	for i := range messages {
		told = append(told, messages[i].Body.(*protocol.Ailment).Text)
	}
	if got := strings.Join(told, " | "); got != "no store | no store; no cluster | no cluster | no cluster | " {
		t.Errorf("the node was told %q", got)
	}
}
