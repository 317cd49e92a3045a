package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// airlockView is what the tests read of a node's Airlock.
type airlockView struct {
	Node, Level, Why string
	At               *string
	Short            bool
	Memory           *struct {
		Level         string
		CapacityBytes int64
		UsedBytes     int64
	}
	SevereBytes int64
	Steps       []struct{ Step, Job, Subjob, Why string }
}

func (d *daemon) airlock() (a airlockView) {
	d.t.Helper()
	out := d.must("airlock", "-o", "json")
	var list []airlockView
	if err := json.Unmarshal([]byte(out), &list); err != nil || len(list) != 1 {
		d.t.Fatalf("%v in %s", err, out)
	}
	return list[0]
}

// TestWhatAirlockDidIsTold: a job runs; then its daemon comes back with lines far below what this machine has in use, whatever that is.
// The job gives way, and who asks is told by which numbers. When the lines are where they were all of it is done, each unit once.
func TestWhatAirlockDidIsTold(t *testing.T) {
	t.Parallel()
	d := up(t, "sim:custom,mem=2Gi")
	normal := d.flags
	var a airlockView
	d.until("the memory was looked at", func() bool { a = d.airlock(); return a.At != nil || a.Level == "off" })
	if a.Level == "off" || a.Level == "observe" {
		t.Skipf("nothing can be suspended here: %s: %s", a.Level, a.Why)
	}
	if a.Memory.CapacityBytes <= 0 || a.Memory.UsedBytes <= 0 || a.SevereBytes*100/a.Memory.CapacityBytes != 91 &&
		a.SevereBytes*100/a.Memory.CapacityBytes != 92 {
		t.Fatalf("it says %+v", a)
	}
	size := a.Memory.CapacityBytes/1000*3>>20 + 1 // MiB; who has less than a thousandth is passed over
	if size > 512 {
		t.Skipf("a thousandth of this machine's memory is %d MiB, and a test is not to take that much", a.Memory.CapacityBytes/1000>>20)
	}
	// The second dd has what the first one gives it for as long as it waits for more.
	hold := fmt.Sprintf("(dd if=/dev/zero bs=1M count=%d 2>/dev/null; exec sleep 1000) | dd bs=%dM count=1 iflag=fullblock of=/dev/null "+
		"2>/dev/null &\n", size, 2*size)
	calm := filepath.Join(d.dir, "calm")
	body := `if [ $i -ge 10 ]; then while [ ! -e '` + calm + `' ]; do sleep 0.1; told; done; fi; touch "$SLUICE_CHECKPOINT_DIR/c"`
	d.submit(spec("hog", "steps: {total: 100, perStep: 100ms, every: 1}",
		hold+`told() { if grep -qs '"kind":"yield"' "$SLUICE_NOTICE_FILE"; then exit 85; fi; }
`+each(body), fmt.Sprintf("memory: %dMi", 2*size+64), "grace: 5s"))
	d.running("hog", 1)
	d.kill()
	d.flags = append(normal[:len(normal):len(normal)], "--config",
		d.write("low.yml", "airlock: {calm: 0.001, severe: 0.002, emergency: 1, timer: 3s}\n"))
	d.start()
	d.until("the job gives way", func() bool { a = d.airlock(); return len(a.Steps) > 0 })
	if s := a.Steps[0]; s.Job != "hog" || s.Step != "suspended" && s.Step != "readdressed" || s.Why != "memory is short" || !a.Short {
		t.Errorf("it says %+v", a)
	}
	d.until("it is told how its subjob ended", func() bool {
		return strings.Contains(d.must("explain", "hog", "-o", "json"), `"step": "ended"`)
	})
	says(t, d.must("explain", "hog"), "MEMORY", "memory is short: severe", "complete up to unit")
	says(t, d.must("top"), "short")
	if n := d.metric(`sluice_airlock_state\{state="severe"\}`); n != 1 {
		t.Errorf("the state severe is %d", n)
	}
	d.kill()
	d.write("calm", "")
	d.flags = append(normal[:len(normal):len(normal)], "--config", d.write("off.yml", "airlock: {kind: off}\n"))
	d.start()
	if a = d.airlock(); a.Level != "off" || a.Memory != nil || len(a.Steps) != 0 {
		t.Errorf("off it says %+v", a)
	}
	d.done("hog")
	d.once("hog", 100)
}

// TestWhatIsBegunIsHeldAgainstTheMachinesMemory: two slices, each with room for a job, on a machine that has not the memory for both. The
// second waits, says why, and does so too for a daemon that comes back; it begins when the first has ended.
func TestWhatIsBegunIsHeldAgainstTheMachinesMemory(t *testing.T) {
	t.Parallel()
	for _, mechanism := range []string{"sja", "laminar"} {
		t.Run(mechanism, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "sluice.yml")
			if err := os.WriteFile(file, []byte("airlock: {memory: 96Mi}\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			d := up(t, "sim:custom,mem=64Mi+64Mi", "--mechanism", mechanism, "--config", file)
			says(t, d.log.String(), "memory: 96Mi for the peaks of 2 slices")
			end := filepath.Join(d.dir, "end")
			waits := "while [ ! -e '" + end + "' ]; do sleep 0.1; done"
			d.submit(spec("first", "rigid: {walltime: 10m}", waits, "memory: 60Mi"))
			d.running("first", 1)
			d.submit(spec("second", "rigid: {walltime: 10m}", ":", "memory: 60Mi"))
			why := func() string { return d.must("explain", "second") }
			d.until("the second says why it waits", func() bool { return strings.Contains(why(), "its host's memory bears 32") })
			if j := d.job("second"); j.Subjobs != 0 {
				t.Errorf("it began: %+v", j)
			}
			d.submit(spec("small", "rigid: {walltime: 10m}", ":", "memory: 20Mi"))
			d.done("small") // beside the first there is room for it
			d.kill()
			d.start()
			d.until("the second says why it waits", func() bool { return strings.Contains(why(), "its host's memory bears 32") })
			if j := d.job("second"); j.Subjobs != 0 {
				t.Errorf("it began: %+v", j)
			}
			d.write("end", "")
			d.done("first")
			d.done("second")
			says(t, d.must("sim", "replay", d.data), "all equal")
		})
	}
}
