package adapter

import (
	"strings"
	"testing"

	"sluice.dev/sluice/internal/core/job"
)

// TestALineThatFailsAloneIsNamed as an editor counts, whose records may be of several lines; one of several that failed is not known.
func TestALineThatFailsAloneIsNamed(t *testing.T) {
	for name, c := range map[string]struct {
		csv      bool
		from, to int64
		script   string
		says     string
	}{
		"a line":                       {false, 2, 3, "read x; exit 4", "failed on line 3 of input\n"},
		"a record":                     {true, 1, 2, "read x; exit 4", "failed on line 7 of input\n"},
		"an answer too many":           {true, 1, 2, "cat; echo more", "failed on line 7 of input\n"},
		"one of several":               {false, 2, 4, "read x; exit 4", ""},
		"one that is answered":         {false, 2, 3, "cat; exit 4", ""},
		"a command that reads nothing": {false, 2, 3, "exit 4", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := worldOf(t, "h\n\n1,\"a\nb\"\n\n\n2,c\n3,d\n", c.from, c.to)
			if c.csv {
				w.s.Lines.Format, w.s.Lines.Header = job.CSV, true
			}
			run, said := w.command("sh", "-c", c.script)
			_ = run.Run() // how it ends others look at
			if got := said.String(); c.says == "" && strings.Contains(got, "failed on") || !strings.Contains(got, c.says) {
				t.Errorf("it says %q, want %q", got, c.says)
			}
		})
	}
}
