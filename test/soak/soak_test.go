package soak

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sluice.dev/sluice/internal/edge/executor/executortest"
	"sluice.dev/sluice/test/planted"
)

func TestMain(m *testing.M) {
	if kind := os.Getenv(workerVariable); kind != "" {
		work(kind)
		return
	}
	done := executortest.LeaveTmp()
	code := m.Run()
	done()
	os.Exit(code)
}

// TestSoak is the kill soak. It runs when SLUICE_SOAK_KILLS says how many kills (make soak: 200). SLUICE_SOAK_SNAPSHOT is after
// how many records a snapshot is written, and SLUICE_SOAK_AWAY how long the daemon stays down now and then: longer than leases,
// skew and grace, so that subjobs end, and claims run out, while it is away. 0 for either: not at all. With SLUICE_SOAK_STORE=1 what
// subjobs leave goes to a store, too. With the build tag etcd the journal is in a real etcd, which is killed as well. With
// SLUICE_SOAK_STORMS=1 Airlock is on, storms of memory blow, and the watcher is killed as well; where there can be none the log says so.
// Hostile jobs run among the others: some must complete all the same, the rest must fail for their own reason and publish nothing.
func TestSoak(t *testing.T) {
	kills := number(t, "SLUICE_SOAK_KILLS")
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("SLUICE_SOAK_SEED"); s != "" {
		seed, _ = strconv.ParseUint(s, 10, 64)
	}
	m := mix{snapshot: 120, away: 12 * time.Second}
	if s := os.Getenv("SLUICE_SOAK_SNAPSHOT"); s != "" {
		m.snapshot = number(t, "SLUICE_SOAK_SNAPSHOT")
	}
	if s := os.Getenv("SLUICE_SOAK_AWAY"); s != "" {
		var err error
		if m.away, err = time.ParseDuration(s); err != nil {
			t.Fatalf("SLUICE_SOAK_AWAY: %v", err)
		}
	}
	if os.Getenv("SLUICE_SOAK_STORMS") == "1" {
		var err error
		if m.group, err = newGroup(); err != nil {
			t.Logf("NO STORMS BLOW: %v", err)
		} else {
			defer m.group.close()
		}
	}
	bin := build(t)
	elsewhere(t)
	// Whether a storm catches a subjob at work, and holds it where the sampler looks, is chance: where none did the soak is run again.
	for range 8 {
		r := soak(t, bin, "", kills, seed, m, 5*time.Minute)
		tell(t, r, seed, m)
		if kills >= 30 && (m.snapshot > 0 && r.snapshots == 0 || m.away > 0 && r.aways == 0) {
			t.Errorf("%d snapshots, away %d times: the soak has not shown what it is for", r.snapshots, r.aways)
		}
		for _, w := range r.wrong {
			t.Error(w)
		}
		if t.Failed() {
			t.Fatalf("what is left is in %s", r.dir)
		}
		if kills < 30 || m.group == nil || r.stormy() {
			return
		}
		t.Log("the soak has not shown what its storms are for: once more")
		seed++
	}
	t.Error("no soak has shown what its storms are for")
}

// stormy says whether the storms showed what they are for: watchers acted, were killed, and a subjob was seen suspended.
func (r *result) stormy() bool {
	return r.storms > 0 && r.watchers > 0 && r.stood > 0 && len(r.acts) > 0
}

// tell logs what a soak did.
func tell(t *testing.T, r *result, seed uint64, m mix) {
	t.Helper()
	if m.group != nil {
		t.Logf("%d storms, %d watchers killed, %d times seen suspended; the watcher's acts: %v", r.storms, r.watchers, r.stood, r.acts)
	}
	for _, kind := range slices.Sorted(maps.Keys(r.failed)) {
		t.Logf("hostile jobs %q failed: %v", kind, r.failed[kind])
	}
	t.Logf("seed %d: %d kills in %v (daemon %d, supervisors %d, subjobs %d), %d snapshots, away for %v %d times, "+
		"%d looks at /proc, %d subjobs started, all of %d jobs over in %v",
		seed, r.kills(), r.chaos.Round(time.Second), r.daemons, r.supervisors, r.subjobs, r.snapshots, m.away, r.aways, r.samples,
		r.started, len(r.jobs), r.took.Round(time.Second))
}

// TestPlanted proves the oracle: with each planted bug in, the same soak must find something wrong.
func TestPlanted(t *testing.T) {
	kills := number(t, "SLUICE_SOAK_PLANTED")
	overlay, err := planted.Overlay("../..", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	bin := build(t, "-overlay", overlay)
	caught := 0
	for _, bug := range planted.Bugs() {
		if only := os.Getenv("SLUICE_SOAK_BUG"); bug.Test != "" || only != "" && only != bug.Name {
			continue
		}
		t.Run(bug.Name, func(t *testing.T) {
			for try := range uint64(3) {
				r := soak(t, bin, bug.Name, kills, 1000+try, mix{}, time.Minute)
				if len(r.wrong) > 0 {
					caught++
					t.Logf("caught after %d kills in %v: %s", r.kills(), r.took.Round(time.Second), r.wrong[0])
					return
				}
			}
			t.Errorf("the oracle saw nothing wrong with %s in", bug.Name)
		})
	}
	t.Logf("%d planted bugs caught", caught)
}

func number(t *testing.T, variable string) int {
	t.Helper()
	n, err := strconv.Atoi(os.Getenv(variable))
	if err != nil {
		t.Skipf("%s is not set to a number of kills: see make soak", variable)
	}
	return n
}

// build makes the two programs.
func build(t *testing.T, flags ...string) string {
	t.Helper()
	dir := t.TempDir()
	out, err := exec.Command("go", append(append([]string{"build", "-tags", tags}, flags...), "-o", dir, "sluice.dev/sluice/cmd/sluice",
		"sluice.dev/sluice/cmd/sluice-shim")...).CombinedOutput()
	if err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return dir
}

// mix is what happens besides kills.
type mix struct {
	snapshot int
	away     time.Duration
	// group in which storms blow; nil: none do.
	group *group
}

// unstruck is for how long storms go on at most when the strikes are over: longer than the work.
const unstruck = 20 * time.Second

// every is how many strikes there are for each time that the daemon stays away.
const every = 25

type result struct {
	dir                           string
	jobs                          []workload
	daemons, supervisors, subjobs int
	samples, started              int
	snapshots, aways              int
	// Of storms: how many blew, how many watchers were killed, how many subjobs were seen suspended, and what the watchers did.
	storms, watchers, stood int
	acts                    map[string]int
	// failed counts the hostile jobs that failed, by kind and by reason (byItself, byKill).
	failed      map[string]map[string]int
	chaos, took time.Duration
	wrong       []string
}

func (r *result) kills() int { return r.daemons + r.supervisors + r.subjobs + r.watchers }

// soak runs the workload under kills, waits for the end and returns what the oracle found. With a bug planted it stops at
// the first finding.
func soak(t *testing.T, bin, bug string, kills int, seed uint64, m mix, settle time.Duration) *result {
	t.Helper()
	dir, err := os.MkdirTemp("", "sluice-soak-") //nolint:usetesting // it is kept when something was wrong
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(seed, 1))
	began := time.Now()
	d, err := newDaemon(bin, dir, bug, m.snapshot, m.group)
	if err != nil {
		t.Fatal(err)
	}
	r := &result{dir: dir}
	s := startSampler(d.data)
	defer func() {
		d.kill()
		sweep(d.data)
		if !t.Failed() && (bug != "" || len(r.wrong) == 0) {
			_ = os.RemoveAll(dir) // best effort: a temporary folder
		}
	}()

	calm := func() {}
	if m.group != nil {
		stop, blown := make(chan struct{}), make(chan int)
		go func() { blown <- m.group.storms(seed, stop) }()
		calm = sync.OnceFunc(func() {
			close(stop)
			r.storms = <-blown
		})
		defer calm()
	}
	r.jobs = workloads(kills)
	if bug == "" {
		r.jobs = among(r.jobs, hostiles(kills))
	}
	submitted := map[string]bool{}
	next := 0
	for n := 0; n < kills; n++ {
		// Jobs come in while the killing goes on. Each submission goes on until it is acknowledged; the daemon may die meanwhile.
		for next < len(r.jobs) && n*len(r.jobs) >= next*kills*3/4 {
			j := r.jobs[next]
			if err := d.submit(jobFile(t, dir, j, m.group != nil), 30*time.Second); err != nil {
				r.wrong = append(r.wrong, fmt.Sprintf("job %s could not be submitted: %v", j.name, err))
				return r
			}
			submitted[j.name] = true
			next++
			if rng.IntN(3) == 0 { // the moment after an acknowledgement is the most telling
				d.kill()
				r.daemons++
				if err := d.start(); err != nil {
					t.Fatal(err)
				}
			}
		}
		time.Sleep(time.Duration(rng.IntN(250)) * time.Millisecond)
		away := time.Duration(0)
		if m.away > 0 && n%every == every/2 {
			away = m.away
			r.aways++
		}
		r.strike(t, d, rng, away)
		if bug != "" && s.found() > 0 {
			break
		}
	}
	r.chaos = time.Since(began)
	revive := func() {
		if m.group != nil && !d.alive() && d.killed() { // the kernel did: the last storm left it next to nothing
			r.daemons++
			if err := d.start(); err != nil {
				t.Fatal(err)
			}
		}
	}
	// Whether a storm meets a watcher that lives and a subjob at work is chance while all is struck at. So they go on without strikes until
	// one was met, or the work is done.
	for end := time.Now().Add(unstruck); m.group != nil && !s.still.met(d) && time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		revive()
	}
	calm()
	revive()
	var states map[string]string
	for end := time.Now().Add(settle); bug == "" || s.found() == 0; {
		if !d.alive() {
			r.wrong = append(r.wrong, "the daemon ended by itself: "+tail(filepath.Join(dir, "daemon.log")))
			break
		}
		if states, err = d.states(); err == nil && allDone(states, r.jobs, submitted) {
			break
		}
		if time.Now().After(end) {
			r.wrong = append(r.wrong, fmt.Sprintf("not every job finished: %v %v", states, err))
			break
		}
		time.Sleep(200 * time.Millisecond)
	}
	time.Sleep(1500 * time.Millisecond) // what was committed last is published
	r.took = time.Since(began)
	r.wrong = append(r.wrong, s.close()...)
	r.samples, r.stood, r.acts = s.samples, s.still.stood, d.acts()
	for _, j := range r.jobs {
		if submitted[j.name] && (j.hostile == nil || j.hostile.reason == "") {
			r.wrong = append(r.wrong, checkOutput(d.data, j)...)
		} else if submitted[j.name] {
			r.wrong = append(r.wrong, checkNone(d.data, j)...)
		}
	}
	var wrong []string
	r.failed, wrong = judge(states, r.jobs)
	r.wrong = append(r.wrong, wrong...)
	written, refused := d.snapshots()
	r.snapshots, r.wrong = written, append(r.wrong, refused...)
	events, err := readEvents(d.data)
	if err != nil {
		r.wrong = append(r.wrong, err.Error())
	}
	r.started = len(events)
	r.wrong = append(r.wrong, checkEvents(events)...)
	return r
}

// strike kills something: the daemon, a supervisor, a process of a subjob, or several at once. A daemon that is to stay away is
// killed first, and what runs is struck at again while nobody sees it.
func (r *result) strike(t *testing.T, d *daemon, rng *rand.Rand, away time.Duration) {
	what := 1 + rng.IntN(7) // a bit for each
	if d.group != nil && rng.IntN(4) == 0 {
		for _, pid := range d.group.watchers() {
			if syscall.Kill(pid, syscall.SIGKILL) == nil {
				r.watchers++
			}
		}
	}
	if away > 0 {
		d.kill()
		r.daemons++
		time.Sleep(time.Duration(rng.Int64N(int64(away))))
	}
	if what&2 != 0 {
		if list := supervisors(d.data); len(list) > 0 && syscall.Kill(list[rng.IntN(len(list))], syscall.SIGKILL) == nil {
			r.supervisors++
		}
	}
	if what&4 != 0 {
		if list := subjobs(d.data); len(list) > 0 && syscall.Kill(list[rng.IntN(len(list))].pid, syscall.SIGKILL) == nil {
			r.subjobs++
		}
	}
	if away > 0 {
		time.Sleep(away)
		if err := d.start(); err != nil {
			t.Fatal(err)
		}
	} else if what&1 != 0 {
		d.kill()
		r.daemons++
		time.Sleep(time.Duration(rng.IntN(150)) * time.Millisecond)
		if err := d.start(); err != nil {
			t.Fatal(err)
		}
	}
}

// workloads is enough work to last for the kills: jobs of every kind.
func workloads(kills int) []workload {
	var out []workload
	for i := range 2 + kills/60 {
		out = append(out,
			workload{name: fmt.Sprintf("items-%d", i), kind: "items", total: 900},
			workload{name: fmt.Sprintf("steps-%d", i), kind: "steps", total: 400},
			workload{name: fmt.Sprintf("rigid-%d", i), kind: "rigid", total: 1},
			// Its owner said a third of the time it takes: its first pieces meet their deadlines.
			workload{name: fmt.Sprintf("late-%d", i), kind: "late", total: 120})
	}
	return out
}

// jobFile writes the job's file; its program is this test itself. The soak's kills are signals that Sluice did not send, so most of them
// count as failures of the job. A rigid job completes nothing before its end and so fails again with every kill that hits it: hence the
// largest maxFailures there is.
func jobFile(t *testing.T, dir string, j workload, grows bool) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	work := map[string]string{
		"items": fmt.Sprintf("items: {total: %d, perItem: 10ms, grid: 10, parallelism: 3}\n  startup: 100ms", j.total),
		"steps": fmt.Sprintf("steps: {total: %d, perStep: 10ms, every: 10, restore: 50ms, checkpoint: 20ms}\n  tauMin: 100ms\n  "+
			"startup: 100ms", j.total),
		"rigid": "rigid: {walltime: 3s}",
		"late":  fmt.Sprintf("items: {total: %d, perItem: 5ms, grid: 10, parallelism: 2}\n  startup: 100ms", j.total),
	}[j.kind]
	pace := map[string]string{"items": "8ms", "steps": "8ms", "rigid": "700ms", "late": "30ms"}[j.kind]
	grow := ""
	if grows {
		grow = ", SOAK_GROW: \"1\""
	}
	text := fmt.Sprintf(`apiVersion: sluice.dev/v1alpha1
kind: Job
metadata: {name: %s}
spec:
  %s
  memory: 64Mi
  maxFailures: 1000
  grace: 200ms
  env: {%s: %s, SOAK_PACE: %s%s}
  command: [%q]
`, j.name, work, workerVariable, j.kind, pace, grow, self)
	if j.hostile != nil {
		text = j.hostile.file(j.name)
	}
	path := filepath.Join(dir, j.name+".yaml")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func allDone(states map[string]string, jobs []workload, submitted map[string]bool) bool {
	for _, j := range jobs {
		if over, _, _ := j.ended(states[j.name]); submitted[j.name] && !over {
			return false
		}
	}
	return true
}

// judge lists the jobs that ended other than they must, and counts the hostile ones that failed, by kind and by reason.
func judge(states map[string]string, jobs []workload) (failed map[string]map[string]int, wrong []string) {
	failed = map[string]map[string]int{}
	for _, j := range jobs {
		over, how, err := j.ended(states[j.name])
		if over && err != nil {
			wrong = append(wrong, err.Error())
		}
		if how != "" {
			if failed[j.hostile.kind] == nil {
				failed[j.hostile.kind] = map[string]int{}
			}
			failed[j.hostile.kind][how]++
		}
	}
	return failed, wrong
}

// sweep ends whatever a planted bug has left behind.
func sweep(data string) {
	for _, pid := range supervisors(data) {
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may be gone
	}
	for range 20 {
		list := subjobs(data)
		for _, p := range list {
			_ = syscall.Kill(p.pid, syscall.SIGKILL) // it may be gone
		}
		if len(list) == 0 {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func tail(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	return strings.Join(lines[max(0, len(lines)-5):], " | ")
}
