package programs

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// workflow has instances that take a while, and one that needs them all.
const workflow = `
rule all:
    input: "sum.txt"

rule one:
    output: "out/{i}.txt"
    shell: "echo start {wildcards.i} > {output}; sleep 3; echo done {wildcards.i} >> {output}"

rule sum:
    input: expand("out/{i}.txt", i=range(10))
    output: "sum.txt"
    shell: "cat {input} > {output}"
`

// TestSnakemake: a workflow by the profile has its outputs in its own directory, each written once from its beginning to its end, although
// Snakemake, the daemon and supervisors are killed meanwhile and Snakemake is started again.
func TestSnakemake(t *testing.T) {
	needs(t, "snakemake", "snakemake", "--version")
	random := strikesOf(t)
	var want strings.Builder
	for i := range 10 {
		want.WriteString("start " + strconv.Itoa(i) + "\ndone " + strconv.Itoa(i) + "\n")
	}
	for _, struck := range []bool{false, true} {
		dir := t.TempDir()
		do(t, dir, filepath.Join(bin, "sluice"), "init", "--like", "snakemake")
		if err := os.WriteFile(filepath.Join(dir, "Snakefile"), []byte(workflow), 0o600); err != nil {
			t.Fatal(err)
		}
		d := up(t, "1h")
		left := 0
		if struck {
			left = strikes
		}
		for try := 0; ; try++ {
			if try > 3*strikes {
				t.Fatal("Snakemake does not come to its end")
			}
			if try > 0 { // it was killed, and left its lock
				do(t, dir, "snakemake", "--profile", "sluice", "--unlock")
			}
			ended, kill, said := snakemake(t, d, dir)
			for running := true; running && left > 0; {
				select {
				case <-ended:
					running = false
				case <-time.After(time.Duration((2 + 6*random.Float64()) * float64(time.Second))):
					switch kind := []string{"daemon", "supervisor", "snakemake"}[random.IntN(3)]; kind {
					case "snakemake":
						kill()
						running = false
						left--
						t.Log("killed snakemake")
					default:
						if d.strike(kind) {
							left--
							t.Log("killed the " + kind)
						}
					}
				}
			}
			if err := <-ended; err == nil {
				break
			} else if left == 0 && !struck {
				t.Fatalf("%v:\n%s", err, said())
			}
		}
		if left > 0 {
			t.Errorf("the workflow was over before %d of its strikes", left)
		}
		if got, err := os.ReadFile(filepath.Join(dir, "sum.txt")); err != nil || string(got) != want.String() {
			t.Errorf("struck: %v: the outputs are\n%s, want\n%s: %v", struck, got, want.String(), err)
		}
	}
}

// snakemake starts Snakemake. ended has how it ended, again and again; kill kills it alone, and not its jobs.
func snakemake(t *testing.T, d *daemon, dir string) (ended <-chan error, kill func(), said func() string) {
	t.Helper()
	c := exec.Command("snakemake", "--profile", "sluice", "sum.txt")
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
