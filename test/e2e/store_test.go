package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// stored is what a store has of jobs: an object for each line.
func (d *daemon) stored(spec string) (list []struct {
	Digest string
	Names  []string
}) {
	d.t.Helper()
	if err := json.Unmarshal([]byte(d.must("store", "ls", "jobs", "--store", spec, "-o", "json")), &list); err != nil {
		d.t.Fatal(err)
	}
	return list
}

// TestWhatIsCommittedIsInTheStore: whenever the daemon dies, what it has told as committed is in the store with the content that was
// published, and what is in the store at the end is that and nothing else. A job that is deleted leaves nothing there that is needed.
func TestWhatIsCommittedIsInTheStore(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, three)
	place := "local:" + filepath.Join(d.dir, "elsewhere")
	d.flags = append(d.flags, "--config", d.write("daemon.yml", "store: "+place+"\n"))
	d.start()
	says(t, d.log.String(), "store: "+place)
	d.must("submit", d.write("job.yaml", spec("counts", "items: {total: 600, perItem: 10ms, grid: 10, parallelism: 3}",
		each("sleep 0.01"))))

	type folder struct {
		Path     string
		From, To int64
	}
	published := func() (list []folder) {
		t.Helper()
		if err := json.Unmarshal([]byte(d.must("output", "counts", "-o", "json")), &list); err != nil {
			t.Fatal(err)
		}
		return list
	}
	// agree holds what is told as committed against the store, without asking the daemon how it got there.
	agree := func() int {
		t.Helper()
		all := published() // first: what is published later is in the store later, too
		var has []string
		for i, o := range d.stored(place) {
			into := filepath.Join(t.TempDir(), "got")
			d.must("store", "get", o.Digest, into, "--store", place)
			units, err := os.ReadFile(filepath.Join(into, "units"))
			if err != nil {
				t.Fatalf("object %d (%s), needed by %v: %v", i, o.Digest, o.Names, err)
			}
			has = append(has, string(units))
		}
		for _, f := range all {
			units, err := os.ReadFile(filepath.Join(f.Path, "units"))
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Contains(has, string(units)) {
				t.Errorf("the output of [%d, %d) is published and not in the store", f.From, f.To)
			}
		}
		return len(all)
	}
	for n := range 3 {
		d.until("more is committed", func() bool { return len(published()) > n })
		d.kill()
		d.start()
		agree()
	}
	d.done("counts")
	d.once("counts", 600)
	if n := agree(); n == 0 {
		t.Error("nothing is published")
	}
	names := 0
	for _, o := range d.stored(place) {
		names += len(o.Names)
	}
	if n := len(published()); names != n {
		t.Errorf("%d outputs are published, and %d are named in the store", n, names)
	}
	d.must("delete", "counts")
	d.until("nothing in the store is needed", func() bool { return len(d.stored(place)) == 0 })
	says(t, d.must("store", "gc", "--dry-run", "--store", place), " 0 names")
	if strings.Contains(d.log.String(), "level=ERROR") {
		t.Errorf("the daemon says\n%s", d.log)
	}
}
