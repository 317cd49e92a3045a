package forecast

import (
	"cmp"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
)

// Length is the gaps of a range of lengths.
type Length struct {
	// Under is the length below which a gap is in this row and no row before; 0: all others.
	Under    time.Duration `json:"-"`
	Label    string        `json:"length"`
	Gaps     int64         `json:"gaps"`
	GPUHours float64       `json:"gpuHours"`
	time     deviceTime
}

func lengths() []Length {
	return []Length{
		{Under: time.Minute, Label: "under 1 min"}, {Under: 10 * time.Minute, Label: "1 to 10 min"},
		{Under: time.Hour, Label: "10 min to 1 h"}, {Under: 6 * time.Hour, Label: "1 to 6 h"}, {Under: Day, Label: "6 to 24 h"},
		{Label: "over 24 h"},
	}
}

// Part is the idle time of one partition, kind of device or hour of day.
type Part struct {
	Name string `json:"name"`
	// Devices of it, and how many GPUs they are; 0 for an hour of day.
	Devices int     `json:"devices,omitempty"`
	GPUs    float64 `json:"gpus,omitempty"`
	// GPUHours that lay free; Idle is their share of all time there.
	GPUHours float64 `json:"gpuHours"`
	Idle     float64 `json:"idle"`
	// Kept is the share of it that stays as work under ours and under the best that is free, where it was played; -1 where not.
	Kept float64 `json:"kept"`
	Free float64 `json:"free"`
	time deviceTime
	all  deviceTime
}

// deviceTime is seconds of whole GPUs. A Duration would hold 292 years, which a thousand GPUs pass in 107 days.
type deviceTime float64

func (t deviceTime) hours() float64 { return float64(t) / 3600 }

// over is a time on a device as time of a whole GPU.
func (d *Device) over(long time.Duration) deviceTime { return deviceTime(long.Seconds() * d.gpus()) }

// gpus is the part of a whole GPU that a device is.
func (d *Device) gpus() float64 { return float64(cmp.Or(d.Weight, wholeGPU)) / wholeGPU }

// Gaps are the exact figures of a log. A slice counts as the part of a GPU that it is.
type Gaps struct {
	Days     float64 `json:"days"`
	Devices  int     `json:"devices"`
	GPUs     float64 `json:"gpus"`
	GPUHours float64 `json:"gpuHours"`
	Idle     float64 `json:"idle"`
	Gaps     int64   `json:"gaps"`
	// Starts of jobs on a device: one of 8 devices counts eight times.
	Starts  int64    `json:"starts"`
	Lengths []Length `json:"lengths"`

	Partitions []Part `json:"partitions"`
	Kinds      []Part `json:"kinds"`
	Hours      []Part `json:"hours"`

	total deviceTime
}

// Gaps finds every free interval of every device within the log.
func (l *Log) Gaps() *Gaps {
	g := &Gaps{Days: l.To.Sub(l.From).Hours() / 24, Devices: len(l.Devices), Lengths: lengths(), Hours: make([]Part, 24)}
	partitions, kinds := map[string]*Part{}, map[string]*Part{}
	part := func(of map[string]*Part, name string, d *Device) *Part {
		p := of[name]
		if p == nil {
			p = &Part{Name: name, Kept: -1, Free: -1}
			of[name] = p
		}
		p.Devices++
		p.GPUs += d.gpus()
		p.all += d.over(l.To.Sub(l.From))
		return p
	}
	clock := l.clock()
	for i := range l.Devices {
		d := &l.Devices[i]
		partition, kind := part(partitions, d.Partition, d), part(kinds, d.Kind, d)
		g.GPUs += d.gpus()
		d.gaps(l.From, l.To, func(from, to quantity.Instant) {
			long := to.Sub(from)
			of := d.over(long)
			g.Gaps++
			g.total += of
			partition.time += of
			kind.time += of
			row := slices.IndexFunc(g.Lengths, func(x Length) bool { return x.Under == 0 || long < x.Under })
			g.Lengths[row].Gaps++
			g.Lengths[row].time += of
			clock.spread(from, to, func(hour int, part time.Duration) { g.Hours[hour].time += d.over(part) })
		})
		for _, s := range d.Busy {
			if s.Why == Job && l.From <= s.From && s.From < l.To {
				g.Starts++
			}
		}
	}
	g.GPUHours, g.Idle = g.total.hours(), ratio(float64(g.total), l.To.Sub(l.From).Seconds()*g.GPUs)
	for i := range g.Lengths {
		g.Lengths[i].GPUHours = g.Lengths[i].time.hours()
	}
	clock.spread(l.From, l.To, func(hour int, part time.Duration) { g.Hours[hour].all += deviceTime(part.Seconds() * g.GPUs) })
	for i := range g.Hours {
		g.Hours[i].Name, g.Hours[i].Kept, g.Hours[i].Free = hourName(i), -1, -1
	}
	g.Partitions, g.Kinds = listed(partitions), listed(kinds)
	for _, list := range [][]Part{g.Partitions, g.Kinds, g.Hours} {
		for i := range list {
			list[i].GPUHours, list[i].Idle = list[i].time.hours(), ratio(float64(list[i].time), float64(list[i].all))
		}
	}
	return g
}

// listed puts the parts with the most idle time first.
func listed(of map[string]*Part) []Part {
	out := make([]Part, 0, len(of))
	for _, p := range of {
		out = append(out, *p)
	}
	slices.SortFunc(out, func(a, b Part) int { return cmp.Or(cmp.Compare(b.time, a.time), cmp.Compare(a.Name, b.Name)) })
	return out
}

// ratio of two sums, 0 of nothing.
func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

func hourName(hour int) string { return time.Date(2000, 1, 1, hour, 0, 0, 0, time.UTC).Format("15:04") }

// clock tells the hour of day in a zone.
type clock struct{ zone *time.Location }

func (l *Log) clock() clock { return clock{cmp.Or(l.Zone, time.UTC)} }

// spread calls with the part of [from, to) that lies in each hour of day. Intervals of days are counted by whole days, where a change of
// clocks is an hour's worth of nothing.
func (c clock) spread(from, to quantity.Instant, each func(hour int, part time.Duration)) {
	if n := to.Sub(from) / Day; n > 1 {
		for hour := range 24 {
			each(hour, (n-1)*time.Hour)
		}
		from = from.Add((n - 1) * Day)
	}
	for from < to {
		at := time.Unix(0, int64(from)).In(c.zone)
		rest := time.Hour - time.Duration(at.Minute())*time.Minute - time.Duration(at.Second())*time.Second - time.Duration(at.Nanosecond())
		next := min(to, from.Add(rest))
		each(at.Hour(), next.Sub(from))
		from = next
	}
}
