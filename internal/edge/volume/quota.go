package volume

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// LookOwn is Look for the user of this process: of the file system and of its quotas there, what is full or has the least left.
func LookOwn(path string) (State, error) {
	s, err := Look(path)
	if err != nil || os.Geteuid() == 0 { // what Quotas tells of does not bound root
		return s, err
	}
	for _, q := range Quotas(path, uint32(os.Geteuid()), uint32(os.Getegid())) {
		s = tighter(s, q)
	}
	return s, nil
}

// tighter is which of a file system and a quota on it bounds a user.
func tighter(s, quota State) State {
	switch {
	case s.Full(false):
		return s
	case quota.Full(false), quota.Size > 0 && (s.Size == 0 || quota.Free < s.Free):
		return quota
	}
	return s
}

// Name says for people what is bounded: the file system of a path, or a quota there.
func (s State) Name(path string) string {
	switch s.Limit {
	case UserQuota:
		return fmt.Sprintf("the quota of user %d on the file system %s", s.ID, Name(path))
	case GroupQuota:
		return fmt.Sprintf("the quota of group %d on the file system %s", s.ID, Name(path))
	case HiddenQuota:
		return "a quota on the file system " + Name(path)
	case Whole:
	}
	return "the file system " + Name(path)
}

// OverQuota says whether an error means that a quota is used up.
func OverQuota(err error) bool { return errors.Is(err, syscall.EDQUOT) }
