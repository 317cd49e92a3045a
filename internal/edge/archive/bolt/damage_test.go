package bolt

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/archive"
	"sluice.dev/sluice/internal/edge/archive/archivetest"
)

func name(i int) job.ID { return job.ID(fmt.Sprintf("job-%03d", i)) }

// filled makes an archive of n jobs and closes it.
func filled(t testing.TB, n int) (dir string) {
	t.Helper()
	dir = t.TempDir()
	a := reopened(t, dir)
	var parts []archive.Part
	for i := range n {
		p := archivetest.Job(name(i), 2, quantity.Instant(i), quantity.Instant(i+1))
		p[0].Data = append(p[0].Data, bytes.Repeat([]byte{'x'}, 200)...)
		parts = append(parts, p...)
	}
	closing(t, a, a.File(parts))
	return dir
}

func reopened(t testing.TB, dir string) *Archive {
	t.Helper()
	a, err := Open(dir, false)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func closing(t testing.TB, a *Archive, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
}

// rewrite writes a file anew as f makes it.
func rewrite(t testing.TB, dir string, f func([]byte) []byte) {
	t.Helper()
	path := filepath.Join(dir, FileName)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, f(data), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A flipped bit may hide a job behind an error; it never changes one, and a repair brings back all others.
func TestAFlippedBitIsNeverGood(t *testing.T) {
	const jobs = 60
	dir := filled(t, jobs)
	whole, err := os.ReadFile(filepath.Join(dir, FileName))
	if err != nil {
		t.Fatal(err)
	}
	refused, hidden, noticed := 0, 0, 0
	for at := 0; at < len(whole); at += 97 {
		rewrite(t, dir, func([]byte) []byte {
			flipped := bytes.Clone(whole)
			flipped[at] ^= 1 << (at % 8)
			return flipped
		})
		a, err := Open(dir, false)
		if err != nil {
			if errkind.Of(err) != errkind.Corrupt && errkind.Of(err) != errkind.Unsupported {
				t.Fatalf("byte %d: %v", at, err)
			}
			refused++
			continue
		}
		bad := false
		for i := range jobs {
			p, ok, err := a.Recall(protocol.Gate, name(i))
			switch {
			case err != nil && errkind.Of(err) != errkind.Corrupt:
				t.Fatalf("byte %d, %s: %v", at, name(i), err)
			case err != nil:
				bad = true
			case !ok:
				hidden++
			case p.Generation != 2 || p.Entry.Submitted != quantity.Instant(i) ||
				!strings.HasPrefix(string(p.Data), fmt.Sprintf("gate %s 2xxx", name(i))):
				t.Fatalf("byte %d: %s came back as %+v, %q", at, name(i), p.Entry, p.Data)
			}
		}
		if bad {
			noticed++
		}
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if noticed == 0 || refused == 0 {
		t.Errorf("%d refused at the start, %d noticed, %d jobs hidden: nothing was tried", refused, noticed, hidden)
	}
}

// What is said of damage names the file and what to do, and the rest still answers.
func TestADamagedJobIsNamed(t *testing.T) {
	dir := filled(t, 20)
	rewrite(t, dir, func(b []byte) []byte {
		return bytes.ReplaceAll(b, []byte("gate job-007 2xxx"), []byte("gate job-007 3xxx"))
	})
	a := reopened(t, dir)
	_, _, err := a.Recall(protocol.Gate, "job-007")
	if errkind.Of(err) != errkind.Corrupt || !strings.Contains(err.Error(), filepath.Join(dir, FileName)) ||
		!strings.Contains(err.Error(), `"job-007"`) || !strings.Contains(err.Error(), "sluice archive repair") {
		t.Errorf("%v", err)
	}
	if _, ok, err := a.Recall(protocol.Gate, "job-008"); !ok || err != nil {
		t.Errorf("its neighbour: %v, %v", ok, err)
	}
	if err := a.File(archivetest.Job("job-007", 3, 1, 2)); errkind.Of(err) != errkind.Corrupt {
		t.Errorf("what is damaged was replaced: %v", err)
	}
	if err := a.File(archivetest.Job("new", 3, 1, 2)); errkind.Of(err) != errkind.Corrupt {
		t.Errorf("after damage it goes on changing: %v", err)
	}
	closing(t, a, nil)

	r, err := Repair(dir, 0, 0)
	if err != nil || len(r.Damaged) != 1 || !strings.Contains(r.Damaged[0], "job-007") || r.Broken || r.Before.Jobs != 20 ||
		r.After.Jobs != 19 || r.After.Homes != 20 {
		t.Errorf("repair: %v, %+v", err, r)
	}
	a = reopened(t, dir)
	closing(t, a, a.File(archivetest.Job("job-007", 3, 1, 2)))
}

// TestADamagedPlaceHidesNoOther: what the list says of one job is damaged. The others are listed, by pages too, and it is named.
func TestADamagedPlaceHidesNoOther(t *testing.T) {
	dir := t.TempDir()
	a := reopened(t, dir)
	var parts []archive.Part
	for i := range 20 {
		p := archivetest.Job(name(i), 2, quantity.Instant(i), quantity.Instant(i+1))
		p[0].Entry.Queue = fmt.Sprintf("queue-%03d", i)
		parts = append(parts, p...)
	}
	closing(t, a, a.File(parts))
	rewrite(t, dir, func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("queue-007"), []byte("queue-x07")) })
	a = reopened(t, dir)
	for _, n := range []int{1, 2, 3, 50} {
		var got []job.ID
		damaged := ""
		for before := archive.End(); ; {
			p, err := a.Page(before, n, 0, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range p.Entries {
				got = append(got, e.Job)
			}
			for _, err := range p.Damaged {
				if damaged += err.Error(); errkind.Of(err) != errkind.Corrupt {
					t.Errorf("%v", err)
				}
			}
			if p.Done {
				break
			}
			if before = p.Next; len(got) > 20 {
				t.Fatalf("by pages of %d it never ends: %v", n, got)
			}
		}
		if len(got) != 19 || slices.Contains(got, "job-007") || strings.Count(damaged, `"job-007"`) != 1 ||
			!strings.Contains(damaged, "sluice archive repair") {
			t.Errorf("by pages of %d: %v, and %s", n, got, damaged)
		}
	}
	closing(t, a, nil)
}

func TestACutFileIsRefusedAndRepaired(t *testing.T) {
	const jobs = 300
	whole := filled(t, jobs)
	data, err := os.ReadFile(filepath.Join(whole, FileName))
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(whole, FileName))
	if err != nil {
		t.Fatal(err)
	}
	for _, left := range []int64{0, 100, 4096, 5000, 8192, info.Size() / 8, info.Size() / 4} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, FileName), data[:left], 0o600); err != nil {
			t.Fatal(err)
		}
		if a, err := Open(dir, false); errkind.Of(err) != errkind.Corrupt || !strings.Contains(err.Error(), FileName) {
			t.Fatalf("cut to %d bytes of %d: %v, %v", left, info.Size(), a, err)
		}
		r, err := Repair(dir, 7, 0)
		if err != nil || !r.Broken || r.After.GivenUp != 7 {
			t.Fatalf("cut to %d bytes: %v, %+v", left, err, r)
		}
		a := reopened(t, dir)
		size, err := a.Size()
		if err != nil || size.Jobs != r.After.Jobs || left == info.Size()/4 && size.Jobs == 0 {
			t.Errorf("cut to %d bytes: %v, %+v", left, err, size)
		}
		closing(t, a, err)
		if kept, err := os.ReadFile(filepath.Join(dir, Kept)); err != nil || int64(len(kept)) != left {
			t.Errorf("the archive of before: %d bytes, %v", len(kept), err)
		}
	}
}

// A tree whose inner pages are gone gives back what lies in its leaves.
func TestARepairFindsWhatTheTreeHasLost(t *testing.T) {
	const jobs = 300
	dir := filled(t, jobs)
	page := os.Getpagesize()
	broken := 0
	rewrite(t, dir, func(b []byte) []byte {
		for at := 2 * page; at+page <= len(b); at += page {
			if b[at+8] == 1 { // a branch
				clear(b[at+16 : at+page])
				broken++
			}
		}
		return b
	})
	if broken == 0 {
		t.Fatal("the tree has no inner page: more jobs are needed")
	}
	r, err := Repair(dir, 0, 0)
	if err != nil || !r.Broken || r.After.Jobs != jobs || r.After.Homes != jobs {
		t.Fatalf("%v, %+v", err, r)
	}
	a := reopened(t, dir)
	if p, err := a.Page(archive.End(), jobs, 0, nil); err != nil || len(p.Entries) != jobs {
		t.Errorf("%d in the list, %v", len(p.Entries), err)
	}
	closing(t, a, nil)
}

func TestARepairGivesSpaceBack(t *testing.T) {
	dir := filled(t, 2000)
	a := reopened(t, dir)
	var list []archive.Discarded
	for i := range 1990 {
		list = append(list, archive.Discarded{Job: name(i), UpTo: 2})
	}
	if err := a.Discard(list); err != nil {
		t.Fatal(err)
	}
	before, err := a.Size()
	closing(t, a, err)
	if before.Free < before.Bytes/2 {
		t.Errorf("free: %+v", before)
	}
	r, err := Repair(dir, 0, 0)
	if err != nil || r.Broken || len(r.Damaged) > 0 || r.After.Bytes >= before.Bytes/4 || r.After.Jobs != 10 ||
		r.After.Changes < before.Changes {
		t.Errorf("%v, %+v", err, r)
	}
	if _, err := Open(dir, false); err != nil {
		t.Error(err)
	}
}

// A repair makes the lists anew from what was filed, owners included.
func TestARepairKeepsOwners(t *testing.T) {
	dir := filled(t, 3)
	a := reopened(t, dir)
	facts := []protocol.Fact{
		{Kind: protocol.JobAccepted, Job: "hers", Epoch: 1, Generation: 1, At: 7,
			Body: &protocol.Acceptance{Spec: &job.Spec{Queue: "q", Owner: "ada"}, Digest: "d", Zone: "z"}},
		{Kind: protocol.JobClosed, Job: "hers", At: 9, Body: &protocol.Final{Verdict: job.Verdict{State: job.Finished}}},
	}
	p, err := archive.NewPart(protocol.Gate, "hers", 1, facts)
	if err == nil {
		err = a.File([]archive.Part{p})
	}
	closing(t, a, err)
	mine := func(e *archive.Entry) bool { return e.Owner == "ada" }
	for _, repair := range []bool{false, true} {
		if repair {
			if r, err := Repair(dir, 0, 0); err != nil || len(r.Damaged) > 0 {
				t.Fatalf("%v, %+v", err, r)
			}
		}
		a := reopened(t, dir)
		page, err := a.Page(archive.End(), 9, 0, mine)
		if len(page.Entries) != 1 || page.Entries[0].Job != "hers" {
			t.Errorf("repaired %v: of ada are %+v", repair, page.Entries)
		}
		closing(t, a, err)
	}
}

func TestStrangeFilesAreRefused(t *testing.T) {
	dir := filled(t, 3)
	rewrite(t, dir, func(b []byte) []byte { return bytes.ReplaceAll(b, []byte(format), []byte("sluice archive 3")) })
	if _, err := Open(dir, false); errkind.Of(err) != errkind.Unsupported {
		t.Errorf("a newer format: %v", err)
	}
	if _, err := Repair(dir, 0, 0); errkind.Of(err) != errkind.Unsupported {
		t.Errorf("a repair of a newer format: %v", err)
	}
	rewrite(t, dir, func([]byte) []byte { return bytes.Repeat([]byte("no archive at all "), 2000) })
	if _, err := Open(dir, false); errkind.Of(err) != errkind.Corrupt {
		t.Errorf("no archive: %v", err)
	}
}

func TestOneHasIt(t *testing.T) {
	dir := filled(t, 1)
	a := reopened(t, dir)
	if _, err := Open(dir, false); errkind.Of(err) != errkind.Conflict {
		t.Errorf("opened twice: %v", err)
	}
	if _, err := Repair(dir, 0, 0); errkind.Of(err) != errkind.Conflict {
		t.Errorf("repaired while it is open: %v", err)
	}
	closing(t, a, nil)
	closing(t, reopened(t, dir), nil)
}

// TestALockOutlivesItsProcessForAMoment: as long as the file is in the memory of somebody who had it.
func TestALockOutlivesItsProcessForAMoment(t *testing.T) {
	dir := filled(t, 1)
	f, err := os.Open(filepath.Join(dir, FileName))
	if err != nil {
		t.Fatal(err)
	}
	memory, err := syscall.Mmap(int(f.Fd()), 0, 1, syscall.PROT_READ, syscall.MAP_SHARED)
	if err == nil {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(50*time.Millisecond, func() { _ = syscall.Munmap(memory) })
	closing(t, reopened(t, dir), nil)
}

// An archive that must be there is not begun anew, and nothing is made in its place.
func TestAMissingArchiveIsNamed(t *testing.T) {
	dir := t.TempDir()
	for range 2 {
		if _, err := Open(dir, true); errkind.Of(err) != errkind.Corrupt ||
			!strings.Contains(err.Error(), filepath.Join(dir, FileName)+" is missing") {
			t.Fatalf("%v", err)
		}
	}
	if r, err := Repair(dir, 3, 0); err != nil || r.After.GivenUp != 3 {
		t.Fatalf("%+v, %v", r, err)
	}
	a, err := Open(dir, true)
	closing(t, a, err)
}

// What was being made when the process died is no archive, and not in the way.
func TestHalfMadeIsRemoved(t *testing.T) {
	dir := filled(t, 2)
	if err := os.WriteFile(filepath.Join(dir, temporary), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	closing(t, reopened(t, dir), nil)
	if _, err := os.Stat(filepath.Join(dir, temporary)); !os.IsNotExist(err) {
		t.Errorf("it is still there: %v", err)
	}
}
