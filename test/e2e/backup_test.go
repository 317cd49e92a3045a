package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// operations is a section of docs/operations.md, by its heading.
func operations(t *testing.T, heading string) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(page), "\n## "+heading+"\n")
	if !found {
		t.Fatalf("docs/operations.md has no section %q", heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	return section
}

// blocks are the commands of a section.
func blocks(section string) (all []string) {
	for _, m := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(section, -1) {
		all = append(all, m[1])
	}
	return all
}

// smallest are the names that the smallest backup has.
func smallest(t *testing.T, section string) (names []string) {
	t.Helper()
	_, list, found := strings.Cut(section, "<!-- backup: the smallest -->")
	list, _, ended := strings.Cut(list, "<!-- end -->")
	if !found || !ended {
		t.Fatal("docs/operations.md does not mark the list of the smallest backup")
	}
	for _, m := range regexp.MustCompile("(?m)^- `([^`]+)`$").FindAllStringSubmatch(list, -1) {
		names = append(names, strings.TrimSuffix(m[1], "/"))
	}
	return names
}

// withHistory is a daemon with jobs that are done, that failed and that run, of which two are in the archive, and one has had two lives.
func withHistory(t *testing.T) *daemon {
	t.Helper()
	d := newDaemon(t, "sim:custom,mem=64Mi+64Mi", "--keep-hot", "1ms")
	d.start()
	d.submit(tiny("filed"))
	d.submit(spec("bad", "items: {total: 4, perItem: 1ms, grid: 1}", each(`[ $i -lt 2 ] || exit 3`), "maxFailures: 1", "grace: 200ms"))
	d.done("filed")
	if j := d.over("bad"); j.State != "FAILED" {
		t.Fatalf("%+v", j)
	}
	d.archived(2)
	d.end(syscall.SIGTERM)
	d.flags = d.flags[:2]
	d.start() // jobs that are over stay where they are from now on
	d.submit(tiny("done"))
	d.done("done")
	d.submit(tiny("twice"))
	d.done("twice")
	d.submit(tiny("twice"), "--replace", "--wait")
	// One job is held with a part of it committed, and one runs until a file says otherwise.
	d.submit(spec("partly", "steps: {total: 6, every: 1, perStep: 1m}", say+`i=$SLUICE_FROM; while [ $i -lt $SLUICE_TO ]; do
		echo $i >> "$SLUICE_OUTPUT_DIR/units"; i=$((i+1)); echo $i > "$SLUICE_CHECKPOINT_DIR/at"; say $i
		if [ $i = 2 ]; then touch `+d.dir+`/two; while ! [ -e `+d.dir+`/yield ]; do sleep 0.05; done; exit 85; fi
		done`, "grace: 200ms"))
	d.until("two steps are done", func() bool { _, err := os.Lstat(filepath.Join(d.dir, "two")); return err == nil })
	d.must("pause", "partly")
	d.write("yield", "")
	d.until("they are committed", func() bool { return d.job("partly").Progress == 2 })
	d.submit(spec("works", "rigid: {walltime: 1h}",
		`while ! [ -e `+d.dir+`/goon ]; do sleep 0.05; done; echo 0 > "$SLUICE_OUTPUT_DIR/units"`, "grace: 200ms"))
	d.running("works", 1)
	return d
}

// tale is what a daemon tells of its jobs, with what it has in files; paths begin at the data directory.
func (d *daemon) tale() map[string]string {
	d.t.Helper()
	said := map[string]string{}
	for _, name := range []string{"filed", "bad", "done", "twice", "partly"} {
		said["job "+name] = d.must("job", name, "-o", "json")
		said["output "+name] = strings.ReplaceAll(d.must("output", name, "-o", "json"), d.data, "DATA")
		said["files of "+name] = d.must("output", name, "--cat")
	}
	var states []string
	for _, j := range d.list() {
		if j.Name == "works" { // in a copy it waits, until it runs again
			j.State = "not over"
		}
		states = append(states, j.Name+" "+j.State)
	}
	slices.Sort(states)
	said["jobs"] = strings.Join(states, ", ")
	return said
}

// copyOf is a daemon on a copy of another one's data directory, which must tell the same and finish what ran.
func (d *daemon) copyOf(t *testing.T, data string, want map[string]string) *daemon {
	t.Helper()
	c := newDaemon(t, d.flags[1])
	c.data = data
	c.start()
	got := c.tale()
	for what, text := range want {
		if got[what] != text {
			t.Errorf("the copy says of %s:\n%s\nand not\n%s", what, got[what], text)
		}
	}
	if len(got) != len(want) {
		t.Errorf("the copy tells %d things, want %d", len(got), len(want))
	}
	if err := os.WriteFile(filepath.Join(d.dir, "goon"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c.done("works")
	c.must("resume", "partly")
	c.done("partly")
	c.once("partly", 6)
	c.end(syscall.SIGTERM)
	remove(t, filepath.Join(d.dir, "goon"))
	return c
}

// TestABackupRestores follows docs/operations.md to the letter: the commands, the smallest list, and the copy at one instant. Each is
// started in a place of its own, and tells of jobs, history and output what the original told.
func TestABackupRestores(t *testing.T) {
	t.Parallel()
	section := operations(t, "Backup and restore")
	d := withHistory(t)
	want := d.tale()
	logs := d.must("logs", "done")
	d.end(syscall.SIGTERM)

	t.Run("nothing is left out of the page", func(t *testing.T) {
		table := operations(t, "The data directory")
		list, err := os.ReadDir(d.data)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list {
			if name := e.Name(); !strings.Contains(table, "`"+name+"`") && !strings.Contains(table, "`"+name+"/") {
				t.Errorf("docs/operations.md says nothing of %s", name)
			}
		}
	})
	t.Run("by the commands", func(t *testing.T) {
		commands := blocks(section)
		if len(commands) != 2 {
			t.Fatalf("the page has %d blocks of commands, want one to copy and one to restore", len(commands))
		}
		backup, restored := t.TempDir(), filepath.Join(t.TempDir(), "restored")
		for _, text := range commands {
			c := exec.Command("sh", "-ec", text)
			c.Env = append(os.Environ(), "DATA="+d.data, "BACKUP="+backup, "RESTORED="+restored)
			if out, err := c.CombinedOutput(); err != nil || len(out) > 0 {
				t.Fatalf("%s: %v\n%s", text, err, out)
			}
		}
		c := d.copyOf(t, restored, want)
		c.start()
		if got := c.must("logs", "done"); got != logs {
			t.Errorf("logs: %q, want %q", got, logs)
		}
	})
	t.Run("the smallest", func(t *testing.T) {
		restored := filepath.Join(t.TempDir(), "restored")
		if err := os.Mkdir(restored, 0o700); err != nil {
			t.Fatal(err)
		}
		for _, name := range smallest(t, section) {
			if _, err := os.Lstat(filepath.Join(d.data, name)); err != nil {
				continue
			}
			if out, err := exec.Command("cp", "-a", filepath.Join(d.data, name), restored).CombinedOutput(); err != nil {
				t.Fatalf("%s: %v\n%s", name, err, out)
			}
		}
		d.copyOf(t, restored, want)
	})
	t.Run("at one instant", func(t *testing.T) {
		d.start()
		d.kill()
		endBelow(d.data) // as everything ends with the power
		restored := filepath.Join(t.TempDir(), "restored")
		if out, err := exec.Command("cp", "-a", d.data, restored).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		d.copyOf(t, restored, want)
	})
}
