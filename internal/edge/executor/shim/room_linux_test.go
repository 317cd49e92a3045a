package shim

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/executor/shim/foreign"
	"sluice.dev/sluice/internal/edge/volume"
)

// TestWhoFillsAQuotaThatIsTold: of those whom the quota bounds who took half of what it left at the start is the culprit, whatever the file
// system had free, and whatever others use.
func TestWhoFillsAQuotaThatIsTold(t *testing.T) {
	const mib = 1 << 20
	runs := t.TempDir()
	put := func(seq uint64, uid, gid uint32, bytes int, free Lease) (Dir, *Lease) {
		l := free
		l.Token, l.User = job.Token{Epoch: 1, Seq: seq}, &User{UID: uid, GID: gid}
		l.Free.Disk = foreign.Usage{Bytes: 1 << 50, Files: 1 << 30}
		d := Dir(filepath.Join(runs, l.Token.String()))
		for _, dir := range []string{string(d), d.Output()} {
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		if err := d.Begin(&l); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(d.Output(), "x"), make([]byte, bytes), 0o600); err != nil {
			t.Fatal(err)
		}
		return d, &l
	}
	left := func(user, group int64) Lease {
		return Lease{Free: Free{User: foreign.Usage{Bytes: user, Files: 3}, Group: foreign.Usage{Bytes: group}}}
	}
	large, largeLease := put(1, 7, 70, 3*mib, left(4*mib, 100*mib))
	small, smallLease := put(2, 7, 70, 2*mib, left(4*mib, 100*mib))
	other, otherLease := put(3, 8, 70, 8*mib, left(100*mib, 12*mib))
	user := volume.State{Limit: volume.UserQuota, ID: 7, Size: 100 * mib}
	group := volume.State{Limit: volume.GroupQuota, ID: 70, Size: 200 * mib}
	for _, c := range []struct {
		what string
		d    Dir
		l    *Lease
		s    volume.State
		want string
	}{
		{"the largest of the user", large, largeLease, user, "it filled the quota of user 7 on the file system"},
		{"a smaller one of the user", small, smallLease, user, ""},
		{"the group's, by one that took half of it", other, otherLease, group, "it filled the quota of group 70 on the file system"},
		{"the group's, by one that took little of it", large, largeLease, group, ""},
		{"one that is out of files", small, smallLease, volume.State{Limit: volume.UserQuota, ID: 7, Files: 5}, ""},
		{"the disk, which had much", large, largeLease, volume.State{Size: 1 << 51}, ""},
	} {
		got := c.d.fills(c.l, c.s, 0, false)
		if c.want == "" && got != "" || !strings.Contains(got, c.want) || got != "" && !strings.Contains(got, "where the quota is larger") {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
	}
	if got := large.fills(largeLease, user, 0, false); !strings.Contains(got, "of the 4Mi that were free") {
		t.Errorf("it says %q, and not what the quota left", got)
	}
}

// TestNothingCountsOfWhatIsDiscarded: a folder that can't be moved is removed in its place, after what says how far the subjob came.
func TestNothingCountsOfWhatIsDiscarded(t *testing.T) {
	d := Dir(t.TempDir())
	for _, dir := range []string{d.Output(), d.Checkpoint(), d.ProgressDir()} {
		if err := os.MkdirAll(filepath.Join(dir, "in"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(d.Progress(), []byte(`{"progress":5,"checkpoint":true}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := d.DiscardFolders(); err != nil {
		t.Fatal(err)
	}
	if p, spoke := d.ReadProgress(); spoke {
		t.Errorf("it still says %+v", p)
	}
	for _, dir := range []string{d.Output(), d.Checkpoint()} {
		if there, err := exists(dir); there || err != nil {
			t.Errorf("%s is there: %v, %v", dir, there, err)
		}
	}
}
