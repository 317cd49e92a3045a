package programs

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// workflow has so many instances that take a while, and one that needs them all.
const workflow = `
rule one:
    output: "out/{i}.txt"
    shell: "echo start {wildcards.i} > {output}; sleep 2; echo done {wildcards.i} >> {output}"

rule sum:
    input: expand("out/{i}.txt", i=range(%d))
    output: "sum.txt"
    shell: "cat {input} > {output}"

rule broken:
    output: "never"
    shell: "echo tried >> tries; exit 3"
`

// TestSnakemake: a workflow by the profile has its outputs in its own directory, each written once from its beginning to its end, although
// Snakemake, the daemon and supervisors are killed meanwhile and Snakemake is started again.
func TestSnakemake(t *testing.T) {
	needs(t, "snakemake", "snakemake", "--version")
	random := strikesOf(t)
	snakemakeHolds(t, random, 2, 0)
	n := 10
	for range doublings {
		if snakemakeHolds(t, random, n, strikes) {
			return
		}
		n *= 2
		t.Logf("it was over too soon: again, with %d instances", n)
	}
	t.Errorf("a workflow of %d instances is over before it is struck %d times", n, strikes)
}

// snakemakeHolds runs a workflow of n instances, struck so many times. False: it was over before.
func snakemakeHolds(t *testing.T, random *rand.Rand, n, left int) bool {
	t.Helper()
	dir, d := workflowIn(t, n), up(t, "1h")
	// A supervisor that is killed has failed its rule, which Snakemake tries again.
	args := []string{"sum.txt", "--retries", strconv.Itoa(left)}
	for {
		ended, kill, said := snakemake(t, d, dir, args...)
		killed := false
		for running := true; running && !killed && left > 0; {
			select {
			case <-ended:
				running = false
			case <-time.After(time.Duration((1 + 4*random.Float64()) * float64(time.Second))):
				kind := []string{"daemon", "supervisor", "snakemake"}[random.IntN(3)]
				if kind == "snakemake" {
					kill()
					killed = true
				} else if !d.strike(kind) {
					continue // nothing of the kind runs just now
				}
				left--
				t.Log("killed the " + kind)
			}
		}
		if err := <-ended; err == nil {
			break
		} else if !killed {
			t.Fatalf("%v:\n%s", err, said())
		}
		do(t, dir, "snakemake", "--profile", "sluice", "--unlock") // it has left its lock
	}
	var want strings.Builder
	for i := range n {
		fmt.Fprintf(&want, "start %d\ndone %d\n", i, i)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "sum.txt")); err != nil || string(got) != want.String() {
		t.Errorf("%d instances: the outputs are\n%s, want\n%s: %v", n, got, want.String(), err)
	}
	return left == 0
}

// TestSnakemakeTriesARuleAsOftenAsItSays: a rule that fails is run once, as Snakemake does by itself, and again as often as --retries says.
func TestSnakemakeTriesARuleAsOftenAsItSays(t *testing.T) {
	needs(t, "snakemake", "snakemake", "--version")
	d := up(t, "1h")
	for want, args := range map[string][]string{
		"tried\n":               {"never"},
		"tried\ntried\ntried\n": {"never", "--retries", "2"},
	} {
		dir := workflowIn(t, 1)
		ended, _, said := snakemake(t, d, dir, args...)
		if err := <-ended; err == nil {
			t.Errorf("a workflow with a rule that fails does well:\n%s", said())
		}
		if got, err := os.ReadFile(filepath.Join(dir, "tries")); err != nil || string(got) != want {
			t.Errorf("snakemake %v has tried it: %q, want %q: %v", args, got, want, err)
		}
	}
}

// workflowIn makes a directory with a workflow and the profile.
func workflowIn(t *testing.T, n int) string {
	t.Helper()
	dir := t.TempDir()
	do(t, dir, filepath.Join(bin, "sluice"), "init", "--like", "snakemake")
	if err := os.WriteFile(filepath.Join(dir, "Snakefile"), fmt.Appendf(nil, workflow, n), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// snakemake starts Snakemake. ended has how it ended, again and again; kill kills it alone, and not its jobs.
func snakemake(t *testing.T, d *daemon, dir string, args ...string) (ended <-chan error, kill func(), said func() string) {
	t.Helper()
	c := exec.Command("snakemake", append([]string{"--profile", "sluice"}, args...)...)
	c.Dir, c.Env = dir, append(os.Environ(), "SLUICE_SERVER="+d.addr)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var text bytes.Buffer
	c.Stdout, c.Stderr = &text, &text
	c.WaitDelay = time.Second
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	var err error
	go func() { err = c.Wait(); close(over) }()
	result := make(chan error)
	t.Cleanup(func() { _ = c.Process.Kill() })
	done := t.Context().Done()
	go func() {
		<-over
		for {
			select {
			case result <- err:
			case <-done:
				return
			}
		}
	}()
	return result, func() { _ = c.Process.Kill() }, func() string { <-over; return text.String() }
}
