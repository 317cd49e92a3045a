package supervisor

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/executor/shim/tree"
	"sluice.dev/sluice/internal/edge/volume"
)

const (
	// roomEvery is how often the supervisor looks whether the disk is full. fullLooks in a row must find it full before the culprit is
	// ended: a program may free room itself.
	roomEvery = 500 * time.Millisecond
	fullLooks = 2
	// recently is for how long after the disk was full a failure still counts as caused by that: programs retry before they give up.
	recently = 10 * time.Second
)

// diskWatch observes the file system of a run directory while its subjob runs.
type diskWatch struct {
	dir   shim.Dir
	lease *shim.Lease
	duty  duty
	looks int // in a row that have found it full
	// last is when it was full, short what was, and unlinked how many bytes this subjob had then in open files without a name. fills is how
	// this subjob fills it, "" if it is not the culprit.
	last     time.Time
	short    volume.State
	unlinked int64
	fills    string
}

// look returns why the subjob must be ended for filling the disk, else "".
func (c *diskWatch) look(members []tree.Member) string {
	if c.lease == nil || !c.duty.due() {
		return ""
	}
	defer c.duty.done(roomEvery)
	short, full := c.dir.DiskFull(c.lease)
	if !full {
		c.looks = 0
		return ""
	}
	c.last, c.short, c.unlinked = time.Now(), short, unlinked(string(c.dir), members)
	if c.looks++; c.looks < fullLooks {
		return ""
	}
	c.fills = c.dir.Fills(c.lease, short, c.unlinked, false)
	return c.fills
}

// over fills in what is known of the disk at the end of a subjob whose processes are gone. logged is when its log last met a full disk, in
// Unix nanoseconds, 0 if never: looks may miss a disk that was full for a moment. quota: what it met was a quota.
func (c *diskWatch) over(e *shim.Ending, logged int64, quota bool) {
	e.Fills = c.fills
	if at := time.Unix(0, logged); logged != 0 && at.After(c.last) {
		if c.last = at; quota && c.short.Limit == volume.Whole {
			c.short = volume.State{Limit: volume.HiddenQuota}
		}
	}
	if c.last.IsZero() || time.Since(c.last) > recently {
		return
	}
	e.DiskFull, e.Short, e.Unlinked = true, c.short, c.unlinked
}

// unlinked is how many bytes of disk processes hold in open files without a name, on the file system of a path.
func unlinked(path string, members []tree.Member) (bytes int64) {
	var here, st unix.Stat_t
	if unix.Stat(path, &here) != nil {
		return 0
	}
	seen := map[uint64]bool{}
	for _, m := range members {
		fds := fmt.Sprintf("/proc/%d/fd", m.PID)
		entries, err := os.ReadDir(fds)
		if err != nil {
			continue // it is gone, or not ours to look at
		}
		for _, e := range entries {
			err := unix.Stat(filepath.Join(fds, e.Name()), &st)
			if err == nil && st.Dev == here.Dev && st.Nlink == 0 && st.Mode&unix.S_IFMT == unix.S_IFREG && !seen[st.Ino] {
				seen[st.Ino] = true
				bytes += st.Blocks * 512
			}
		}
	}
	return bytes
}

// triesBeforeForfeit is how often writing a result fails for a full disk before the culprit forfeits what it wrote. Until then the daemon
// may have released its reserve file.
const triesBeforeForfeit = 4

// makeRoom frees room for a result that could not be written for want of it, by how often that was tried: first it removes what nobody
// needs, then what the subjob wrote if nothing of it counts, and at last if it is the culprit. It says whether there may be room now.
func (s *subjob) makeRoom(r *job.Result, tries int, want error) bool {
	switch tries {
	case 1:
		s.dir.Strip()
		return true
	case triesBeforeForfeit - 1:
		if r.Progress > s.lease.Range.From || r.Checkpoint || r.Outcome == job.Done || r.Outcome == job.Yielded {
			return false
		}
		if err := s.dir.DiscardFolders(); err != nil {
			s.log.Error("removing what does not count from a full disk", "err", err)
		}
		return true
	case triesBeforeForfeit:
		var seen volume.State
		if volume.OverQuota(want) {
			seen.Limit = volume.HiddenQuota
		}
		why := s.dir.Fills(&s.lease, seen, 0, true)
		if why == "" {
			return false
		}
		if err := s.dir.Forfeit(&s.lease, r, why); err != nil {
			s.log.Error("removing what fills the disk", "err", err)
		}
		return true
	}
	return false
}
