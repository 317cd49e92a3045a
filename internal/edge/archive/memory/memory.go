// Package memory keeps the archive in memory, for simulations and tests: it is neither durable nor ever damaged.
package memory

import (
	"bytes"
	"cmp"
	"slices"
	"sync"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/edge/archive"
)

// Archive is one archive in memory.
type Archive struct {
	mu    sync.Mutex
	parts map[key]archive.Part
	// lists, one for each state, and ended are sorted as they are listed; the newest is appended, the oldest removed first.
	lists [job.Impossible + 1][]archive.Entry
	ended []archive.Ended
	// uses counts jobs by their stored work directory.
	uses map[string]int
	size archive.Size
}

type key struct {
	role protocol.Role
	name job.ID
}

var _ archive.Archive = (*Archive)(nil)

// New makes an empty archive.
func New() *Archive { return &Archive{parts: map[key]archive.Part{}, uses: map[string]int{}} }

// File is archive.Archive's.
func (a *Archive) File(parts []archive.Part) error {
	if err := archive.CheckFiling(parts); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	changed := false
	for _, p := range parts {
		changed = a.file(p) || changed
	}
	a.count(changed)
	return nil
}

func (a *Archive) count(changed bool) {
	if changed {
		a.size.Changes++
	}
}

func (a *Archive) file(p archive.Part) bool {
	k := key{p.Role, p.Job}
	was, found := a.parts[k]
	if found && (was.Generation > p.Generation || same(&was, &p)) {
		return false
	}
	if found {
		a.remove(k, &was)
	}
	p = own(p)
	a.parts[k] = p
	a.size.Bytes += int64(len(p.Data))
	if p.Entry == nil {
		a.size.Homes++
		return true
	}
	e := *p.Entry
	a.size.Jobs++
	a.use(e.Workdir, 1)
	list := &a.lists[e.State]
	i, _ := slices.BinarySearchFunc(*list, e, byOrder)
	*list = slices.Insert(*list, i, e)
	end := archive.Ended{At: e.Ended, Job: e.Job, Generation: e.Generation}
	i, _ = slices.BinarySearchFunc(a.ended, end, byEnd)
	a.ended = slices.Insert(a.ended, i, end)
	return true
}

// own is a part that shares nothing with another.
func own(p archive.Part) archive.Part {
	p.Data = bytes.Clone(p.Data)
	if p.Entry != nil {
		e := *p.Entry
		p.Entry = &e
	}
	return p
}

func same(a, b *archive.Part) bool {
	if a.Entry != nil && *a.Entry != *b.Entry {
		return false
	}
	return a.Generation == b.Generation && bytes.Equal(a.Data, b.Data)
}

func (a *Archive) remove(k key, p *archive.Part) {
	delete(a.parts, k)
	a.size.Bytes -= int64(len(p.Data))
	if p.Entry == nil {
		a.size.Homes--
		return
	}
	a.size.Jobs--
	a.use(p.Entry.Workdir, -1)
	list := &a.lists[p.Entry.State]
	if i, found := slices.BinarySearchFunc(*list, *p.Entry, byOrder); found {
		*list = slices.Delete(*list, i, i+1)
	}
	if i, found := slices.BinarySearchFunc(a.ended, archive.Ended{At: p.Entry.Ended, Job: p.Job}, byEnd); found {
		a.ended = slices.Delete(a.ended, i, i+1)
	}
}

func (a *Archive) use(id string, more int) {
	if id == "" {
		return
	}
	if a.uses[id] += more; a.uses[id] == 0 {
		delete(a.uses, id)
	}
}

// NeedsWorkdir is archive.Archive's.
func (a *Archive) NeedsWorkdir(id string) (bool, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.uses[id] > 0, nil
}

func byOrder(a, b archive.Entry) int { return a.Cursor().Compare(b.Cursor()) }

func byEnd(a, b archive.Ended) int {
	return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Job, b.Job))
}

// Recall is archive.Archive's.
func (a *Archive) Recall(role protocol.Role, name job.ID) (archive.Part, bool, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	p, ok := a.parts[key{role, name}]
	return own(p), ok, nil
}

// Discard is archive.Archive's.
func (a *Archive) Discard(list []archive.Discarded) error {
	if err := archive.CheckDiscard(list); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	changed := false
	for _, d := range list {
		for _, role := range []protocol.Role{protocol.Gate, protocol.Zone} {
			k := key{role, d.Job}
			if p, ok := a.parts[k]; ok && p.Generation <= d.UpTo {
				a.remove(k, &p)
				changed = true
			}
		}
	}
	a.count(changed)
	return nil
}

// Page is archive.Archive's.
func (a *Archive) Page(before archive.Cursor, n int, states status.JobStates, keep func(*archive.Entry) bool) (archive.Page, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var at [len(a.lists)]int // how many of each list are left
	for state := range a.lists {
		if states.Has(job.State(state)) {
			at[state], _ = slices.BinarySearchFunc(a.lists[state], before,
				func(e archive.Entry, c archive.Cursor) int { return e.Cursor().Compare(c) })
		}
	}
	page := archive.Page{Next: before}
	for looked := 0; ; looked++ {
		newest := -1
		for state := range at {
			if at[state] > 0 && (newest < 0 || byOrder(a.lists[state][at[state]-1], a.lists[newest][at[newest]-1]) > 0) {
				newest = state
			}
		}
		if page.Done = newest < 0; page.Done || len(page.Entries) == n || looked == archive.MaxLooked {
			return page, nil
		}
		at[newest]--
		e := a.lists[newest][at[newest]]
		page.Next = e.Cursor()
		if keep == nil || keep(&e) {
			page.Entries = append(page.Entries, e)
		}
	}
}

// Outdated is archive.Archive's.
func (a *Archive) Outdated(before quantity.Instant, most int64, n int) ([]archive.Ended, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	beyond := max(0, int64(len(a.ended))-most)
	end := 0
	for end < min(len(a.ended), n) && (int64(end) < beyond || a.ended[end].At < before) {
		end++
	}
	return slices.Clone(a.ended[:end]), nil
}

// Size is archive.Archive's.
func (a *Archive) Size() (archive.Size, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.size, nil
}

// Close is archive.Archive's. Nothing was taken.
func (a *Archive) Close() error { return nil }
