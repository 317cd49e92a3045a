package forecast

import (
	"cmp"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/quantity"
)

// The size of what is played: so many stretches of so many days, so many devices in each.
const (
	mostStretches = 8
	stretchDays   = 3
	mostDevices   = 16
)

// stretch is whole days of the log on some of its devices.
type stretch struct {
	first, days int // the first day, counted from the log's begin
	devices     []int
}

// sample chooses stretches spread evenly over the log, and for each devices by lot: neither their number nor the order in which anything
// stands in a file has any influence on which.
func (l *Log) sample(seed uint64, most int) (out []stretch) {
	days := l.Days()
	long := min(stretchDays, days)
	n := min(mostStretches, days/long)
	for i := range n {
		s := stretch{days: long}
		if n > 1 {
			s.first = i * (days - long) / (n - 1)
		}
		s.devices = l.draw(seed, uint64(i), l.begins(&s), most)
		out = append(out, s)
	}
	return out
}

// draw is a lot of devices for a stretch, in order. Devices are ranked by how much of it they are free, and one is drawn of each of as many
// equal parts of the ranks: devices that are hardly ever free and those that nobody uses come in the same shares as they have.
func (l *Log) draw(seed, lot uint64, from quantity.Instant, most int) (devices []int) {
	type ranked struct {
		free   time.Duration
		device int
	}
	ranks := make([]ranked, len(l.Devices))
	for i := range l.Devices {
		ranks[i].device = i
		l.Devices[i].gaps(from, from.Add(stretchDays*Day), func(a, b quantity.Instant) { ranks[i].free += b.Sub(a) })
	}
	slices.SortFunc(ranks, func(a, b ranked) int { return cmp.Or(cmp.Compare(a.free, b.free), cmp.Compare(a.device, b.device)) })
	r, n := prng.New(seed, lot), min(most, len(ranks))
	for i := range n {
		first, next := i*len(ranks)/n, (i+1)*len(ranks)/n
		devices = append(devices, ranks[first+r.IntN(next-first)].device)
	}
	slices.Sort(devices)
	return devices
}

// begins is when a stretch begins.
func (l *Log) begins(s *stretch) quantity.Instant { return l.From.Add(Day * time.Duration(s.first)) }
