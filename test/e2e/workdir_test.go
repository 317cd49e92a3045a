package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestALargeWorkDirectoryDoesNotEatTheLease: a correct job of items of 8 ms with 2,000 files and 16 MB of work directory ends
// well with the settings as they are, and only its first subjobs wait for the files: on a slow disk until their leases are over.
func TestALargeWorkDirectoryDoesNotEatTheLease(t *testing.T) {
	t.Parallel()
	d := up(t, three)
	work := filepath.Join(d.dir, "work")
	noise := rand.NewChaCha8([32]byte{1})
	for i := range 2000 {
		folder := filepath.Join(work, strconv.Itoa(i/100))
		content := make([]byte, 8<<10)
		_, _ = noise.Read(content)
		if os.MkdirAll(folder, 0o700) != nil || os.WriteFile(filepath.Join(folder, strconv.Itoa(i)), content, 0o600) != nil {
			t.Fatal("the work directory can't be written")
		}
	}
	script := `test $(ls */* | wc -l) -eq 2000 || { echo "files are missing" >&2; exit 3; }
echo spoilt > 3/300; rm -r 4
` + each("sleep 0.008")
	d.must("submit", d.write("job.yaml", spec("large", "items: {total: 800, perItem: 8ms, grid: 10, parallelism: 3}", script,
		"workdir: work")))
	j := d.done("large")
	d.once("large", 800)
	var starts []float64
	for _, s := range j.History {
		if !s.Start.IsZero() {
			starts = append(starts, s.PrepareSeconds)
		}
	}
	if len(starts) == 0 || slices.Min(starts) <= 0 {
		t.Fatalf("what starts took is not told: %v", starts)
	}
	t.Logf("seconds that were gone when each subjob's process began: %.3f", starts)
	says(t, d.must("job", "large", "-o", "wide"), "PREPARE", "before its process begins, as earlier ones took")
	says(t, fmt.Sprint(d.must("status")), "work directory by ")
}

// TestAJobStartsInWhatTheStoreHas: a directory that was put into the daemon's store is a job's work directory by its digest, and one
// that is not there is said so at submission.
func TestAJobStartsInWhatTheStoreHas(t *testing.T) {
	t.Parallel()
	d := up(t, three)
	if err := os.Mkdir(filepath.Join(d.dir, "work"), 0o755); err != nil {
		t.Fatal(err)
	}
	d.write("work/count.sh", each("cat base >> \"$SLUICE_OUTPUT_DIR/said\""))
	d.write("work/base", "from the store\n")
	digest := strings.TrimSpace(d.must("store", "put", filepath.Join(d.dir, "work"), "--data", d.data, "-o", "name"))
	d.must("submit", d.write("job.yaml", spec("stored", "items: {total: 6, perItem: 1ms}", "sh ./count.sh", "workdir: store://"+digest)),
		"--wait")
	d.once("stored", 6)
	says(t, d.must("output", "stored", "--cat"), "from the store")
	says(t, d.must("store", "ls", "--data", d.data), "pinned/"+digest[:20])
	says(t, d.must("store", "ls", "work", "--data", d.data, "-o", "json"), digest)
	d.fails(1, []string{"there is no object " + strings.Repeat("0", 64)}, "submit",
		d.write("none.yaml", spec("none", "items: {total: 6, perItem: 1ms}", "true", "workdir: store://"+strings.Repeat("0", 64))))
	d.fails(2, []string{"want store://DIGEST"}, "submit",
		d.write("bad.yaml", spec("bad", "items: {total: 6, perItem: 1ms}", "true", "workdir: store://x")))
}
