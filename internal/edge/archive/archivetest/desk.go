package archivetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/edge/archive"
)

// Store is the place of one archive. Open opens it, and again after Close: a kind that is durable finds what was there.
type Store struct {
	Open func() (archive.Archive, error)
}

// Kind makes the place of an empty archive.
type Kind func(t testing.TB) Store

// desk is one archive under test.
type desk struct {
	testing.TB
	archive.Archive
	store Store
}

func begin(t testing.TB, k Kind) *desk {
	d := &desk{TB: t, store: k(t)}
	d.open()
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func (d *desk) open() {
	d.Helper()
	a, err := d.store.Open()
	if err != nil {
		d.Fatal(err)
	}
	d.Archive = a
}

// reopen closes the archive and opens it again.
func (d *desk) reopen() {
	d.Helper()
	d.must(d.Close())
	d.open()
}

func (d *desk) must(err error) {
	d.Helper()
	if err != nil {
		d.Fatal(err)
	}
}

// Job makes both parts of a finished job.
func Job(name job.ID, g job.Generation, submitted, ended quantity.Instant) []archive.Part {
	e := archive.Entry{Job: name, Generation: g, Queue: "default", State: job.Finished, Submitted: submitted, Ended: ended}
	return []archive.Part{
		{Role: protocol.Gate, Job: name, Generation: g, Entry: &e, Data: fmt.Appendf(nil, "gate %s %d", name, g)},
		{Role: protocol.Zone, Job: name, Generation: g, Data: fmt.Appendf(nil, "zone %s %d", name, g)},
	}
}

func (d *desk) file(parts ...[]archive.Part) {
	d.Helper()
	d.must(d.File(slices.Concat(parts...)))
}

func (d *desk) recall(role protocol.Role, name job.ID) (archive.Part, bool) {
	d.Helper()
	p, ok, err := d.Recall(role, name)
	d.must(err)
	return p, ok
}

func (d *desk) size() archive.Size {
	d.Helper()
	s, err := d.Size()
	d.must(err)
	return s
}

func (d *desk) list(before archive.Cursor, n int, states status.JobStates, keep func(*archive.Entry) bool) archive.Page {
	d.Helper()
	p, err := d.Page(before, n, states, keep)
	d.must(err)
	return p
}

func (d *desk) outdated(before quantity.Instant, most int64, n int) []archive.Ended {
	d.Helper()
	list, err := d.Outdated(before, most, n)
	d.must(err)
	return list
}

func names(entries []archive.Entry) string {
	var all []string
	for _, e := range entries {
		all = append(all, string(e.Job))
	}
	return strings.Join(all, " ")
}
