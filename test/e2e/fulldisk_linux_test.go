package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// onSmallDisk puts the data directory onto a disk of its own with so many bytes.
func onSmallDisk(t *testing.T, size int) *daemon {
	t.Helper()
	d := newDaemon(t, three)
	if err := os.Mkdir(d.data, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("sluice-e2e", d.data, "tmpfs", 0, fmt.Sprintf("size=%d", size)); err != nil {
		t.Skipf("skipped: a small disk can't be mounted here: %v", err)
	}
	t.Cleanup(func() {
		d.kill()
		endBelow(d.data)
		if err := syscall.Unmount(d.data, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount %s: %v", d.data, err)
		}
	})
	return d
}

// fill takes all the room there is and returns what gives it back.
func (d *daemon) fill() func() {
	d.t.Helper()
	path := filepath.Join(d.data, "filler")
	f, err := os.Create(path)
	if err != nil {
		d.t.Fatal(err)
	}
	defer f.Close()
	for size := 64 << 10; size > 0; size /= 2 { // to the last byte
		for {
			if _, err := f.Write(make([]byte, size)); err != nil {
				break
			}
		}
	}
	return func() {
		if err := os.Remove(path); err != nil {
			d.t.Fatal(err)
		}
	}
}

func TestFullDisk(t *testing.T) {
	t.Parallel()
	d := onSmallDisk(t, 8<<20)
	d.start()
	d.submit(spec("early", "items: {total: 10, perItem: 1ms}", each(":")), "--wait")
	d.submit(spec("runs", "items: {total: 30, perItem: 150ms, grid: 30}", `sleep 2; echo whole > "$SLUICE_OUTPUT_DIR/o"`))
	d.running("runs", 1)
	room := d.fill()
	var said string
	d.until("a submission is refused", func() bool {
		_, errs, code := d.as([]byte(spec("late", "items: {total: 10, perItem: 1ms}", each(":"), "env: {PADDING: "+strings.Repeat("x", 60000)+"}")), "submit", "-f", "-")
		said = errs
		return code != 0
	})
	says(t, said, "no space")
	d.until("about says it", func() bool { return strings.Contains(d.must("about"), "no space") })
	says(t, d.must("jobs"), "early", "runs") // it still answers
	room()
	if j := d.done("runs"); j.Subjobs != 1 {
		t.Errorf("%d subjobs, %d lost: what ran did not survive\n%s", j.Subjobs, j.Lost, d.must("job", "runs"))
	}
	d.submit(spec("after", "items: {total: 10, perItem: 1ms}", each(":")), "--wait")
	d.until("about is content", func() bool { return !strings.Contains(d.must("about"), "no space") })
	d.kill()
	d.start()
	for _, name := range []string{"early", "after"} {
		d.done(name)
		d.once(name, 10)
	}
}

// A daemon that is started on a full disk says so, or lives on the room left in its last block; both lose nothing.
func TestStartOnAFullDisk(t *testing.T) {
	t.Parallel()
	d := onSmallDisk(t, 4<<20)
	d.start()
	d.submit(spec("early", "items: {total: 10, perItem: 1ms}", each(":")), "--wait")
	d.kill()
	room := d.fill()
	d.launch()
	d.until("the daemon says what is wrong", func() bool { return strings.Contains(d.log.String(), "no space left on device") })
	room()
	d.kill()
	d.start()
	d.done("early")
	d.once("early", 10)
	d.submit(spec("after", "items: {total: 10, perItem: 1ms}", each(":")), "--wait")
	d.once("after", 10)
}
