package shim

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"sluice.dev/sluice/internal/edge/executor"
)

// notice is the form of notice.json. Uptime is Until by the kernel's clock, in seconds since the machine was started as
// /proc/uptime and CLOCK_BOOTTIME have them, so that a program knows what is left to it even if somebody sets the wall clock.
type notice struct {
	Sequence int64   `json:"sequence"`
	Kind     string  `json:"kind"`
	Until    string  `json:"until"`
	Uptime   float64 `json:"uptime"`
	Why      string  `json:"why"`
}

// WriteNotice tells the program what was done to it.
func (d Dir) WriteNotice(n executor.Notice, a Anchor) error {
	up := (a.Boot + n.Until.Sub(a.Wall)).Truncate(time.Millisecond)
	data, err := json.Marshal(notice{n.Sequence, n.Kind, Deadline(n.Until), float64(up.Milliseconds()) / 1000, n.Why})
	if err == nil {
		err = tryFile(d.Notice(), append(data, '\n'), 0o644)
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", d.Notice(), err)
	}
	return nil
}

// RemoveNotice takes back what the program was told.
func (d Dir) RemoveNotice() error {
	if err := os.Remove(d.Notice()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
