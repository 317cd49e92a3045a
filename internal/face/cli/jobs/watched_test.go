package jobs

import (
	"strings"
	"testing"

	"sluice.dev/sluice/internal/edge/terminal"
	"sluice.dev/sluice/internal/face/api/apitest"
	"sluice.dev/sluice/internal/face/cli/session"
)

// TestMissingJobsAreNamedOnAScreen, below its title.
func TestMissingJobsAreNamedOnAScreen(t *testing.T) {
	w := watched{a: session.New(session.Options{Now: apitest.Now}), listed: listed{warnings: []string{`job "a" is damaged: do this`}}}
	if rows := w.Frame(80, 20, ""); !strings.Contains(rows[1].Text, `job "a" is damaged: do this`) || rows[1].Style != terminal.Bad {
		t.Errorf("on the screen: %+v", rows)
	}
}
