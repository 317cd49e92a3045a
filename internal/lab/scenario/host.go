package scenario

import (
	"time"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/strict"
)

// host reads the host of a scenario, if it has one.
func (s *Scenario) host(v strict.Value) {
	if !v.Given() {
		return
	}
	o := v.Object("planner", "notice", "walltimes", "timeMin", "gaps", "stays", "synthetic", "compose")
	h := &Host{
		Planner: o.Get("planner").Text("a planner such as easy", "easy"),
		Notice:  o.Get("notice").Duration(0, time.Hour, 30*time.Second),
		Least:   o.Get("timeMin").Duration(time.Second, MaxSpan, 10*time.Minute),
	}
	h.Walltimes = o.Get("walltimes").Choice("declared", "none") == 0
	h.Streams = s.streams(o)
	for i := range h.Streams {
		h.Streams[i].Options.Atomizable = 0
	}
	if gaps, stays := o.Get("gaps"), o.Get("stays"); gaps.Given() || stays.Given() {
		if !gaps.Given() || !stays.Given() || len(h.Streams) > 0 {
			v.Wrong("says gaps or stays; want both of them, such as gaps: {uniform: [3m, 20m]} and stays: {fixed: 5m}, and no other work")
			return
		}
		h.Gaps, h.Stays = durations(gaps), durations(stays)
	}
	if w := s.Window; w.Until == quantity.Never || w.Limit == quantity.Never {
		v.Wrong("needs a window with until and limit: the backlog of its fillers is never empty")
	}
	for i := range s.Reservations {
		r := &s.Reservations[i]
		r.Truncate = true // the host owns its slices
		if r.Start < r.At.Add(h.Notice) {
			v.Wrong("has a notice of %s, and the reservation of %s from %s on is announced at %s; announce it earlier", h.Notice, r.Slice,
				time.Duration(r.Start), time.Duration(r.At))
			break
		}
	}
	s.Host = h
}
