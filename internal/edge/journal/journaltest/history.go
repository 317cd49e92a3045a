package journaltest

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/journal"
)

// anyHistory draws lives of a journal: batches, snapshots, full disks, proper ends, kills, power cuts, and damage to
// copies of it, which must never pass unnoticed.
func anyHistory(t *testing.T, k Kind) {
	rapid.Check(t, func(r *rapid.T) {
		s, m := k(t), &model{}
		_, fast := s.(Powered)
		var j journal.Journal
		open := func(models ...*model) {
			var err error
			if j, err = s.Open(func(string) {}); err != nil {
				r.Fatal(err)
			}
			h, err := replay(j)
			if err != nil {
				r.Fatal(err)
			}
			for _, one := range models {
				if err = h.equal(one); err == nil {
					m = one
					return
				}
			}
			r.Fatal(err)
		}
		// begun is a snapshot that is being written, and what was.
		var begun journal.Snapshot
		var at journal.Position
		var state []byte
		reopen := func(models ...*model) {
			begun = nil
			open(models...)
		}
		open(m)
		n := 0
		steps := 30
		if !fast {
			steps = 8
		}
		for range rapid.IntRange(0, steps).Draw(r, "steps") {
			b := batch(n, rapid.IntRange(1, 6).Draw(r, "records"))
			n += len(b)
			next := m.clone()
			next.append(b)
			switch rapid.SampledFrom([]string{"append", "append", "append", "snapshot", "snapshot", "write", "write", "give up", "full",
				"end", "kill", "cut", "damage"}).Draw(r, "step") {
			case "append":
				if _, err := j.Append(b); err != nil {
					r.Fatal(err)
				}
				m = next
			case "snapshot":
				if begun == nil {
					var err error
					if begun, err = j.Snapshot(); err != nil {
						r.Fatal(err)
					}
					at, state = m.last(), []byte{}
					continue
				}
				if err := begun.Commit(); err != nil {
					r.Fatal(err)
				}
				m.cover(at, state)
				begun = nil
			case "write":
				if begun == nil {
					continue
				}
				part := bytes.Repeat(rapid.SliceOf(rapid.Byte()).Draw(r, "state"), rapid.IntRange(1, 50).Draw(r, "times"))
				if _, err := begun.Write(part); err != nil {
					r.Fatal(err)
				}
				state = append(state, part...)
			case "give up":
				if begun != nil {
					if err := begun.Abort(); err != nil {
						r.Fatal(err)
					}
					begun = nil
				}
			case "full":
				s.SetRoom(rapid.Int64Range(0, 400).Draw(r, "room"))
				if begun != nil && rapid.Bool().Draw(r, "of the snapshot") {
					part := make([]byte, 700)
					switch _, err := begun.Write(part); {
					case err == nil:
						state = append(state, part...)
					case errkind.Of(err) != errkind.Exhausted:
						r.Fatal(err)
					default:
						if err := begun.Abort(); err != nil {
							r.Fatal(err)
						}
						begun = nil
					}
				}
				_, err := j.Append(b)
				s.SetRoom(-1)
				switch {
				case err == nil:
					m = next
				case errkind.Of(err) != errkind.Exhausted:
					r.Fatal(err)
				}
			case "end":
				if begun != nil {
					if err := begun.Abort(); err != nil {
						r.Fatal(err)
					}
				}
				if err := j.Close(); err != nil {
					r.Fatal(err)
				}
				reopen(m)
			case "kill":
				s = s.Copy() // a killed process leaves what it wrote, and no lock
				reopen(m)
			case "cut":
				p, ok := s.(Powered)
				if !ok {
					continue
				}
				p.CutAfter(rapid.Int64Range(0, 8).Draw(r, "after"))
				models := []*model{m}
				if begun != nil && rapid.Bool().Draw(r, "while it is committed") {
					covered := m.clone()
					covered.cover(at, state)
					if begun.Commit() == nil {
						m = covered
						next = m.clone()
						next.append(b)
						models = []*model{m}
					} else {
						models = append(models, covered)
					}
				}
				for range 3 {
					if len(models) > 1 {
						break // the power is gone
					}
					if _, err := j.Append(b); err != nil {
						models = append(models, next)
						break
					}
					m = next
					models = []*model{m}
					next = m.clone()
					next.append(b)
				}
				s = p.Restart(rapid.Uint64().Draw(r, "seed"))
				reopen(models...)
			case "damage":
				damage(t, r, s, m)
			}
			if err := check(j, m.last()); err != nil {
				r.Fatal(err)
			}
		}
		if begun != nil {
			if err := begun.Abort(); err != nil {
				r.Fatal(err)
			}
		}
		if err := j.Close(); err != nil {
			r.Fatal(err)
		}
		open(m)
		if err := j.Close(); err != nil {
			r.Fatal(err)
		}
	})
}

// damage changes a copy of the store and wants it refused or whole.
func damage(t *testing.T, r *rapid.T, s Store, m *model) {
	c := s.Copy()
	name := rapid.SampledFrom(c.Files()).Draw(r, "file")
	b := c.Get(name)
	if len(b) == 0 {
		return
	}
	bad := bytes.Clone(b)
	switch rapid.SampledFrom([]string{"flip", "cut", "garble"}).Draw(r, "damage") {
	case "flip":
		bad[rapid.IntRange(0, len(b)-1).Draw(r, "byte")] ^= 1 << rapid.IntRange(0, 7).Draw(r, "bit")
	case "cut":
		bad = bad[:rapid.IntRange(0, len(b)-1).Draw(r, "length")]
	case "garble":
		at := rapid.IntRange(0, len(b)-1).Draw(r, "from")
		copy(bad[at:], rapid.SliceOfN(rapid.Byte(), 1, 600).Draw(r, "garbage"))
	}
	c.Rot(name, bad)
	intact(t, c, m, name, "damage to "+name)
}
