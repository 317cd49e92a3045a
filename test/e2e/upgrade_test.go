package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// lastOfBefore is the last commit whose builds speak version 1 of links alone.
const lastOfBefore = "cdbb8cc514271bbede1b32c4dc7bb6be986f5663"

// later builds the programs as those of so many releases later, as far as a version of links is told.
func later(t *testing.T, releases string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	build(t, ".", dir, "-ldflags", "-X sluice.dev/sluice/internal/edge/fabric/stream.later="+releases+" -X main.version=later-"+releases)
	return dir
}

// build builds the programs of a checkout.
func build(t *testing.T, checkout, into string, flags ...string) {
	t.Helper()
	args := append([]string{"build", "-o", into + string(filepath.Separator)}, flags...)
	c := exec.Command("go", append(args, "sluice.dev/sluice/cmd/sluice", "sluice.dev/sluice/cmd/sluice-shim")...)
	c.Dir, c.Env = checkout, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// upgrade starts a daemon again from other programs.
func (d *daemon) upgrade(programs string) {
	d.t.Helper()
	d.end(syscall.SIGTERM)
	d.programs = programs
	d.start()
}

// TestAClusterIsUpgraded: the head first, then its machine, a release at a time, while a job runs; each unit counts once. A machine two
// releases behind is told to be upgraded, whether it was linked or is to join; one ahead of its head that the head is to be.
func TestAClusterIsUpgraded(t *testing.T) {
	t.Parallel()
	next, after := later(t, "1"), later(t, "2")
	c := newCluster(t)
	m := c.takeIn("m1")
	c.until("it is ready", func() bool { return c.node("m1").State == "ready" })
	c.submit(spec("counts", "items: {total: 600, perItem: 20ms, parallelism: 3}", each("sleep 0.02")))
	c.running("counts", 1)

	c.upgrade(next)
	c.until("the machine of the release before is linked", func() bool { return c.node("m1").State == "ready" })
	m.upgrade(next)
	c.until("it is linked as one of the same release", func() bool { return c.node("m1").State == "ready" })
	c.upgrade(after)
	c.until("and as one of the release before", func() bool { return c.node("m1").State == "ready" })
	m.upgrade(after)
	c.done("counts")
	c.once("counts", 600)

	m.end(syscall.SIGTERM)
	m.programs = ""
	says(t, m.refused(), "more than one release apart", `"later-2"`, "upgrade the machine")
	other := newDaemon(t, three, "--name", "m2")
	token := c.invitation()
	other.verb = []string{"join", c.at, "--token", token}
	says(t, other.refused(), "more than one release apart", "upgrade the machine")
	other.programs = after // its token is good still
	other.start()

	c.end(syscall.SIGTERM)
	c.programs = next
	c.start()
	c.until("a machine that is a release ahead is linked", func() bool { return c.node("m2").State == "ready" })
	says(t, other.log.String(), "upgrade the head first")
	c.end(syscall.SIGTERM)
	c.programs = ""
	c.start()
	c.until("one that is two ahead is not", func() bool { return c.node("m2").State == "away" })
	other.until("it says what to do", func() bool {
		return strings.Contains(other.log.String(), "upgrade the head first, a release at a time")
	})
}

// TestTheBuildBefore: a machine of the last build that spoke the version of links before does the work of a head of this one, and is then
// upgraded; its data is taken over. make upgrade runs it: that build is made from the repository's history.
func TestTheBuildBefore(t *testing.T) {
	want := os.Getenv("SLUICE_UPGRADE")
	if want == "" {
		t.Skip("skipped: make upgrade runs it")
	}
	t.Parallel()
	checkout, programs := t.TempDir(), t.TempDir()
	c := exec.Command("sh", "-c", `git archive "$0" | tar -x -C "$1"`, lastOfBefore, checkout)
	c.Dir = filepath.Join("..", "..")
	if out, err := c.CombinedOutput(); err != nil && want == "optional" {
		t.Skipf("skipped: commit %s is not to be had: %v: %s", lastOfBefore, err, out)
	} else if err != nil {
		t.Fatalf("commit %s is not to be had (fetch the whole history): %v: %s", lastOfBefore, err, out)
	}
	build(t, checkout, programs, "-ldflags", "-X main.version=before")
	h := newCluster(t)
	m := newDaemon(t, three, "--name", "m1")
	m.programs = programs
	m.verb = []string{"join", h.at, "--token", h.invitation()}
	m.start()
	h.until("it is ready", func() bool { return h.node("m1").State == "ready" })
	says(t, h.must("nodes", "-o", "wide"), "before")
	h.submit(spec("counts", "items: {total: 300, perItem: 20ms, parallelism: 3}", each("sleep 0.02")))
	h.until("some is committed", func() bool { return h.job("counts").Progress > 0 })
	m.upgrade("")
	h.done("counts")
	h.once("counts", 300)
	m.until("the head alone has what was written, by the build before too", func() bool {
		return len(matching(t, m.data, "output/*/*", "logs/*/*")) == 0
	})
}
