package host

import (
	"context"
	"fmt"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/journal"
	"sluice.dev/sluice/internal/edge/journal/journaltest"
	"sluice.dev/sluice/internal/edge/journal/local"
	"sluice.dev/sluice/internal/edge/tape"
)

// The daemon goes on without a file descriptor for the next segment, the next snapshot and the next tape: what it can't
// make durable it says, and decides once it can.
func TestWithoutDescriptors(t *testing.T) {
	for _, c := range []struct {
		segment int64 // each batch in a segment of its own, or all in one
		noTape  bool  // a tape that begins a new file gives the old one's descriptor back
	}{{1, true}, {1 << 20, true}, {1, false}, {1 << 20, false}} {
		t.Run(fmt.Sprintf("segments of %d bytes, no tape %v", c.segment, c.noTape), func(t *testing.T) {
			r := newRig(t)
			r.options = func(o *Options) {
				o.SnapshotRecords = 1
				o.Tape, o.NoTape = tape.Limits{Segment: 1}, c.noTape
				o.Journal = func(dir string) (journal.Journal, error) {
					return local.Open(dir, local.Options{SegmentBytes: c.segment})
				}
			}
			h, stop := r.start(t)
			submit := func(id job.ID) error {
				_, err := h.Submit(context.Background(), string(id), spec(id), nil)
				return err
			}
			if err := submit("before"); err != nil {
				t.Fatal(err)
			}
			// one that is being taken would be given up for its descriptor
			for _, n := h.daemon.journal.Size(); n > 0; _, n = h.daemon.journal.Size() {
				time.Sleep(time.Millisecond)
			}
			feed := journaltest.Starve(t, 0)
			first, second := submit("a"), submit("b")
			about, err := h.About(context.Background())
			feed()
			if err != nil {
				t.Fatalf("about: %v", err)
			}
			if c.noTape && c.segment == 1 && first == nil && second == nil {
				t.Error("no descriptor was missed")
			}
			for _, err := range []error{first, second} {
				if err != nil && (errkind.Of(err) != errkind.Exhausted || about.Trouble == "") {
					t.Errorf("submitted without descriptors: %v; about says %q", err, about.Trouble)
				}
			}
			for _, id := range []job.ID{"a", "b", "after"} { // with the same request: what was kept is not made twice
				for {
					err := submit(id)
					if err == nil {
						break
					}
					if errkind.Of(err) != errkind.Exhausted {
						t.Fatalf("%s: %v", id, err)
					}
					time.Sleep(10 * time.Millisecond)
				}
			}
			if err := stop(); err != nil {
				t.Fatalf("the daemon stopped: %v", err)
			}
			h, _ = r.start(t)
			for _, id := range []job.ID{"before", "a", "b", "after"} {
				if receipt, err := h.Submit(context.Background(), string(id), spec(id), nil); err != nil || receipt.Created {
					t.Errorf("%s after a restart: %+v, %v", id, receipt, err)
				}
			}
		})
	}
}
