package job

import (
	"fmt"

	"sluice.dev/sluice/internal/core/indices"
)

// UnitName is what a unit is called.
func (s *Spec) UnitName() string {
	if s.Unit == "" {
		return "unit"
	}
	return s.Unit
}

// Called is a unit as people call it, such as "item 50" or "line 51". A task of an array is called by its index.
func (s *Spec) Called(unit int64) string {
	if text := s.Launch.Adapter.Array.Indices; text != "" {
		if l, err := indices.Parse(text); err == nil && unit < int64(len(l.IDs)) { // a list that is accepted is a good one
			return fmt.Sprintf("%s %d", s.UnitName(), l.IDs[unit])
		}
	}
	return fmt.Sprintf("%s %d", s.UnitName(), unit+s.counted())
}

// Span is a range as people read it behind the units' name: [50,60), or 51 to 60 where people count from 1.
func (s *Spec) Span(r Range) string {
	first := s.counted()
	switch {
	case first == 0:
		return r.String()
	case r.Len() == 1:
		return fmt.Sprint(r.From + first)
	}
	return fmt.Sprintf("%d to %d", r.From+first, r.To-1+first)
}

// counted is the number by which people call unit 0. Lines count as in an editor: from 1, and the header is one. Records of CSV may be
// several lines long, with empty ones between them, so they count by themselves, without the header: which line one begins at only its
// file says.
func (s *Spec) counted() int64 {
	switch l := &s.Launch.Adapter.Lines; {
	case l.Input == "":
		return 0
	case l.Format == Text && l.Header:
		return 2
	}
	return 1
}
