package flow

import (
	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/quantity"
)

// Splitter draws the zone that a ticket searches in, from the digests of all zones: in proportion to what each has room for,
// and never the best. Between two digests everybody who draws sees the same numbers, so the best would get all of them
// (adr 0036). Soft: a restarted splitter draws nothing until a digest arrives. Not safe for concurrent use.
type Splitter struct {
	cfg     *Config
	digests []Digest
	// heard is when each digest came, by our own clock: the zone's may differ.
	heard []quantity.Instant
	// tables are by class; drawable says which of them has a live zone.
	tables   [MaxClasses]Alias
	drawable bool
	// rises adds up by class how much room has come since Rises was last asked.
	rises [MaxClasses]int64
	// shares and live are scratch of Rebuild.
	shares []uint64
	live   []bool
}

// NewSplitter draws among a number of zones, all unknown yet. The configuration must be valid, and there are at most MaxZones.
func NewSplitter(cfg *Config, zones int) *Splitter {
	return &Splitter{cfg: cfg, digests: make([]Digest, zones), heard: make([]quantity.Instant, zones), shares: make([]uint64, zones),
		live: make([]bool, zones)}
}

// Zones is how many there are.
func (s *Splitter) Zones() int { return len(s.digests) }

// Digest is the latest of a zone.
func (s *Splitter) Digest(z ZoneID) *Digest { return &s.digests[z] }

// Heard is when the latest digest of a zone came; 0: never.
func (s *Splitter) Heard(z ZoneID) quantity.Instant { return s.heard[z] }

// Hear records a digest; false if the zone is unknown or a newer digest of it is known. It counts from the next Rebuild on.
func (s *Splitter) Hear(now quantity.Instant, d *Digest) bool {
	if int(d.Zone) >= len(s.digests) || d.Version <= s.digests[d.Zone].Version {
		return false
	}
	old := &s.digests[d.Zone]
	for c := range MaxClasses {
		if rise := d.Room(Class(c)) - max(0, old.Room(Class(c))); rise > 0 {
			s.rises[c] += rise
		}
	}
	*old, s.heard[d.Zone] = *d, now
	return true
}

// Rebuild makes the tables anew, once a period: O(zones) for each class, without allocation.
func (s *Splitter) Rebuild(now quantity.Instant) {
	s.drawable = false
	for z := range s.digests {
		s.live[z] = s.Alive(now, ZoneID(z))
	}
	for class := range s.cfg.Classes {
		for z := range s.digests {
			s.shares[z] = 0
			if s.live[z] {
				s.shares[z] = s.cfg.weight(&s.digests[z], Class(class))
			}
		}
		if !s.cfg.shares(s.shares, s.live) {
			return
		}
		s.tables[class].Build(s.shares)
	}
	s.drawable = true
}

// Draw is the next zone for a ticket: one draw of a stream keyed by the ticket and by how many zones it was drawn before, so it does
// not depend on other tickets. It is another zone than where the ticket is, if four tries find one. ok is false if no zone is live.
func (s *Splitter) Draw(t *Ticket) (z ZoneID, ok bool) {
	if !s.drawable {
		return 0, false
	}
	stream := prng.New(s.cfg.Seed, uint64(t.ID), forZone<<32|uint64(t.Episode)<<16|uint64(t.Draws))
	table := &s.tables[t.Class]
	z = table.Draw(&stream)
	for try := 0; try < 3 && t.Draws > 0 && z == t.Zone; try++ {
		z = table.Draw(&stream)
	}
	return z, true
}

// Share is the chance that a zone is drawn for a class, in units of 2^-32/Z of Zones. For people and tests.
func (s *Splitter) Share(class Class, z ZoneID) uint64 {
	if !s.drawable {
		return 0
	}
	return s.tables[class].Share(z)
}

// ShareNow is what a zone would be drawn with for a class if the tables were made now. For people: it takes O(zones).
func (s *Splitter) ShareNow(now quantity.Instant, class Class, z ZoneID) uint64 {
	shares, live := make([]uint64, len(s.digests)), make([]bool, len(s.digests))
	for i := range s.digests {
		if live[i] = s.Alive(now, ZoneID(i)); live[i] {
			shares[i] = s.cfg.weight(&s.digests[i], class)
		}
	}
	if !s.cfg.shares(shares, live) {
		return 0
	}
	return shares[z]
}

// Alive says whether a zone counts as alive: it has spoken, and not too long ago.
func (s *Splitter) Alive(now quantity.Instant, z ZoneID) bool {
	return s.digests[z].Alive && now.Sub(s.heard[z]) <= s.cfg.Stale
}

// What streams are for, beside a ticket's id.
const (
	forZone = 1 + iota
	forHop
	forPace
)
