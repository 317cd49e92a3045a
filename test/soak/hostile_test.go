package soak

import (
	"cmp"
	"fmt"
	"strings"
)

// hostility is a kind of hostile program.
type hostility struct {
	kind, script string
	// failures is the job's maxFailures, 0: mostFailures. more is a further line of the spec in its job file.
	failures int
	more     string
	// reason is part of the message with which its job must fail; empty: it must complete, and its output is checked as any other job's.
	reason string
}

// hostile are programs that leave output which can't be published, or resist being ended; they run among the ordinary jobs. Each is a
// script of sh -e in a rigid job, so that a kill of one of its commands ends it; $VALUE is what unit 0 must publish.
var hostile = []hostility{
	{kind: "file", script: instead(`echo result > "$d"`), reason: "SLUICE_OUTPUT_DIR is a file"},
	{kind: "link", script: instead(`mkdir "$TMPDIR/big"; echo "0 $VALUE" > "$TMPDIR/big/units"; ln -s "$TMPDIR/big" "$d"`),
		reason: "SLUICE_OUTPUT_DIR is a symbolic link"},
	{kind: "names", script: `cd "$SLUICE_OUTPUT_DIR"; echo x > "$(printf 'caf\351')"; echo x > "$(printf 'two\nlines')"; echo x > -rf
		mkdir "$(printf 'd\351')"; mkfifo pipe; ln -s / root; echo "0 $VALUE" > units`,
		failures: patience},
	{kind: "sparse", script: `truncate -s 6G "$SLUICE_OUTPUT_DIR/big"; echo "0 $VALUE" > "$SLUICE_OUTPUT_DIR/units"`,
		more: "limits: {output: 64Mi}", reason: "more than the limit of 67108864 bytes"},
	{kind: "many", script: `cd "$SLUICE_OUTPUT_DIR"; mkdir many; cd many; seq 2000 | xargs touch; echo "0 $VALUE" > ../units`,
		failures: patience},
	{kind: "deaf", script: `trap '' TERM INT HUP; echo "0 $VALUE" > "$SLUICE_OUTPUT_DIR/units"; while :; do sleep 0.1; done`,
		failures: 2, reason: "it was still running at its deadline"},
	{kind: "children",
		script: `for i in 1 2 3; do (setsid sh -c 'trap "" TERM; (setsid sleep 1000 &); sleep 1001' &); done; sleep 0.2; exit 7`,
		reason: "exit status 7"},
	{kind: "wreck",
		script: `d=$(dirname "$SLUICE_OUTPUT_DIR"); mkdir "$d/result.json"; echo "0 $VALUE" > "$SLUICE_OUTPUT_DIR/units"; sleep 0.3`,
		reason: "its run directory is damaged"},
}

// instead replaces the output folder, d, by what script makes.
func instead(script string) string {
	return `d=$SLUICE_OUTPUT_DIR; rm -rf "$d"; ` + script
}

// hostiles returns jobs of every hostile kind: one of each, and one more of each for every 60 kills.
func hostiles(kills int) (out []workload) {
	for i := range 1 + kills/60 {
		for k := range hostile {
			h := &hostile[k]
			out = append(out, workload{name: fmt.Sprintf("%s-%d", h.kind, i), kind: "rigid", total: 1, hostile: h})
		}
	}
	return out
}

// among spreads the second list evenly over the first.
func among(first, second []workload) (out []workload) {
	for i, j := range first {
		n := len(second) * (i + 1) / len(first)
		out = append(append(out, j), second[len(out)-i:n]...)
	}
	return out
}

// mostFailures is after how many failures in a row a hostile job is over. A kill by the soak counts as one, and may be the last; so those
// that must complete have patience for many.
const mostFailures, patience = 4, 100

// file is the job file of a hostile job.
func (h *hostility) file(name string) string {
	return fmt.Sprintf(`apiVersion: sluice.dev/v1alpha1
kind: Job
metadata: {name: %s}
spec:
  rigid: {walltime: 2s}
  memory: 64Mi
  maxFailures: %d
  grace: 300ms
  env: {VALUE: %q}
  command: ["sh", "-ec", %q]
  %s
`, name, cmp.Or(h.failures, mostFailures), value(name, 0), h.script, h.more)
}

// Why hostile jobs failed: for their own reason, or for a kill by the soak, where that was the last of their failures.
const (
	byItself = "for what it is"
	byKill   = "for a kill"
)

// ended says whether a job is over; if it was hostile and failed, how is byItself or byKill. An error: it ended other than it must.
func (j workload) ended(state string) (over bool, how string, err error) {
	reason, failed := strings.CutPrefix(state, "FAILED: ")
	switch completes := j.hostile == nil || j.hostile.reason == ""; {
	case state == "COMPLETED" && completes:
		return true, "", nil
	case !failed && state != "COMPLETED":
		return false, "", nil
	case completes:
		return j.hostile != nil, "", fmt.Errorf("job %s is %s, want it completed", j.name, state)
	case strings.Contains(reason, j.hostile.reason):
		return true, byItself, nil
	}
	for _, kill := range []string{"signal 9", "exit status 137", "the supervisor died"} {
		if failed && strings.Contains(reason, kill) {
			return true, byKill, nil
		}
	}
	return true, "", fmt.Errorf("job %s is %s, want it failed: %s", j.name, state, j.hostile.reason)
}
