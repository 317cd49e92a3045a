package measure

import "time"

// Lent is what became of pilots over the whole run: how many were asked for, were started by their hosts (granted), were not taken
// (refused), lost their room to others (preempted), or ended otherwise than they should (failed).
type Lent struct {
	Asked, Granted, Refused, Preempted, Failed int64
	// Time is that of all slices of granted pilots, from their starts at their hosts to their ends; Starting what of it passed before their
	// machines had joined, Held what subjobs held, Useful what of that was committed. Room is the time that hosts had for pilots' slices.
	Time, Starting, Held, Useful, Room time.Duration
}

// Set gives the metrics.
func (l *Lent) Set(m *Metrics) {
	m.Set(PilotsAsked, float64(l.Asked))
	m.Set(PilotsGranted, float64(l.Granted))
	m.Set(PilotsRefused, float64(l.Refused))
	m.Set(PilotsPreempted, float64(l.Preempted))
	m.Set(PilotsFailed, float64(l.Failed))
	m.Set(PilotTime, l.Time.Seconds())
	of := func(name string, part time.Duration, whole time.Duration) {
		if whole > 0 {
			m.Set(name, float64(part)/float64(whole))
		}
	}
	of(PilotUseful, l.Useful, l.Time)
	of(PilotIdle, max(0, l.Time-l.Starting-l.Held), l.Time)
	of(PilotStart, l.Starting, l.Time)
	of(GapUseful, l.Useful, l.Room)
}
