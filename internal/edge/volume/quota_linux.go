package volume

import (
	"math"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// diskQuota is struct if_dqblk of linux/quota.h.
type diskQuota struct {
	// Limits and use in blocks of 1 KiB, but for bytes in bytes; 0: no limit. A soft limit holds from bytesUntil or filesUntil on, in Unix
	// seconds; 0: it is not passed.
	hardBlocks, softBlocks, bytes uint64
	hardFiles, softFiles, files   uint64
	bytesUntil, filesUntil        uint64
	valid                         uint32
}

// getQuota is Q_GETQUOTA of linux/quota.h; the kind, 0 for users and 1 for groups, is its last byte.
const getQuota = 0x800007 << 8

// Quotas are those that a user and a group have on the file system of a path, as far as the kernel tells: it needs Linux 5.14, and a file
// system that has its quotas from the kernel (ext4, XFS, tmpfs). A project's quota is none of them: it is what Look says of its folder.
func Quotas(path string, uid, gid uint32) (all []State) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	defer func() { _ = unix.Close(fd) }()
	for kind, id := range []uint32{uid, gid} {
		var q diskQuota
		_, _, failed := unix.Syscall6(unix.SYS_QUOTACTL_FD, uintptr(fd), uintptr(getQuota|kind), uintptr(id),
			uintptr(unsafe.Pointer(&q)), 0, 0)
		if failed != 0 {
			continue
		}
		if s := q.state(time.Now()); s.Size > 0 || s.Files > 0 {
			s.Limit, s.ID = UserQuota+Limit(kind), id
			all = append(all, s)
		}
	}
	return all
}

// state is what a quota means now.
func (q *diskQuota) state(now time.Time) (s State) {
	var used int64
	s.Size, used = bound(q.hardBlocks, q.softBlocks, q.bytesUntil, now)*1024, int64(min(q.bytes, math.MaxInt64))
	s.Free = max(0, s.Size-used)
	s.Files, used = bound(q.hardFiles, q.softFiles, q.filesUntil, now), int64(min(q.files, math.MaxInt64))
	s.FreeFiles = max(0, s.Files-used)
	return s
}

// bound is the limit that holds now: the soft one only once it was passed for too long; 0: none.
func bound(hard, soft, until uint64, now time.Time) int64 {
	if soft > 0 && until > 0 && now.Unix() >= int64(min(until, math.MaxInt64)) && (hard == 0 || soft < hard) {
		hard = soft
	}
	if hard > math.MaxInt64/1024 {
		return 0
	}
	return int64(hard)
}
