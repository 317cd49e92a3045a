package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// homes are the homes of jobs, by name.
func (d *daemon) homes(names []string) map[string]string {
	d.t.Helper()
	at := map[string]string{}
	for _, name := range names {
		var e struct{ Home string }
		if err := json.Unmarshal([]byte(d.must("explain", name, "-o", "json")), &e); err != nil {
			d.t.Fatal(err)
		}
		at[name] = e.Home
	}
	return at
}

// TestAZoneIsDrainedAndLeaves, while jobs run, through kills: nothing is lost or done twice, a start without it is refused for as long as
// it is needed and says what to do, and what was over there is shown and can be run again when it has gone.
func TestAZoneIsDrainedAndLeaves(t *testing.T) {
	t.Parallel()
	for _, mechanism := range []string{"sja", "laminar"} {
		t.Run(mechanism, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "sluice.yml")
			zones := func(text string) {
				t.Helper()
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			zones("zones: 3\n")
			d := up(t, "sim:custom=3,mem=64Mi+64Mi", "--mechanism", mechanism, "--config", file, "--keep-hot", "1ms", "--snapshot-records",
				"100")
			d.must("queue", "set", "default", "--max-window", "2s")
			var names, there []string
			again := "" // is cancelled with a part of it committed, which it may have been too quick for
			for i := 0; len(there) < 2 || len(names) < 8 || again == ""; i++ {
				if i == 200 {
					t.Fatalf("of %d jobs %v have their home in local-2", i, there)
				}
				name := fmt.Sprint("count", i)
				names = append(names, name)
				d.submit(spec(name, "items: {total: 60, perItem: 60ms, grid: 5}", each("sleep 0.05"), "maxFailures: 1000", "grace: 200ms"))
				d.until("its home is known", func() bool { return d.homes([]string{name})[name] != "" })
				if d.homes([]string{name})[name] != "local-2" {
					continue
				}
				there = append(there, name)
				if again == "" {
					d.until("some of a job is committed", func() bool { return d.job(name).Progress > 0 })
					d.sluice("cancel", name)
					if d.over(name).State == "CANCELLED" {
						again = name
					}
				}
			}
			// Somebody at home there runs for so long that the zone is still needed when the daemon is dead.
			long := ""
			for i := 0; long == ""; i++ {
				if i == 50 {
					t.Fatal("no rigid job has its home in local-2")
				}
				name := fmt.Sprint("long", i)
				d.submit(spec(name, "rigid: {walltime: 5m}", d.opened("long")))
				d.until("its home is known", func() bool { return d.homes([]string{name})[name] != "" })
				if d.homes([]string{name})[name] != "local-2" {
					d.must("cancel", name)
					continue
				}
				long = name
				d.until("it runs", func() bool { return d.job(name).State == "RUNNING" })
			}

			d.fails(1, []string{`no zone "nowhere"`, "local-1, local-2, local-3"}, "zones", "drain", "nowhere", "--yes")
			d.fails(2, []string{"for good", "--yes"}, "zones", "drain", "local-2")
			says(t, d.must("zones", "drain", "local-2", "--yes"), "zone local-2 drained")
			d.kill()
			zones("zones: [local-1, local-3]\nnodes: 3\n")
			refusal := d.refused()
			says(t, refusal, "zone local-2 is missing", "zones: [local-1, local-2, local-3]", "zones drain local-2 --wait")
			zones("zones: 3\n")
			d.start()
			says(t, d.must("zones"), "DRAINED")
			d.write("long", "")
			says(t, d.must("zones", "drain", "local-2", "--wait", "--quiet"), "drained, and empty",
				"zones: [local-1, local-3] and nodes: 3")
			d.kill()

			zones("zones: 2\nnodes: 3\n")
			says(t, d.refused(), "zone local-3 is missing", "never drained")
			zones("zones: [local-1, local-3]\n")
			says(t, d.refused(), "node", "nodes: of --config stays what it was")
			zones("zones: [local-1, local-3]\nnodes: 3\n")
			d.start()
			if out := d.must("zones", "-o", "name"); out != "local-1\nlocal-3\n" {
				t.Errorf("zones: %q", out)
			}
			if n := len(d.slices()); n != 6 {
				t.Errorf("%d slices are left of 6", n)
			}
			if j := d.job(again); j.State != "CANCELLED" || j.Progress == 0 {
				t.Errorf("what was over there is %+v", j)
			}
			d.must("requeue", again)
			for name, home := range d.homes(names) {
				if home == "local-2" && !slices.Contains(there, name) || name == again && home == "local-2" {
					t.Errorf("%s has its home in %s", name, home)
				}
			}
			d.kill()
			d.start()
			d.done(long)
			for _, name := range names {
				d.done(name)
				d.once(name, 60)
			}
			d.must("delete", again)
			d.until("its name is free and its files are gone", func() bool {
				_, err := os.Stat(filepath.Join(d.data, "output", again))
				return os.IsNotExist(err) && !strings.Contains(d.must("jobs", "-o", "name"), again+"\n")
			})
			says(t, func() string { _, errs, _ := d.sluice("zones", "drain", "local-2", "--yes"); return errs }(), `no zone "local-2"`)
			says(t, d.must("zones", "drain", "local-3", "--yes"), "drained")
			d.fails(1, []string{"only one that is not drained"}, "zones", "drain", "local-1", "--yes")
		})
	}
}
