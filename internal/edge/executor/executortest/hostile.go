package executortest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
)

// Whatever a subjob leaves, it ends: output that can't be published makes it fail with a reason that names the fault, it is settled once,
// and its job can be purged.

// hostile are sh scripts that leave something other than a folder of files. limit is limits.output; 0: the kind's default.
var hostile = []struct {
	name, script string
	limit        int64
	// counts: its output is published. Otherwise none of it is, and the reason has one of words, unless the script itself fails because it
	// lacks permission.
	counts bool
	words  []string
}{
	{"output is a file", instead(`echo result > "$d"`), 0, false, []string{"SLUICE_OUTPUT_DIR is a file"}},
	{"output is a link", instead(`mkdir "$TMPDIR/big"; echo result > "$TMPDIR/big/r"; ln -s "$TMPDIR/big" "$d"`), 0, false,
		[]string{"SLUICE_OUTPUT_DIR is a symbolic link"}},
	{"output is a link to nowhere", instead(`ln -s nowhere "$d"`), 0, false, []string{"SLUICE_OUTPUT_DIR is a symbolic link"}},
	{"output is a pipe", instead(`mkfifo "$d"`), 0, false, []string{"SLUICE_OUTPUT_DIR is a pipe"}},
	{"output is a device", instead(`mknod "$d" c 1 3`), 0, false, []string{"SLUICE_OUTPUT_DIR is a device"}},
	{"output is gone", instead(`:`), 0, false, []string{"SLUICE_OUTPUT_DIR is gone"}},
	{"checkpoint is a file", strings.ReplaceAll(instead(`echo state > "$d"`), "OUTPUT", "CHECKPOINT"), 0, false,
		[]string{"SLUICE_CHECKPOINT_DIR is a file"}},
	{"checkpoint is a link", strings.ReplaceAll(instead(`ln -s / "$d"`), "OUTPUT", "CHECKPOINT"), 0, false,
		[]string{"SLUICE_CHECKPOINT_DIR is a symbolic link"}},
	{"output is another folder", instead(`mkdir "$d"; echo result > "$d/r"`), 0, true, nil},
	{"output is nested too deep", `cd "$SLUICE_OUTPUT_DIR"; for i in $(seq 300); do mkdir deep && cd -P deep || exit 0; done`, 0, false,
		[]string{"nested deeper than 255"}},
	{"output may not be written to", `echo r > "$SLUICE_OUTPUT_DIR/r"; chmod 555 "$SLUICE_OUTPUT_DIR"`, 0, true, nil},
	{"output may not be looked into",
		`mkdir "$SLUICE_OUTPUT_DIR/a"; echo r > "$SLUICE_OUTPUT_DIR/a/r"; chmod 0 "$SLUICE_OUTPUT_DIR/a" "$SLUICE_OUTPUT_DIR"`, 0, true,
		nil},
	{"output can't be changed", `echo r > "$SLUICE_OUTPUT_DIR/r"; chattr +i "$SLUICE_OUTPUT_DIR/r"; chattr +i "$SLUICE_OUTPUT_DIR"; true`,
		0,
		true, nil},
	{"output can only be added to",
		`echo r > "$SLUICE_OUTPUT_DIR/r"; chattr +a "$SLUICE_OUTPUT_DIR/r"; chattr +a "$SLUICE_OUTPUT_DIR"; true`,
		0, true, nil},
	{"output has links, pipes and a loop",
		`cd "$SLUICE_OUTPUT_DIR"; ln -s / root; ln -s . self; ln -s nowhere there; mkfifo pipe; echo r > r; ln r hard`, 0, true, nil},
	{"names are no text",
		`cd "$SLUICE_OUTPUT_DIR"; echo r > "$(printf 'caf\351')"; echo r > "$(printf 'two\nlines')"; echo r > "$(printf '\033[31m')"; echo r > -rf; mkdir "$(printf 'd\351')"; echo r > "$(printf 'd\351/r')"; echo r > plain`, 0, true, nil},
	{"output has sockets", `cd "$SLUICE_OUTPUT_DIR"; mkdir d; mkfifo d/pipe; echo r > r
		` + socket + ` socket d/socket`, 0, true, nil},
	{"output has devices", `cd "$SLUICE_OUTPUT_DIR"; echo r > r; mknod null c 1 3; mknod zero c 1 5; mknod disk b 7 200; true`, 0, true,
		nil},
	{"output is a socket", instead(`cd "$TMPDIR"; ` + socket + ` s; mv s "$d"`), 0, false, []string{"SLUICE_OUTPUT_DIR is a socket"}},
	{"output has a file system in it", mounts + `cd "$SLUICE_OUTPUT_DIR"; mkdir m; m "$PWD/m"; echo r > m/r`, 0, false,
		[]string{"a file system is mounted on m in SLUICE_OUTPUT_DIR", unmountable}},
	{"output is a file system", mounts + `m "$SLUICE_OUTPUT_DIR"; echo r > "$SLUICE_OUTPUT_DIR/r"`, 0, false,
		[]string{"a file system is mounted on SLUICE_OUTPUT_DIR", unmountable}},
	{"its folders are busy", mounts + `m "$SLUICE_CHECKPOINT_DIR"; cd "$SLUICE_CHECKPOINT_DIR"; mkdir m; m m; cd m; (setsid sleep 1000 &)`,
		0, false, []string{"a file system is mounted on SLUICE_CHECKPOINT_DIR", unmountable}},
	{"a sparse file is larger than the limit", `truncate -s 6G "$SLUICE_OUTPUT_DIR/big"`, 64 << 20, false,
		[]string{"more than the limit of 67108864 bytes"}},
	{"a sparse checkpoint is larger than the limit", `truncate -s 6G "$SLUICE_CHECKPOINT_DIR/big"`, 64 << 20, false,
		[]string{"more than the limit of 67108864 bytes"}},
	{"a sparse file is larger than any", `truncate -s 100G "$SLUICE_OUTPUT_DIR/big"`, 0, false, []string{"more than the limit of"}},
	{"a sparse file is within the limit", `truncate -s 2G "$SLUICE_OUTPUT_DIR/big"; echo end >> "$SLUICE_OUTPUT_DIR/big"`, 4 << 30, true,
		nil},
}

// mounts defines m for a script: it mounts a tmpfs, which the host sees too where the subjob has no mount namespace of its own. Where
// mounting is not allowed, the script says so and fails.
const (
	mounts      = `m() { mount -t tmpfs none "$1" 2>/dev/null || { echo ` + unmountable + ` >&2; exit 9; }; }; `
	unmountable = "no file system can be mounted here"
	// socket makes a socket at every name that follows. It uses perl, which git depends on.
	socket = `perl -MSocket -e 'for (@ARGV) { socket(S, PF_UNIX, SOCK_STREAM, 0) && bind(S, sockaddr_un($_)) || die $! }'`
)

// instead replaces the output folder, d, by what script makes.
func instead(script string) string {
	return `set -e; d=$SLUICE_OUTPUT_DIR; rm -rf "$d"; ` + script
}

// Hostile runs programs that leave the worst. With a kind that runs no scripts it is left out.
func Hostile(t *testing.T, open func(t *testing.T) Harness) {
	for _, c := range hostile {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, open(t))
			m := b.lease(Quick, 10*time.Minute)
			l := &m.Body.(*protocol.Work).Spec.Launch
			*l = b.h.Script(c.script)
			l.Grace, l.OutputLimit = Grace, c.limit
			b.do(m)
			b.next(protocol.Started)
			r := b.ended()
			// A subjob with a mount namespace of its own takes its mounts with it, so its output counts.
			counts := c.counts || slices.Contains(c.words, unmountable) && r.Outcome == job.Done
			switch failed := r.Outcome == job.LimitKilled || r.Outcome == job.ExitFailed; {
			case counts && (r.Outcome != job.Done || r.Progress != units.To):
				b.Errorf("%+v, want it done", r)
			case !counts && (!failed || r.Progress != units.From || r.Checkpoint):
				b.Errorf("%+v, want a failure of its own of which nothing counts", r)
			case !counts && r.ExitCode <= 0 && !says(r.Detail, c.words):
				b.Errorf("the reason is %q, want one of %q", r.Detail, c.words)
			}
			// The daemon is restarted between two Settles of the same subjob.
			settle := protocol.Message{
				Kind: protocol.Settle, From: nodeAddress, To: execAddress, Token: token, Job: "suite",
				Body: &protocol.Settlement{Committed: counts},
			}
			if counts {
				settle.Body.(*protocol.Settlement).Range = units
			}
			b.do(settle)
			b.reopen()
			b.do(settle)
			b.next(protocol.Settled)
			if found := b.reopen(); len(found) != 0 {
				b.Errorf("found %+v after settling, want nothing", found)
			}
			b.do(protocol.Message{Kind: protocol.Purge, Job: "suite", From: protocol.Address{Role: protocol.Gate}, Generation: 2})
			b.purged()
		})
	}
}

func says(text string, words []string) bool {
	for _, w := range words {
		if strings.Contains(text, w) {
			return true
		}
	}
	return false
}

// ended waits for the result, whatever it is.
func (b *bench) ended() job.Result {
	b.Helper()
	return *b.next(protocol.Exited).Body.(*protocol.Conclusion).Result
}

// purged waits until the job's files are gone.
func (b *bench) purged() {
	b.Helper()
	select {
	case m := <-b.said:
		if m.Kind != protocol.Purged {
			b.Fatalf("got message kind %d: %+v, want Purged", m.Kind, m)
		}
	case <-time.After(patience):
		b.Fatalf("not purged within %v", patience)
	}
}
