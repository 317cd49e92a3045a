package watch

import (
	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/executor/shim/tree"
)

// initLife is the init of a subjob: its supervisor ends with it whatever is left.
type initLife struct {
	fd    int
	polls [1]unix.PollFd
}

// findInit finds the init that a row names.
func findInit(row *Row) (life, error) {
	fd, err := unix.PidfdOpen(row.Init, 0)
	if err != nil {
		return nil, errkind.Errorf(errkind.NotFound, "subjob %v: opening process %d: %w", row.Token, row.Init, err)
	}
	// Looked at after opening: the descriptor is of the process that was looked at.
	if p := (tree.Process{PID: row.Init, Started: row.InitStarted}); !p.Alive() {
		_ = unix.Close(fd)
		return nil, errkind.Errorf(errkind.NotFound, "subjob %v: process %d is gone", row.Token, row.Init)
	}
	return &initLife{fd: fd}, nil
}

func (l *initLife) end() error { return unix.PidfdSendSignal(l.fd, unix.SIGKILL, nil, 0) }

func (l *initLife) gone() bool {
	l.polls[0] = unix.PollFd{Fd: int32(l.fd), Events: unix.POLLIN}
	n, err := unix.Poll(l.polls[:], 0)
	return err == nil && n > 0
}

func (l *initLife) close() { _ = unix.Close(l.fd) }

// thawBoth has a subjob go on whichever kind had it stand still.
func thawBoth(row *Row, group string) {
	_ = tree.Thaw(tree.Group(group), tree.Below(row.Init))
}
