package live

import (
	"strings"

	"sluice.dev/sluice/internal/lab/history/record"
)

// rowKey is what tells a row from others. Of a run that goes on its length changes with every look, which is nothing new. ok is false
// for an empty line, and for steps, of which only the batch script's tells something: when the run ended. A row with too many or too few
// fields is a row: whoever reads the record says so.
func rowKey(header []string, line string) (key string, ok bool) {
	fields := strings.Split(line, record.Delimiter)
	if len(fields) != len(header) {
		return line, strings.TrimSpace(line) != ""
	}
	var steady []string
	over := false
	for i, name := range header {
		switch name {
		case "JobIDRaw":
			_, step, is := strings.Cut(fields[i], ".")
			if is && step != "batch" {
				return "", false
			}
		case "End":
			over = fields[i] != "Unknown" && fields[i] != ""
		case "Elapsed", "Suspended":
			continue
		}
		steady = append(steady, fields[i])
	}
	if over {
		return line, true
	}
	return strings.Join(steady, record.Delimiter), true
}
