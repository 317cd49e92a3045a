package e2e

import (
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// mapped starts a daemon whose queues run as two users, where that is possible.
func mapped(t *testing.T) *daemon {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("skipped: only root can start subjobs as other users")
	}
	for _, name := range []string{"nobody", "daemon"} {
		if _, err := user.Lookup(name); err != nil {
			t.Skipf("skipped: %v", err)
		}
	}
	d := newDaemon(t, three)
	// Test folders are closed to others; the way to the data directory must be open.
	for at := d.dir; strings.HasPrefix(at, os.TempDir()+"/"); at = filepath.Dir(at) {
		if err := os.Chmod(at, 0o711); err != nil {
			t.Fatal(err)
		}
	}
	config := d.write("queues.yml", "queues:\n- {name: default, user: nobody}\n- {name: other, user: daemon}\n")
	d.flags = append(d.flags, "--config", config)
	return d
}

func TestQueuesRunAsTheirUsers(t *testing.T) {
	t.Parallel()
	d := mapped(t)
	d.start()
	script := `id -un; id -G; pwd > /dev/null && echo here
cat "$0" >/dev/null 2>&1
for f in ` + d.data + `/journal/HEAD ` + d.data + `/lock ` + d.data +
		`/executor-events.jsonl "$SLUICE_OUTPUT_DIR/../lease.json"; do cat "$f" && echo "READ $f"; done
for f in ` + d.data + ` ` + d.data + `/runs ` + d.data + `/logs ` + d.data + `/output ` + d.data +
		`/snapshots; do ls "$f" && echo "LISTED $f"; done
for f in ` + d.data + ` ` + d.data + `/runs "$SLUICE_OUTPUT_DIR/.."; do touch "$f/mine" && echo "WROTE $f"; done
ls /proc | grep -c '^[0-9]' | { read n; [ $n -lt 10 ] && echo few || echo "PROCESSES $n"; }
cat /proc/1/environ && echo "READ environ"
kill -9 1 && echo KILLED
grep NoNewPrivs /proc/self/status
echo result > "$SLUICE_OUTPUT_DIR/o"; ln -s ` + d.data + `/lock "$SLUICE_OUTPUT_DIR/link"; mkfifo "$SLUICE_OUTPUT_DIR/pipe"`
	d.submit(spec("mine", "items: {total: 10, perItem: 20ms, grid: 10}", script))
	d.submit(spec("theirs", "items: {total: 10, perItem: 20ms, grid: 10}", script, "queue: other"))
	for job, name := range map[string]string{"mine": "nobody", "theirs": "daemon"} {
		d.done(job)
		log := d.must("logs", job)
		says(t, log, name+"\n", "here\n", "few\n")
		if strings.Contains(strings.ReplaceAll(log, "NoNewPrivs:\t1", ""), "NoNewPrivs") {
			t.Errorf("%s can gain privileges: %s", job, log)
		}
		for _, bad := range []string{"READ ", "LISTED ", "WROTE ", "PROCESSES ", "KILLED"} {
			if strings.Contains(log, bad) {
				t.Errorf("%s got where it must not: %s", job, log)
			}
		}
		// The results come back, and nothing that a link names.
		if out := d.must("output", job, "--cat"); out != "result\n" {
			t.Errorf("output of %s: %q", job, out)
		}
	}
	if info, err := os.Stat(d.data); err != nil || info.Mode().Perm()&0o066 != 0 {
		t.Errorf("the data directory can be read by others: %v %v", info.Mode(), err)
	}
}

func TestCheckpointsOfMappedUsersComeBack(t *testing.T) {
	t.Parallel()
	d := mapped(t)
	d.start()
	script := say + `[ -z "$SLUICE_RESUME_DIR" ] || { n=$(cat "$SLUICE_RESUME_DIR/n") && touch "$SLUICE_RESUME_DIR/x" && exit 1; }
n=$((${n:-0}+1)); echo $n > "$SLUICE_CHECKPOINT_DIR/n"; echo $n >> "$SLUICE_OUTPUT_DIR/o"; say $((SLUICE_FROM+10)); exit 85`
	d.submit(spec("chain", "steps: {total: 30, perStep: 10ms, every: 10}", script))
	d.done("chain")
	if out := d.must("output", "chain", "--cat"); out != "1\n2\n3\n" {
		t.Errorf("output %q", out)
	}
}

func TestMappedUsersAreRefusedWhereTheyAreNotSafe(t *testing.T) {
	t.Parallel()
	d := mapped(t)
	if err := os.Chmod(d.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	says(t, d.refused(), "queue default", "queue other", "chmod o+x "+d.dir)
	if err := os.Chmod(d.dir, 0o711); err != nil {
		t.Fatal(err)
	}
	good := d.flags
	d.flags = append(d.flags, "--config", d.write("part.yml", "queues: [{name: default, user: nobody}, {name: b}, {name: c, user: "+
		"no-such-account}]"))
	says(t, d.refused(), "queues without a user", ": b;", "queue c", "no-such-account")
	// A queue without a user is nobody's: no job of it is taken.
	d.flags = append(good, "--config", d.write("one.yml", "queues: [{name: other, user: daemon}]"))
	d.start()
	text := []byte(spec("mine", "items: {total: 10, perItem: 1ms}", "id"))
	for _, args := range [][]string{{"submit", "-f", "-"}, {"submit", "-f", "-", "--dry-run"}} {
		_, errs, code := d.as(text, args...)
		if code == 0 {
			t.Errorf("%v: a job runs as root", args)
		}
		says(t, errs, "queue default has no user", "sluice queue set default --user")
	}
	d.fails(1, []string{"queue new: has no user"}, "queue", "set", "new")
	d.fails(1, []string{"no-such-account"}, "queue", "set", "new", "--user", "no-such-account")
	d.must("queue", "set", "default", "--user", "nobody")
	d.submit(string(text))
	d.done("mine")
	d.by("sluice-user-wrong").fails(1, []string{"this token is nobody's"}, "jobs")
	d.end(syscall.SIGTERM)
	d.token = "a-token-of-some-length" // given to the daemon: all must show one
	d.start()
	d.by("").fails(1, []string{"wants a token"}, "jobs")
}

func TestSingleUserRefusesASecondOne(t *testing.T) {
	t.Parallel()
	d := up(t, three)
	says(t, d.must("status"), "one: subjobs run as the daemon's own user")
	d.fails(1, []string{"single-user mode"}, "queue", "set", "default", "--user", "nobody")
	other := newDaemon(t, three)
	other.addr = "0.0.0.0:0"
	text := other.refused()
	says(t, text, "--listen 0.0.0.0:0", "single-user mode", "127.0.0.1")
	if _, err := os.Stat(other.data); err == nil {
		t.Error("a refused daemon made its data directory")
	}
}
