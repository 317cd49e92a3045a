package survival

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/core/errkind"
)

// Fail is the error of an act on a subjob for what the kernel says.
func Fail(s *Subjob, doing string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENODEV), errors.Is(err, unix.ESRCH):
		return errkind.Errorf(errkind.NotFound, "%s subjob %v: it is gone", doing, s.Token)
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM), errors.Is(err, unix.EROFS):
		return errkind.Errorf(errkind.Denied, "%s subjob %v: %w", doing, s.Token, err)
	}
	return fmt.Errorf("%s subjob %v: %w", doing, s.Token, err)
}
