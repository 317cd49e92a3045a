package space

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/edge/observe"
	"sluice.dev/sluice/internal/host/inbox"
	"sluice.dev/sluice/internal/host/nodes"
	"sluice.dev/sluice/internal/host/trouble"
)

// held watches a directory whose reserve is there.
func held(t *testing.T) (s *Space, there func() bool) {
	dir, log, b := t.TempDir(), slog.New(slog.DiscardHandler), inbox.New(nil)
	s = New(dir, trouble.New(nodes.Nodes{"n"}, b, observe.New(observe.Options{Log: log}), log), log)
	s.Hold()
	return s, func() bool {
		_, err := os.Stat(filepath.Join(dir, ReserveName))
		return err == nil
	}
}

// TestAFullQuotaIsSaid: where the journal meets a quota, what the file system has free is not said to be what is left; the reserve, which
// counts to the quota too, is given up.
func TestAFullQuotaIsSaid(t *testing.T) {
	s, there := held(t)
	s.NoteAppend(fmt.Errorf("append: %w", unix.EDQUOT))
	for range fullLooks {
		s.check()
	}
	short := s.shortage.Load()
	if there() || short == nil {
		t.Fatal("the reserve is kept")
	}
	texts := []string{(*short).Error(), s.Failed(fmt.Errorf("begin a new boot in the journal: %w", unix.EDQUOT), true).Error()}
	for _, text := range texts {
		if !strings.Contains(text, "disk quota exceeded") || !strings.Contains(text, "a quota on the file system") ||
			!strings.Contains(text, "the data directory has") || strings.Contains(text, "are free") ||
			strings.Contains(text, "no space left") {
			t.Errorf("of a quota it says %q", text)
		}
	}
	s.NoteAppend(fmt.Errorf("append: %w", unix.ENOSPC))
	if text := s.Failed(fmt.Errorf("begin a new boot in the journal: %w", unix.ENOSPC), true).Error(); !strings.Contains(text, "are free") {
		t.Errorf("of a full disk it says %q", text)
	}
	s.NoteAppend(nil)
	if s.check(); !there() || s.shortage.Load() != nil {
		t.Error("the reserve is not taken again")
	}
}

// TestOneLookIsNoFullDisk: the reserve is kept until looks in a row have found it full.
func TestOneLookIsNoFullDisk(t *testing.T) {
	s, there := held(t)
	for range 3 * fullLooks {
		for _, full := range []bool{true, false} {
			s.NoteAppend(map[bool]error{true: unix.ENOSPC}[full])
			if s.check(); !there() || s.shortage.Load() != nil {
				t.Fatal("the reserve was given up for one look")
			}
		}
	}
	s.NoteAppend(unix.ENOSPC)
	for range fullLooks {
		s.check()
	}
	if there() || s.shortage.Load() == nil {
		t.Errorf("after %d looks in a row it is kept", fullLooks)
	}
}
