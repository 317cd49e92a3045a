package slurm

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"sluice.dev/sluice/test/slurm/cluster"
	"sluice.dev/sluice/test/witness"
)

// strike is one of a run, drawn before it begins.
type strike struct {
	kind kind
	// draw picks what is hit, long is how long it lasts, short a pause, such as between an end and a new start.
	draw        int
	long, short time.Duration
}

// kind is a way to strike. do says what was hit.
type kind struct {
	name string
	do   func(w *world, s strike) (string, error)
}

func kinds() []kind {
	return []kind{
		{"slurmctld killed", controllerKilled},
		{"slurmctld stopped", controllerStopped},
		{"slurmd killed", nodeKilled},
		{"node down", nodeDown},
		{"preempted", preempted},
		{"scancel by an admin", cancelled},
		{"script killed", scriptKilled},
		{"pilot's power cut", powerCut},
		{"end moved", endMoved},
		{"head killed", headKilled},
		{"head stopped", headStopped},
		{"squeue hangs", tooled("squeue", "hang")},
		{"squeue prints junk", tooled("squeue", "junk")},
		{"squeue is old", tooled("squeue", "old")},
		{"sbatch refuses", tooled("sbatch", "refuse")},
		{"sbatch's answer lost", tooled("sbatch", "lost")},
		{"scancel hangs", tooled("scancel", "hang")},
		{"paused", paused},
	}
}

// only are the kinds with these names, separated by commas; if there are none, all.
func only(names string) ([]kind, error) {
	return witness.Only(kinds(), func(k kind) string { return k.name }, names)
}

// draw is the strikes of a seed: each of these kinds as often as the others, in a random order.
func draw(list []kind, seed uint64, n int) (all []strike) {
	rng := rand.New(rand.NewPCG(seed, 1))
	for len(all) < n {
		rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		for _, k := range list[:min(len(list), n-len(all))] {
			few := rng.Float64() // more short ones than long ones, from 2 to 12 s
			all = append(all, strike{
				kind: k, draw: rng.IntN(1 << 20), short: time.Duration(rng.Int64N(int64(2 * time.Second))),
				long: 2*time.Second + time.Duration(few*few*float64(10*time.Second)),
			})
		}
	}
	return all
}

func controllerKilled(w *world, s strike) (string, error) {
	w.crashes++
	w.slurm.KillController()
	time.Sleep(s.short)
	return "", w.slurm.StartController()
}

func controllerStopped(w *world, s strike) (string, error) {
	w.slurm.SignalController(syscall.SIGSTOP)
	time.Sleep(s.long)
	w.slurm.SignalController(syscall.SIGCONT)
	return "", nil
}

func nodeKilled(w *world, s strike) (string, error) {
	i := s.draw % nodes
	w.slurm.KillNode(i)
	time.Sleep(s.long)
	return fmt.Sprint("node ", i), w.slurm.StartNode(i)
}

func nodeDown(w *world, s strike) (string, error) {
	name := cluster.Node(s.draw % nodes)
	_, err := w.slurm.Run(w.ctx(), "scontrol", "update", "nodename="+name, "state=down", "reason=strike")
	time.Sleep(s.long)
	return name, err // it is well again by itself, or settle resumes it
}

// preempted: a job of the site takes all of a node, and its pilots must go.
func preempted(w *world, s strike) (string, error) {
	out, err := w.slurm.Run(w.ctx(), "sbatch", "--parsable", "-p", "normal", "-N", "1", "--exclusive", "-t", "1", "-o", "/dev/null",
		"-w", cluster.Node(s.draw%nodes), "--wrap", fmt.Sprintf("sleep %d", 2+int(s.long.Seconds())))
	if err != nil {
		return "", err
	}
	id := strings.TrimSpace(out)
	err = witness.Until("the site's job is over", 3*time.Minute, func() error {
		state, failed := w.slurm.Run(w.ctx(), "squeue", "-h", "-t", "all", "-j", id, "-o", "%T")
		if state = strings.TrimSpace(state); failed == nil && (state == "PENDING" || state == "RUNNING") {
			return fmt.Errorf("it is %s", state)
		}
		return nil
	})
	return "job " + id, err
}

func cancelled(w *world, s strike) (string, error) {
	p, ok := w.running(s.draw)
	if !ok {
		return "none runs", nil
	}
	_, err := w.slurm.Run(w.ctx(), "scancel", p.id)
	return p.name, err
}

// scriptKilled: the script has no time to end or clear anything.
func scriptKilled(w *world, s strike) (string, error) {
	p, ok := w.running(s.draw)
	if !ok {
		return "none runs", nil
	}
	w.scripts++
	_, err := w.slurm.Run(w.ctx(), "scancel", "--signal=KILL", "--batch", p.id)
	return p.name, err
}

// powerCut: all processes of a pilot are gone at once, as with their machine.
func powerCut(w *world, s strike) (string, error) {
	folders, err := filepath.Glob(filepath.Join(w.dir, "scratch", "sluice-*"))
	if err != nil || len(folders) == 0 {
		return "none runs", err
	}
	folder := folders[s.draw%len(folders)]
	script, err := os.ReadFile(filepath.Join(folder, "pilot"))
	if err != nil {
		return "none runs", nil //nolint:nilerr // it has just left
	}
	var pid int
	if _, err := fmt.Sscan(string(script), &pid); err == nil {
		w.scripts++
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	for range 20 {
		left := processes(folder + "/")
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		if len(left) == 0 {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	return filepath.Base(folder), nil
}

// endMoved: an admin has a pilot end sooner.
func endMoved(w *world, s strike) (string, error) {
	p, ok := w.running(s.draw)
	if !ok {
		return "none runs", nil
	}
	_, err := w.slurm.Run(w.ctx(), "scontrol", "update", "jobid="+p.id, "EndTime=now+20seconds")
	return p.name, err
}

func headKilled(w *world, s strike) (string, error) {
	w.head.kill()
	time.Sleep(s.short)
	w.head.start()
	return "", nil
}

func headStopped(w *world, s strike) (string, error) {
	w.head.signal(syscall.SIGSTOP)
	time.Sleep(5*time.Second + s.short)
	w.head.signal(syscall.SIGCONT)
	return "", nil
}

// tooled makes a command of Slurm misbehave for the head.
func tooled(name, mode string) func(*world, strike) (string, error) {
	return func(w *world, s strike) (string, error) {
		return "", w.as(name, mode, func() { time.Sleep(s.long) })
	}
}

func paused(w *world, s strike) (string, error) {
	_, err := w.client.Insist("providers", "pause", pool)
	time.Sleep(s.long)
	_, again := w.client.Insist("providers", "resume", pool)
	return "", errors.Join(err, again)
}

// TestStrikes strikes a Slurm, the pilots that it runs and their head, waits until all jobs are over, and judges what is left. It is
// skipped unless SLUICE_SLURM_STRIKES says how many there are; SLUICE_SLURM_SEED says which, and SLUICE_SLURM_KINDS of which kinds.
func TestStrikes(t *testing.T) {
	need(t)
	n, seed := asked(t, "SLUICE_SLURM_STRIKES", 0), asked(t, "SLUICE_SLURM_SEED", uint64(time.Now().UnixNano()))
	if n == 0 {
		t.Skip("SLUICE_SLURM_STRIKES is not set: see make slurm")
	}
	list, err := only(os.Getenv("SLUICE_SLURM_KINDS"))
	if err != nil {
		t.Fatalf("SLUICE_SLURM_KINDS: %v", err)
	}
	began := time.Now()
	fmt.Printf("slurm: %d strikes of seed %d (SEED=%d draws them again)\n", n, seed, seed)
	w := newWorld(t, programs(t))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	submitted := make(chan error, 1)
	go func() { submitted <- w.client.Submit(ctx) }()
	tallies := witness.Tallies{}
	for i, s := range draw(list, seed, int(n)) {
		w.strike(i+1, s, tallies, began)
		if ctx.Err() != nil {
			break
		}
	}
	stop()
	if err := <-submitted; err != nil {
		t.Error(err)
	}
	w.settle()
	w.judge(tallies, began)
}

// strike strikes once, while a subjob runs on a pilot if one does, and prints a line.
func (w *world) strike(n int, s strike, tallies witness.Tallies, began time.Time) {
	w.resume()
	leased := false
	_ = witness.Until("a subjob runs on a pilot", 90*time.Second, func() error { // if none does that is counted
		if leased = w.leased(); !leased {
			return errors.New("none does")
		}
		return nil
	})
	time.Sleep(s.short)
	struck := time.Now()
	said, err := s.kind.do(w, s)
	took := time.Since(struck)
	if err != nil {
		w.t.Errorf("%s: %v", s.kind.name, err)
	}
	w.until("the head answers", time.Minute, func() error { _, err := w.client.Sluice("nodes"); return err })
	tallies.Note(s.kind.name, leased, took)
	fmt.Printf("%4d  %4.0f s  %-20s  for %4.1f s  leased %-5v  %s\n", n, struck.Sub(began).Seconds(), s.kind.name, took.Seconds(), leased,
		said)
}

// resume does what an admin does for nodes that Slurm drained or keeps down after a strike.
func (w *world) resume() {
	for i := range nodes {
		state, err := w.slurm.Run(w.ctx(), "sinfo", "-h", "-n", cluster.Node(i), "-p", "preempt", "-o", "%T")
		if err == nil && (strings.Contains(state, "drain") || strings.Contains(state, "down")) {
			_, _ = w.slurm.Run(w.ctx(), "scontrol", "update", "nodename="+cluster.Node(i), "state=resume") // refused where it is well
		}
	}
}

// settle waits until every job is over, and then until nothing of any pilot is left.
func (w *world) settle() {
	w.until("all jobs are over", 6*time.Minute, func() error {
		w.resume()
		list, err := w.client.Unfinished()
		if err == nil && len(list) > 0 {
			why, _ := w.client.Sluice("providers")
			err = errors.New(strings.Join(list, "; ") + "\n" + why)
		}
		return err
	})
	w.until("no pilot is left", 4*time.Minute, func() error {
		w.resume()
		list, err := w.pilots()
		if err != nil {
			return err
		}
		list = slices.DeleteFunc(list, func(p pilot) bool { return !p.alive() && p.state != "COMPLETING" })
		if len(list) > 0 {
			why, _ := w.client.Sluice("providers")
			return fmt.Errorf("Slurm has %v\n%s", list, why)
		}
		return nil
	})
	scratch := filepath.Join(w.dir, "scratch")
	w.until("no process of a pilot is left", time.Minute, func() error {
		if left := processes(scratch + "/"); len(left) > 0 {
			line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", left[0]))
			return fmt.Errorf("%d are, the first %q", len(left), line)
		}
		return nil
	})
	folders, err := os.ReadDir(scratch)
	if err != nil || len(folders) > w.scripts {
		w.t.Errorf("%d folders of pilots are left, %v; %d scripts were killed", len(folders), err, w.scripts)
	}
	tokens, err := filepath.Glob(filepath.Join(w.dir, "shared", "pilots", "*.token"))
	if err != nil || len(tokens) > most*w.crashes { // of a pilot that Slurm has lost it stays for a while
		w.t.Errorf("tokens are left: %v, %v", tokens, err)
	}
}

// judge judges the histories of all jobs, and how many pilots there were, and prints the tables.
func (w *world) judge(tallies witness.Tallies, began time.Time) {
	jobs := w.client.Jobs()
	var sum witness.History
	for _, job := range jobs {
		h := w.client.History(job)
		sum.Units, sum.Redone = sum.Units+h.Units, sum.Redone+h.Redone
		sum.Duplicates, sum.Lost = sum.Duplicates+h.Duplicates, sum.Lost+h.Lost
		for _, wrong := range h.Wrong {
			w.t.Error(wrong)
		}
	}
	w.watch.end()
	for _, over := range w.watch.overran {
		w.t.Errorf("more than %d pilots: %s", most, over)
	}
	all := tallies.Print()
	fmt.Printf("slurm: %d jobs with %d units, %d done again; duplicates %d, lost %d; at most %d of %d pilots in %d looks; %.0f s\n",
		len(jobs), sum.Units, sum.Redone, sum.Duplicates, sum.Lost, w.watch.most, most, w.watch.looks, time.Since(began).Seconds())
	if sum.Units == 0 || w.watch.looks == 0 {
		w.t.Error("nothing was done or looked at: the run has not shown what it is for")
	}
	if 3*all.Leased < 2*all.Strikes {
		w.t.Errorf("%d of %d strikes fell while a subjob ran on a pilot: the run has not shown what it is for", all.Leased, all.Strikes)
	}
}
