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
)

const (
	// roomEvery is how often the file system of the run directory is looked at, crowdedLooks how many looks in a row find it full before
	// anybody is ended for it:
	// a program may make room itself.
	roomEvery    = 500 * time.Millisecond
	crowdedLooks = 2
	// recently is how long ago the file system may have been full when a subjob fails for want of room: programs try again, and say
	// goodbye.
	recently = 10 * time.Second
)

// crowding is what is seen of the file system of a run directory while its subjob runs.
type crowding struct {
	dir   shim.Dir
	lease *shim.Lease
	duty  duty
	looks int // in a row that have found it full
	// last is when it was full, and nameless what this subjob had then in open files without a name, in bytes; fills is how it fills it,
	// empty if it does not.
	last     time.Time
	nameless int64
	fills    string
}

// look says what the subjob is to be ended for; empty for nothing.
func (c *crowding) look(members []tree.Member) string {
	if c.lease == nil || !c.duty.due() {
		return ""
	}
	defer c.duty.done(roomEvery)
	if _, full := c.dir.Crowded(c.lease); !full {
		c.looks = 0
		return ""
	}
	c.last, c.nameless = time.Now(), nameless(string(c.dir), members)
	if c.looks++; c.looks < crowdedLooks {
		return ""
	}
	c.fills = c.dir.Fills(c.lease, c.nameless)
	return c.fills
}

// over is what it was like at the end of a subjob whose processes are gone. logged is when there was no room for its log, in Unix
// nanoseconds, 0 if there always was: a look may come too late for a disk that was full for a moment.
func (c *crowding) over(e *shim.Ending, logged int64) {
	e.Fills = c.fills
	if at := time.Unix(0, logged); logged != 0 && at.After(c.last) {
		c.last = at
	}
	if c.last.IsZero() || time.Since(c.last) > recently {
		return
	}
	e.Crowded, e.Nameless = true, c.nameless
}

// nameless is what processes have open on the file system of a path that has no name any more, in bytes of disk.
func nameless(path string, members []tree.Member) (bytes int64) {
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

// patientTries is how often a result is tried to be written before what it says is given up for room: the daemon gives its reserve up
// first.
const patientTries = 4

// makeRoom makes some for a result that could not be written so often: of what nobody needs, and at last of what the subjob wrote, if
// that fills the file system.
// It says whether there may be some now.
func (s *subjob) makeRoom(r *job.Result, tries int) bool {
	switch tries {
	case 1:
		s.dir.Strip()
		return true
	case patientTries:
		why := s.dir.Fills(&s.lease, 0)
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
