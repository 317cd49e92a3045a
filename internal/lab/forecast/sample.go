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
	// fewestDevices are played at least, of one day, however short the jobs are that would fill them.
	fewestDevices = 4
)

// The times around a stretch: work begins a lead before it, so that it begins in full swing, and the host takes everything a tail after.
const (
	lead = quantity.Instant(time.Hour)
	tail = quantity.Instant(time.Hour)
)

// A run is made smaller until so many jobs fill it, and what takes more of the least run is refused.
const (
	manyJobs = 20_000
	mostJobs = 100_000
)

// deep is how much more work there is at any time than idle time was left until then, in percent.
const deep = 125

// size is how much of the log is played in one run: so many days of so many devices.
type size struct{ days, devices int }

// jobs are how many of this mean work fill it.
func (s size) jobs(mean time.Duration) int64 {
	long := time.Duration(s.days)*Day + time.Duration(lead+tail)
	return int64(s.devices) * (int64(long)*deep/100/int64(max(1, mean)) + 2)
}

// fitting is the largest size, of at most so many devices, that at most so many jobs of this mean work fill: first of fewer days, then of
// fewer devices, and never less than the least that is played.
func fitting(devices int, mean time.Duration, jobs int64) size {
	s := size{stretchDays, devices}
	for s.jobs(mean) > jobs && s.days > 1 {
		s.days--
	}
	for s.jobs(mean) > jobs && s.devices > fewestDevices {
		s.devices--
	}
	return s
}

// stretch is whole days of the log on some of its devices.
type stretch struct {
	first, days int // the first day, counted from the log's begin
	devices     []int
}

// sample chooses stretches spread evenly over the log, and for each devices by lot: neither their number nor the order in which anything
// stands in a file has any influence on which.
func (l *Log) sample(seed uint64, of size) (out []stretch) {
	days := l.Days()
	long := min(of.days, days)
	n := min(mostStretches, days/long)
	for i := range n {
		s := stretch{days: long}
		if n > 1 {
			s.first = i * (days - long) / (n - 1)
		}
		s.devices = l.draw(seed, uint64(i), &s, of.devices)
		out = append(out, s)
	}
	return out
}

// draw is a lot of devices for a stretch, in order. Devices are ranked by how much of it they are free, and one is drawn of each of as many
// equal parts of the ranks: devices that are hardly ever free and those that nobody uses come in the same shares as they have.
func (l *Log) draw(seed, lot uint64, s *stretch, most int) (devices []int) {
	type ranked struct {
		free   time.Duration
		device int
	}
	ranks, from := make([]ranked, len(l.Devices)), l.begins(s)
	for i := range l.Devices {
		ranks[i].device = i
		l.Devices[i].gaps(from, from.Add(time.Duration(s.days)*Day), func(a, b quantity.Instant) { ranks[i].free += b.Sub(a) })
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
