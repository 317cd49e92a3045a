package process_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/executor/process"
	"sluice.dev/sluice/internal/edge/executor/shim"
)

// readNotice reads a notice file as a program does; whenever it is there it is whole, and its two ends are one.
func readNotice(t *testing.T, path string) (executor.Notice, bool) {
	t.Helper()
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return executor.Notice{}, false
	}
	var n struct {
		Sequence  int64
		Kind, Why string
		Until     time.Time
		Uptime    float64
	}
	if err = errors.Join(err, json.Unmarshal(data, &n)); err != nil {
		t.Fatalf("notice %q: %v", data, err)
	}
	up, most := time.Duration(n.Uptime*1e9), shim.Boottime()
	left := time.Until(n.Until)
	const apart = 100 * time.Millisecond // that somebody slows the wall clock by, and what is cut off
	if least := up - shim.Boottime(); left < least-apart || left > up-most+apart {
		t.Errorf("notice %q: %v are left by the wall clock, %v since the machine was started", data, left, least)
	}
	return executor.Notice{Sequence: n.Sequence, Kind: n.Kind, Until: quantity.At(n.Until), Why: n.Why}, true
}

// TestAProgramReadsWhatWasDoneToIt where its environment says, without a signal handler.
func TestAProgramReadsWhatWasDoneToIt(t *testing.T) {
	both(t, func(t *testing.T, change func(*process.Options)) {
		b := newBench(t, change)
		b.do(polite(lease(time.Minute, "sh", "-c", `trap "" TERM; echo up
			until grep -q '"kind":"yield"' "$SLUICE_NOTICE_FILE" 2>/dev/null; do sleep 0.02; done
			cat "$SLUICE_NOTICE_FILE" >"$SLUICE_OUTPUT_DIR/notice"; exit 85`)))
		b.next(protocol.Started)
		b.await("the program to ignore SIGTERM", func() bool { return shim.Tail(b.dir().Stdout(), 1, 100) == "up" })
		b.do(protocol.Message{Kind: protocol.Stop, Token: token, Body: &protocol.Halt{Text: `"drained" by <an owner>`}})
		b.exited(job.Yielded)
		if n, _ := readNotice(t, filepath.Join(b.dir().Output(), "notice")); n.Why != `"drained" by <an owner>` || n.Sequence != 1 {
			t.Errorf("the program read %+v", n)
		}
	})
}

// TestANoticeThatCannotBeWrittenHurtsNobody: signals come at their time, and the file once there is room for it.
func TestANoticeThatCannotBeWrittenHurtsNobody(t *testing.T) {
	both(t, func(t *testing.T, change func(*process.Options)) {
		b := newBench(t, change)
		m := polite(lease(time.Minute, self(t, "polite")...))
		b.do(m)
		b.next(protocol.Started)
		b.await("it heeds signals", func() bool {
			p, ok := b.dir().ReadProgress()
			return ok && p.Progress == 5
		})
		// A directory in its place can't be replaced by a file, under any user.
		if err := os.MkdirAll(filepath.Join(b.dir().Notice(), "in the way"), 0o700); err != nil {
			t.Fatal(err)
		}
		end := quantity.At(time.Now()).Add(30 * time.Second)
		b.do(protocol.Message{Kind: protocol.Deadline, Token: token, Body: &protocol.Shift{End: end, Range: m.Body.(*protocol.Work).Range,
			Text: "reclaimed"}})
		b.await("the supervisor says so", func() bool { return strings.Contains(shim.Tail(b.dir().Log(), 9, 4<<10), "can't be told") })
		if err := os.RemoveAll(b.dir().Notice()); err != nil {
			t.Fatal(err)
		}
		b.await("the notice is there", func() bool {
			n, ok := readNotice(t, b.dir().Notice())
			return ok && n.Kind == executor.NoticeTruncated && n.Sequence == 1
		})
		if err := os.Remove(b.dir().Notice()); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(b.dir().Notice(), "in the way"), 0o700); err != nil {
			t.Fatal(err)
		}
		b.do(protocol.Message{Kind: protocol.Stop, Token: token, Body: &protocol.Halt{Text: "drained"}})
		if r := b.exited(job.Yielded); r.Progress != 5 {
			t.Errorf("progress %d, want the 5 items that were complete", r.Progress)
		}
	})
}
