package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// node is the name in front of the slices of a daemon of one node.
func (d *daemon) node() string {
	d.t.Helper()
	name := ""
	for _, s := range d.slices() {
		owner, _, _ := strings.Cut(s.ID, "/")
		if name != "" && owner != name {
			d.t.Fatalf("slices of %s and of %s", name, owner)
		}
		name = owner
	}
	return name
}

// again kills the daemon and starts it with further flags.
func (d *daemon) again(flags ...string) {
	d.t.Helper()
	was := d.flags
	d.kill()
	d.flags = append(slices.Clone(was), flags...)
	d.start()
	d.flags = was
}

// called is a daemon with a subjob that runs until a file is there, a reservation, a slice that is paused, and jobs that are over, of
// which one is in the archive.
func called(t *testing.T, name string, flags ...string) (d *daemon, release func()) {
	t.Helper()
	d = newDaemon(t, "sim:custom=2,mem=64Mi+64Mi", append([]string{"--keep-hot", "1ms", "--snapshot-records", "60"}, flags...)...)
	d.again("--name", name)
	d.submit(tiny("filed"))
	d.done("filed")
	d.archived(1)
	d.submit(spec("runs", "rigid: {walltime: 1h}",
		`while ! [ -e `+d.dir+`/goon ]; do sleep 0.05; done; echo 0 > "$SLUICE_OUTPUT_DIR/units"`, "grace: 200ms"))
	d.running("runs", 1)
	for _, s := range d.slices() {
		if s.State == "idle" {
			d.must("pause", s.ID, "--for", "10h")
			break
		}
	}
	return d, func() { d.write("goon", "") }
}

// renamed is a text in which the node and its slices have another name.
func renamed(text, was, is string) string {
	return strings.NewReplacer(was+"/", is+"/", `"node": "`+was+`"`, `"node": "`+is+`"`).Replace(text)
}

// TestAMachineIsRenamed: with --name the slices have another name, with all that is reserved, runs and has run there, in the archive too.
// It is kept without --name; a rename back is one; and a tape of each boot plays.
func TestAMachineIsRenamed(t *testing.T) {
	t.Parallel()
	d, release := called(t, "first")
	if got := d.node(); got != "first" {
		t.Fatalf("it is called %s", got)
	}
	tell := func() map[string]string {
		said := map[string]string{"filed": d.must("job", "filed", "-o", "json"), "slices": d.must("slices", "-o", "json")}
		if j := d.job("runs"); len(j.History) != 1 || !j.History[0].Running || j.Lost != 0 {
			t.Errorf("what ran does not: %+v", j)
		} else {
			said["runs"] = j.History[0].Subjob + " " + j.History[0].Slice
		}
		return said
	}
	want := tell()
	if !strings.Contains(want["slices"], "reserved") || !strings.Contains(want["runs"], "first/") ||
		!strings.Contains(want["filed"], "first/") {
		t.Fatalf("%v", want)
	}
	is := "first"
	for i, next := range []string{"second", "", "third", "third", "first"} {
		if next == "" {
			d.again()
		} else {
			d.again("--name", next)
		}
		if was := is; next != "" {
			is = next
			for what := range want {
				want[what] = renamed(want[what], was, is)
			}
		}
		if got := d.node(); got != is {
			t.Fatalf("after --name %q it is called %s", next, got)
		}
		for what, got := range tell() {
			if got != want[what] {
				t.Errorf("called %s, %s:\n%s\nand not\n%s", is, what, got, want[what])
			}
		}
		var jobs strings.Builder // a snapshot is written under some names and not under others
		for n := range 6 {
			jobs.WriteString(tiny(fmt.Sprintf("more-%d-%d", i, n)))
		}
		d.submit(jobs.String(), "--wait")
	}
	if !strings.Contains(d.log.String(), "wrote a snapshot") {
		t.Error("no snapshot was written")
	}
	release()
	d.done("runs")
	d.once("runs", 1)
	d.must("resume", d.slices()[1].ID)
	d.flags = append(d.flags, "--name", "Not/One")
	d.kill()
	says(t, d.refused(), "--name", `"Not/One"`, "want 1 to 63 of a-z")
	d.flags = d.flags[:len(d.flags)-2]
	d.start()
	if got := d.node(); got != "first" {
		t.Errorf("after a name that is none it is called %s", got)
	}
	d.kill()
	says(t, d.must("sim", "replay", d.data), "all equal")
}

// TestSeveralNodesAreRenamed: a gang that runs on nodes of two zones goes on, and its members keep their places.
func TestSeveralNodesAreRenamed(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "sluice.yml")
	if err := os.WriteFile(file, []byte("zones: 2\nnodes: 4\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := newDaemon(t, "sim:custom=4,mem=64Mi", "--config", file)
	d.again("--name", "rig")
	d.submit(spec("gang", "rigid: {walltime: 1h, slices: 4, topology: cluster}",
		`while ! [ -e `+d.dir+`/goon ]; do sleep 0.05; done; echo $SLUICE_MEMBER > "$SLUICE_OUTPUT_DIR/who"`, "grace: 200ms"))
	d.running("gang", 1)
	where := func() string {
		var all []string
		for _, s := range d.slices() {
			all = append(all, s.ID+"="+s.Job)
		}
		return strings.Join(all, " ")
	}
	before := where()
	if !strings.Contains(before, "rig-4/") || strings.Count(before, "=gang") != 4 {
		t.Fatalf("%s", before)
	}
	d.again("--name", "rig-1") // which one of its nodes was called
	if got, want := where(), strings.ReplaceAll(before, "rig-", "rig-1-"); got != want {
		t.Errorf("%s\nand not\n%s", got, want)
	}
	d.again("--name", "rack7")
	if got, want := where(), strings.ReplaceAll(before, "rig-", "rack7-"); got != want {
		t.Errorf("%s\nand not\n%s", got, want)
	}
	if j := d.job("gang"); j.Lost != 0 || j.Running != 1 {
		t.Errorf("%+v", j)
	}
	d.write("goon", "")
	d.done("gang")
	if out := d.must("output", "gang", "--cat"); out != "0\n1\n2\n3\n" {
		t.Errorf("output %q", out)
	}
}

// TestNamesThatAreLost: a directory of before names were kept goes on with the name that its journal has, and so does one whose file was
// lost. A damaged file is refused.
func TestNamesThatAreLost(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, "sim:custom,mem=64Mi")
	d.again("--name", "first")
	d.submit(tiny("one"), "--wait")
	d.kill()
	remove(t, filepath.Join(d.data, "names"))
	d.start()
	if got := d.node(); got != "first" {
		t.Errorf("without its file it is called %s", got)
	}
	d.again("--name", "second")
	d.kill()
	remove(t, filepath.Join(d.data, "names"))
	says(t, d.refused(), "facts of node second", "--name")
	d.again("--name", "second")
	if got, j := d.node(), d.job("one"); got != "second" || !strings.HasPrefix(j.History[0].Slice, "second/") {
		t.Errorf("with the name said it is called %s; %+v", got, j.History)
	}
	d.kill()
	put(t, filepath.Join(d.data, "names"), []byte("first\nsec"))
	says(t, d.refused(), "names does not hold names", "restore it from a backup")
}
