package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestYieldedWorkGoesOn(t *testing.T) {
	t.Parallel()
	d := up(t, three)
	d.submit(spec("yields", "items: {total: 30, perItem: 1ms, grid: 10}",
		say+`echo $SLUICE_FROM >> "$SLUICE_OUTPUT_DIR/o"; say $((SLUICE_FROM+10)); exit 85`))
	j := d.done("yields")
	if j.Subjobs != 3 {
		t.Errorf("%d subjobs, want 3", j.Subjobs)
	}
	if out := d.must("output", "yields", "--cat"); out != "0\n10\n20\n" {
		t.Errorf("output %q", out)
	}
	d.submit(spec("empty", "steps: {total: 30, perStep: 1ms, every: 10}", say+`say 10; exit 85`))
	if j := d.over("empty"); j.State != "FAILED" || !strings.Contains(j.Reason, "SLUICE_CHECKPOINT_DIR has no file in it") {
		t.Errorf("%s: %s", j.State, j.Reason)
	}
	// To yield and yield without getting on is no way to hold a slice.
	d.submit(spec("stuck", "items: {total: 30, perItem: 1ms, grid: 10}", `exit 85`))
	if j := d.over("stuck"); j.State != "FAILED" || !strings.Contains(j.Reason, "progress") {
		t.Errorf("%s: %s", j.State, j.Reason)
	}
}

func TestWarningComesFirst(t *testing.T) {
	t.Parallel()
	d := up(t, "sim:custom,mem=64Mi")
	d.submit(spec("warned", "steps: {total: 100, perStep: 100ms, every: 1}",
		say+`[ $SLUICE_FROM -eq 0 ] || { echo x > "$SLUICE_CHECKPOINT_DIR/c"; say $SLUICE_TO; exit 0; }
trap 'echo warned >> "$SLUICE_OUTPUT_DIR/o"; echo x > "$SLUICE_CHECKPOINT_DIR/c"; say $((SLUICE_FROM+1)); exit 85' USR1; trap 'echo term; exit 1' TERM
touch "`+d.dir+`/ready"; sleep 60 & wait`, "grace: 300ms", "warn: {signal: USR1, before: 4s}"))
	d.running("warned", 1)
	slice := strings.TrimSpace(d.must("slices", "-o", "name"))
	d.until("the shell has its traps", func() bool { _, err := os.Stat(filepath.Join(d.dir, "ready")); return err == nil })
	d.must("reserve", slice, "--kind", "reclaim", "--start", "+4s", "--for", "500ms", "--truncate")
	d.done("warned")
	if out := d.must("output", "warned", "--cat"); out != "warned\n" {
		t.Errorf("output %q, want the warning to have come\n%s", out, d.must("job", "warned"))
	}
}

func TestPoisonItems(t *testing.T) {
	t.Parallel()
	d := up(t, three)
	poison := each(`[ $i -ne 5 ] || { echo "unit 5 is bad" >&2; exit 3; }`)
	// Declared far too long: whose lease ends between a unit's line and its report has that line twice, and a busy machine takes its time.
	d.submit(spec("fails", "items: {total: 8, perItem: 1s}", poison))
	d.submit(spec("skips", "items: {total: 8, perItem: 1s}", poison, "onItemFailure: skip"))
	if j := d.over("fails"); j.State != "FAILED" || !strings.Contains(j.Reason, "item 5") || !strings.Contains(j.Reason, "unit 5 is bad") {
		t.Errorf("%s: %s", j.State, j.Reason)
	}
	if j := d.done("skips"); j.Skipped != 1 {
		t.Errorf("%d skipped, want 1", j.Skipped)
	}
	out := strings.Join(strings.Fields(d.must("output", "skips", "--cat")), " ")
	if out != "0 1 2 3 4 6 7" {
		t.Errorf("output %q", out)
	}
}

func TestWildProgress(t *testing.T) {
	t.Parallel()
	d := up(t, "sim:custom,mem=64Mi+64Mi")
	for name, say := range map[string]string{
		"beyond":   `echo '{"progress":999999,"checkpoint":true}'`,
		"negative": `echo '{"progress":-5,"checkpoint":true}'`,
		"off-grid": `echo '{"progress":7,"checkpoint":true}'`,
		"garbage":  `head -c 100000 /dev/urandom`,
		"empty":    `:`,
		"huge":     `head -c 3000000 /dev/zero`,
		"nested":   `head -c 500000 /dev/zero | tr '\0' '['`,
		"overflow": `echo '{"progress":99999999999999999999999,"checkpoint":true}'`,
	} {
		// The first run lies and fails: nothing of it may count. Later ones do the work.
		d.submit(spec(name, "items: {total: 20, perItem: 1ms, grid: 10, parallelism: 1}",
			`if [ "$(echo $SLUICE_SUBJOB | cut -d- -f1)" ] && mkdir "`+d.dir+`/$SLUICE_JOB" 2>/dev/null; then { `+say+
				`; } > "$SLUICE_PROGRESS_FILE.t"; mv "$SLUICE_PROGRESS_FILE.t" "$SLUICE_PROGRESS_FILE"; exit 1; fi
seq $SLUICE_FROM $((SLUICE_TO-1)) > "$SLUICE_OUTPUT_DIR/units"`))
	}
	for _, name := range []string{"beyond", "negative", "off-grid", "garbage", "empty", "huge", "nested", "overflow"} {
		d.done(name)
		d.once(name, 20)
	}
	// Things in the file's place that are no files.
	d.submit(spec("pipe", "items: {total: 2, perItem: 1ms, grid: 2}",
		`mkfifo "$SLUICE_PROGRESS_FILE"; ln -s /dev/zero "$SLUICE_OUTPUT_DIR/zero"; seq 0 1 > "$SLUICE_OUTPUT_DIR/units"`))
	d.submit(spec("link", "items: {total: 2, perItem: 1ms, grid: 2}",
		`ln -s /dev/zero "$SLUICE_PROGRESS_FILE"; seq 0 1 > "$SLUICE_OUTPUT_DIR/units"`))
	d.done("pipe")
	d.once("pipe", 2)
	d.done("link")
	d.once("link", 2)
}

// A program that forks twice, leaves its session and ignores every signal it can is gone when its job is cancelled.
func TestDaemonizedProgramsEnd(t *testing.T) {
	t.Parallel()
	d := up(t, three)
	d.submit(spec("hides", "items: {total: 1, perItem: 2m}",
		`trap '' TERM INT HUP USR1; (setsid sh -c 'trap "" TERM INT HUP; (setsid sh -c "trap \"\" TERM; exec sleep 987" &) ; sleep 986' &) ; sleep 985`, "grace: 300ms"))
	d.until("it hides", func() bool {
		return alive("sleep\x00987") > 0 && alive("sleep\x00986") > 0 && alive("sleep\x00985") > 0
	})
	d.must("cancel", "hides")
	if j := d.over("hides"); j.State != "CANCELLED" {
		t.Errorf("%s", j.State)
	}
	d.until("all of it is gone", func() bool { return alive("sleep\x00987")+alive("sleep\x00986")+alive("sleep\x00985") == 0 })
	d.submit(spec("next", "items: {total: 10, perItem: 1ms}", each(":")), "--wait")
}

// alive counts processes with a command line that holds some text.
func alive(text string) (n int) {
	list, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, p := range list {
		if data, err := os.ReadFile(p); err == nil && strings.Contains(string(data), text) &&
			!strings.Contains(string(data), "\x00-c\x00") {
			n++
		}
	}
	return n
}

func TestFloodsAreBounded(t *testing.T) {
	t.Parallel()
	d := up(t, three)
	d.submit(spec("talks", "items: {total: 1, perItem: 5s}",
		`head -c 300000000 /dev/zero | tr '\0' 'x'; echo done > "$SLUICE_OUTPUT_DIR/o"`, "limits: {log: 1Mi}"))
	d.submit(spec("writes", "items: {total: 1, perItem: 20s}", `head -c 64000000 /dev/zero > "$SLUICE_OUTPUT_DIR/o"; sleep 20`,
		"limits: {output: 2Mi}", "maxFailures: 1"))
	d.done("talks")
	if n := len(d.must("logs", "talks")); n > 2<<20 {
		t.Errorf("a log of %d bytes, the limit is 1 MiB", n)
	}
	if j := d.over("writes"); j.State != "FAILED" || !strings.Contains(j.Reason, "output") {
		t.Errorf("%s: %s", j.State, j.Reason)
	}
}

func TestMissingPrograms(t *testing.T) {
	t.Parallel()
	d := up(t, three)
	for name, command := range map[string]string{
		"missing": "[no-such-program]", "no-file": "[/no/such/file]", "no-program": "[/etc/passwd]", "folder": "[/tmp]",
	} {
		text := strings.Replace(spec(name, "items: {total: 4, perItem: 1ms}", ""), `["sh","-c",""]`, command, 1)
		d.submit(text)
		if j := d.over(name); j.State != "FAILED" || !strings.Contains(j.Reason, strings.Trim(command, "[]")) {
			t.Errorf("%s is %s: %s", name, j.State, j.Reason)
		}
	}
}

// A first unit much slower than was said, and more units than time.
func TestSlowFirstUnit(t *testing.T) {
	t.Parallel()
	d := up(t, "sim:custom,mem=64Mi")
	d.submit(spec("slow", "items: {total: 6, perItem: 150ms}", each("sleep 0.4"), "grace: 200ms"))
	d.done("slow")
	d.once("slow", 6)
}

func TestManyFastUnits(t *testing.T) {
	t.Parallel()
	d := up(t, three)
	d.submit(spec("fast", "items: {total: 1000, perItem: 50us, grid: 1, parallelism: 3}",
		`seq $SLUICE_FROM $((SLUICE_TO-1)) > "$SLUICE_OUTPUT_DIR/units"`))
	d.done("fast")
	d.once("fast", 1000)
}

// What init writes runs as it is, and a command runs without a file.
func TestStartersAndCommandsRun(t *testing.T) {
	t.Parallel()
	d := up(t, "sim:custom,mem=128Mi+128Mi")
	for _, kind := range []string{"items", "steps", "rigid"} {
		file := kind + ".yaml"
		d.must("init", kind, "--file", file)
		d.fails(1, []string{"is there already", "--force"}, "init", kind, "--file", file)
		d.must("submit", file, "--wait", "--quiet")
	}
	says(t, d.must("output", "my-steps", "--cat"), "500500")
	says(t, d.must("output", "my-items", "--cat"), "unit 0\n", "unit 999\n")
	out := d.must("run", "--items", "20", "--per-item", "5ms", "--grid", "10", "--parallel", "2", "--mem", "16Mi", "--name", "typed",
		"--quiet", "--server", d.addr, "--",
		"sh", "-c", `ls -A; i=$SLUICE_FROM; while [ $i -lt $SLUICE_TO ]; do echo $i >> "$SLUICE_OUTPUT_DIR/units"; i=$((i+1)); done`)
	says(t, out, "job typed accepted", "job typed COMPLETED, 20/20")
	if said := d.must("logs", "typed"); said != "" {
		t.Errorf("a directory went along that was not asked for: %q", said)
	}
	d.once("typed", 20)
}
