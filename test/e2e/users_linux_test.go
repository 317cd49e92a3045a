package e2e

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// by is the same daemon, called by who has a token.
func (d *daemon) by(token string) *daemon {
	c := *d
	c.token = token
	return &c
}

// add adds a user and returns them as one who calls.
func (d *daemon) add(name string, args ...string) *daemon {
	d.t.Helper()
	return d.by(strings.TrimSpace(d.must(append([]string{"user", "add", name, "-q"}, args...)...)))
}

// turnedAway submits what must be refused, with some words.
func (d *daemon) turnedAway(text string, words ...string) {
	d.t.Helper()
	_, errs, code := d.as([]byte(text), "submit", "-f", "-")
	if code != 1 {
		d.t.Errorf("it is taken, or exit %d", code)
	}
	says(d.t, errs, words...)
}

// TestUsersHaveJobsOfTheirOwn: through kills of the daemon, also right after a user was added or got another token, and when jobs have left
// to the archive.
func TestUsersHaveJobsOfTheirOwn(t *testing.T) {
	t.Parallel()
	d := mapped(t)
	d.flags = append(d.flags, "--keep-hot", "1ms")
	d.start()
	ada := d.add("ada", "--queue", "default", "--queue", "other")
	d.kill()
	d.start()
	bob := d.add("bob", "--queue", "default")
	lost := d.by(strings.TrimSpace(d.must("user", "token", "bob", "-q")))
	d.kill()
	d.start()
	bob.fails(1, []string{"this token is nobody's"}, "jobs")
	bob = lost
	eve := d.add("eve", "--role", "operator")

	text := spec("counts", "items: {total: 10, perItem: 20ms, grid: 10}", "id -un; echo done > \"$SLUICE_OUTPUT_DIR/o\"", "queue: other")
	ada.submit(text)
	ada.done("counts")
	slow := spec("slow", "rigid: {walltime: 1h}", "echo hers; sleep 3600")
	ada.submit(slow)
	d.running("slow", 1)
	bob.turnedAway(text, "spec.queue: you are user bob (role user) and may not submit to queue other; you may to default")
	bob.turnedAway(slow, "user ada has a job of that name")
	ada.submit(slow) // by the same it is the same job
	bob.submit(tiny("his"))
	bob.done("his")
	hers := d.job("slow").History[0].Subjob // which bob may know, and ask for as his own job's
	d.archived(2)
	for range 2 {
		for _, args := range []string{"cancel slow", "logs slow", "logs counts", "output counts", "delete counts", "requeue counts",
			"agent key slow"} {
			bob.fails(1, []string{"ada", "bob"}, strings.Fields(args)...)
		}
		for _, args := range []string{"logs his --subjob ", "logs -f his --subjob ", "output his --cat --subjob "} {
			bob.fails(1, []string{"his has no", hers}, strings.Fields(args+hers)...)
		}
		for _, args := range []string{"logs slow", "output counts --cat"} {
			eve.fails(1, []string{"user ada", "user eve (role operator)"}, strings.Fields(args)...)
		}
		says(t, bob.must("jobs", "-o", "wide"), "counts  other    ada", "slow    default  ada")
		if out := ada.must("output", "counts", "--cat"); out != "done\n" {
			t.Errorf("ada's output: %q", out)
		}
		says(t, ada.must("logs", "counts"), "daemon\n") // the user of the machine that the queue runs as
		for who, want := range map[*daemon]string{ada: "counts\nslow\n", bob: "his\n"} {
			if got := who.must("jobs", "--mine", "-o", "name"); got != want {
				t.Errorf("jobs of one's own: %q, want %q", got, want)
			}
		}
		d.kill()
		d.start()
		d.archived(2)
	}
	// What ada follows ends with her token; her jobs go on.
	var out syncBuffer
	followed := make(chan string, 1)
	go func() {
		errs, code := ada.into(&out, nil, "logs", "-f", "slow")
		followed <- strconv.Itoa(code) + " " + errs
	}()
	says(t, d.must("user", "list"), "ada   user      default, other", "bob   user      default", "eve   operator  -")
	d.must("user", "remove", "ada")
	says(t, <-followed, "1 ", "ada")
	ada.fails(1, []string{"this token is nobody's"}, "jobs")
	d.running("slow", 1)
	eve.must("cancel", "slow")
	if j := d.over("slow"); j.Reason != "cancelled by user eve" {
		t.Errorf("it is over since %s", j.Reason)
	}
	// Root needs no token, and another user of the machine has none.
	nobody, err := user.Lookup("nobody")
	if err != nil {
		t.Fatal(err)
	}
	uid, _ := strconv.Atoi(nobody.Uid)
	c := exec.Command(filepath.Join(bin, "sluice"), "jobs", "--server", d.addr)
	c.Env, c.Dir = append(os.Environ(), "SLUICE_TOKEN="), "/"
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
	if said, err := c.CombinedOutput(); err == nil || !bytes.Contains(said, []byte("knows its users by their tokens")) {
		t.Errorf("nobody: %v %s", err, said)
	}
}

// syncBuffer is what is written by a process, for a test to read.
type syncBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

// TestSingleUserModeHasNoUsersWhoSubmit: an operator without queues can be added, one who could submit can't.
func TestSingleUserModeHasNoUsersWhoSubmit(t *testing.T) {
	t.Parallel()
	d := up(t, three)
	d.fails(1, []string{"user ada", "single-user mode", "as root"}, "user", "add", "ada", "--queue", "default")
	eve := d.add("eve", "--role", "operator")
	d.submit(spec("mine", "rigid: {walltime: 1h}", "sleep 3600"))
	eve.turnedAway(tiny("hers"), "you may to none")
	eve.must("cancel", "mine")
	if j := d.over("mine"); j.Reason != "cancelled by user eve" {
		t.Errorf("it is over since %s", j.Reason)
	}
	says(t, d.must("user", "whoami"), "admin", "all")
}

// TestNoUserIsAddedOnAFullDisk: what can't be kept has not happened, and a start finds the users of before.
func TestNoUserIsAddedOnAFullDisk(t *testing.T) {
	t.Parallel()
	d := onSmallDisk(t, 4<<20)
	d.start()
	eve := d.add("eve", "--role", "operator")
	room := d.fill()
	d.fails(1, []string{"keep who the users are", "nothing was changed"}, "user", "add", "kim", "--role", "operator")
	d.fails(1, []string{"nothing was changed"}, "user", "token", "eve")
	eve.must("slices")
	d.kill()
	room()
	d.start()
	eve.must("slices")
	if _, err := os.Stat(filepath.Join(d.data, "users", "users.json.tmp")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("half a file is left: %v", err)
	}
	if list := d.must("user", "list", "-o", "name"); list != "eve\n" {
		t.Errorf("the users are %q", list)
	}
	d.add("kim", "--role", "operator").must("slices")
}

// TestAHeadThatBeginsToServeSeveralUsers refuses the link of a machine of one user that has joined before, and goes on without it: the
// machine, which keeps running, has heard of nothing.
func TestAHeadThatBeginsToServeSeveralUsers(t *testing.T) {
	t.Parallel()
	d := mapped(t)
	c := &cluster{daemon: d, at: freeAddress(t)}
	several := c.flags[2:]
	c.flags = []string{"--gpus", "sim:custom,mem=4Mi", "--cluster", c.at} // too small for any job
	c.start()
	m := c.takeIn("m1")
	c.until("it is ready", func() bool { return c.node("m1").State == "ready" })
	c.kill()
	c.flags = append(c.flags, several...)
	c.start()
	c.until("it is refused", func() bool { return strings.Contains(c.node("m1").Why, "this machine is in single-user mode") })
	ada := c.add("ada", "--queue", "default")
	ada.submit(spec("hers", "items: {total: 10, perItem: 20ms, grid: 10}", "id -un"))
	m.kill()
	says(t, m.refused(), "single-user mode", "--config")
	if j := c.job("hers"); j.State != "PENDING" {
		t.Errorf("it is %s", j.State)
	}
}

// TestAHeadOfSeveralUsersTakesNoMachineOfOne: what it ran would run as that machine's one user, whoever has submitted it. One with users of
// its own runs a queue's subjobs as the one that its file names.
func TestAHeadOfSeveralUsersTakesNoMachineOfOne(t *testing.T) {
	t.Parallel()
	d := mapped(t)
	c := &cluster{daemon: d, at: freeAddress(t)}
	c.flags[1] = "sim:custom,mem=4Mi" // too small for any job
	c.flags = append(c.flags, "--cluster", c.at)
	c.start()
	m := newDaemon(t, three, "--name", "m1")
	m.verb = []string{"join", c.at, "--token", c.invitation()}
	says(t, m.refused(), "the head serves several users, and this machine is in single-user mode", "--config")
	for at := m.dir; strings.HasPrefix(at, os.TempDir()+"/"); at = filepath.Dir(at) {
		if err := os.Chmod(at, 0o711); err != nil {
			t.Fatal(err)
		}
	}
	m.flags = append(m.flags, "--config", m.write("machine.yml", "queues: [{name: default, user: daemon}]\n"))
	m.start()
	c.until("it is ready", func() bool { return c.node("m1").State == "ready" })
	ada := c.add("ada", "--queue", "default")
	ada.submit(spec("hers", "items: {total: 10, perItem: 20ms, grid: 10}", `id -un > "$SLUICE_OUTPUT_DIR/o"`))
	ada.done("hers")
	if out := ada.must("output", "hers", "--cat"); out != "daemon\n" { // at the head it would be nobody
		t.Errorf("it ran as %q", out)
	}
}
