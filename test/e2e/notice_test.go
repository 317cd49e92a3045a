package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// A provider takes the slice, and the daemon dies. The program has no handler, and is told by the file alone what is done to it, and why.
func TestReclaimedWorkIsToldWhy(t *testing.T) {
	t.Parallel()
	d := up(t, "sim:custom,mem=64Mi+64Mi")
	d.submit(spec("told", "steps: {total: 200, perStep: 150ms, every: 1}", say+`trap '' TERM
i=$SLUICE_FROM; while [ $i -lt $SLUICE_TO ]; do [ -n "$SLUICE_RESUME_DIR" ] || sleep 0.15
	echo $i >> "$SLUICE_OUTPUT_DIR/units"; i=$((i+1)); echo $i > "$SLUICE_CHECKPOINT_DIR/c"; say $i
	if grep -qs '"kind":"yield"' "$SLUICE_NOTICE_FILE"; then cp "$SLUICE_NOTICE_FILE" "$SLUICE_OUTPUT_DIR/notice"; exit 85; fi
done`, "grace: 3s"))
	d.running("told", 1)
	d.must("reserve", d.job("told").History[0].Slice, "--kind", "reclaim", "--start", "+6s", "--truncate")
	d.until("the program is told of the cut", func() bool {
		files, _ := filepath.Glob(filepath.Join(d.data, "runs", "*", "notice.json"))
		return len(files) > 0
	})
	d.kill()
	time.Sleep(4 * time.Second) // SIGTERM comes meanwhile
	d.start()
	j := d.done("told")
	d.once("told", 200)
	if first := j.History[0]; first.Outcome != "yielded" {
		t.Fatalf("the subjob on the reclaimed slice: %s %s", first.Outcome, first.Detail)
	}
	notices, _ := filepath.Glob(filepath.Join(d.data, "output", "told", "*", "notice"))
	if len(notices) == 0 {
		t.Fatal("no notice was kept")
	}
	data, err := os.ReadFile(notices[0])
	if err != nil {
		t.Fatal(err)
	}
	var n struct {
		Why      string
		Sequence int
	}
	if err := json.Unmarshal(data, &n); err != nil || n.Sequence != 2 {
		t.Fatalf("%v in %s, want the second notice", err, data)
	}
	says(t, n.Why, "time taken (reclaim)")
}

// A job declares its second half as the large one, and it is the first. The small slice, the only one that is to be had, is tried once;
// the job waits for the large one.
func TestAnOutgrownSliceIsTriedOnce(t *testing.T) {
	t.Parallel()
	d := up(t, "sim:custom,mem=64Mi+512Mi")
	list := d.slices()
	large := list[slices.IndexFunc(list, func(s sliceView) bool { return strings.Contains(s.ID, "512Mi") })].ID
	d.must("pause", large, "--for", "1h")
	d.submit(spec("hog", "items: {total: 4, perItem: 3s}",
		each(`[ $i -ge 2 ] || head -c 90000000 /dev/zero | tail -c 90000000 | sleep 0.5`),
		"memory: {phases: [{upTo: 2, mean: 8Mi}, {mean: 48Mi}]}"))
	killed := func(j jobView) (n int) {
		for _, s := range j.History {
			if s.Outcome == "memory" {
				n++
			}
		}
		return n
	}
	d.until("it was killed", func() bool { return killed(d.job("hog")) > 0 })
	time.Sleep(2 * time.Second)
	d.must("resume", large)
	if j := d.done("hog"); killed(j) != 1 {
		t.Errorf("it was killed %d times for its memory:\n%s", killed(j), d.must("job", "hog"))
	}
	d.once("hog", 4)
}
