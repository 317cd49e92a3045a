package local

import (
	"fmt"
	"io"
	"slices"
	"testing"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/journal"
	"sluice.dev/sluice/internal/edge/journal/journaltest"
)

// A journal that finds no file descriptor for a new segment or a snapshot says so and goes on once there is one. With
// however few of them it is never left in a state that the next start refuses.
func TestWithoutDescriptors(t *testing.T) {
	for left := range 3 {
		for _, rotates := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d left, rotates %v", left, rotates), func(t *testing.T) {
				dir := t.TempDir()
				o := Options{SegmentBytes: 1 << 20}
				if rotates {
					o.SegmentBytes = 1 // every Append begins a segment
				}
				j, err := Open(dir, o)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := j.Replay(nil, func(journal.Position, []byte) error { return nil }); err != nil {
					t.Fatal(err)
				}
				want := []string{"before"}
				put := func(s string) error {
					_, err := j.Append([][]byte{[]byte(s)})
					if err == nil {
						want = append(want, s)
					}
					return err
				}
				if _, err := j.Append([][]byte{[]byte("before")}); err != nil {
					t.Fatal(err)
				}
				feed := journaltest.Starve(t, left)
				snapshot := journaltest.Snapshot(j, []byte("state"))
				first, second := put("starved"), put("still starved")
				feed()
				for what, err := range map[string]error{"Snapshot": snapshot, "Append": first, "Append again": second} {
					if err != nil && errkind.Of(err) != errkind.Exhausted {
						t.Errorf("%s with %d descriptors left: %v (%v)", what, left, err, errkind.Of(err))
					}
				}
				if left == 0 && (snapshot == nil || rotates && first == nil) {
					t.Errorf("no descriptor was missed: snapshot %v, append %v", snapshot, first)
				}
				if err := put("after"); err != nil {
					t.Fatalf("with descriptors again: %v", err)
				}
				if err := j.Close(); err != nil {
					t.Fatal(err)
				}
				j, err = Open(dir, o)
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = j.Close() }()
				var got []string
				if _, err := j.Replay(
					func(io.Reader) error { got = append(got, "before"); return nil },
					func(_ journal.Position, r []byte) error { got = append(got, string(r)); return nil },
				); err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(got, want) {
					t.Errorf("came back: %q, want %q", got, want)
				}
			})
		}
	}
}
