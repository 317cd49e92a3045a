package timeline

import (
	"fmt"

	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Describe says in words what a reservation does to its time.
func Describe(r *protocol.Reservation) string {
	until := "until further notice"
	if r.End != quantity.Never {
		until = "until " + Clock(r.End)
	}
	who := ""
	switch {
	case r.Job != "":
		who = " for job " + string(r.Job)
	case r.Source != "":
		who = " for " + r.Source
	}
	return fmt.Sprintf("taken (%v)%s from %s %s", r.Kind, who, Clock(r.Start), until)
}

// Clock is an instant for people, in UTC.
func Clock(t quantity.Instant) string {
	if t == quantity.Never {
		return "no end"
	}
	return t.Time().Format("2006-01-02T15:04:05.000Z07:00")
}
