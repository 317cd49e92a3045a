package measure

import "time"

// LongResident is how long a subjob has run that counts as resident for long.
const LongResident = time.Minute

// Survival is what became of subjobs where their hosts' memory ran out, over the whole run.
type Survival struct {
	// Suspended, went on (Recovered), was asked to yield (Readdressed), was ended by its node (Reclaimed), or by anybody for memory
	// (Killed).
	Suspended, Recovered, Readdressed, Reclaimed, Killed int64
	// HighValueLost are kills of what had a priority above 0 and was resident for long; WrongOrder are kills while something ranked lower
	// lived.
	HighValueLost, WrongOrder int64
	// WorkLost with kills, on all slices; OverLine is time in which a host was over the severe line, of all hosts.
	WorkLost, OverLine time.Duration
	// Stalled is slice-time in which a subjob was suspended, or waited for its memory to come out of swap or for others to make room.
	Stalled time.Duration
}

// Set gives the metrics.
func (s *Survival) Set(m *Metrics) {
	m.Set(HighValueLost, float64(s.HighValueLost))
	m.Set(WrongOrderKills, float64(s.WrongOrder))
	m.Set(WorkLost, s.WorkLost.Seconds())
	m.Set(TimeOverLine, s.OverLine.Seconds())
	m.Set(Stalled, s.Stalled.Seconds())
	m.Set(MemoryKills, float64(s.Killed))
	m.Set(Suspended, float64(s.Suspended))
	m.Set(Recovered, float64(s.Recovered))
	m.Set(Readdressed, float64(s.Readdressed))
	m.Set(Reclaimed, float64(s.Reclaimed))
}
