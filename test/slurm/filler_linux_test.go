package slurm

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/provider"
	lender "sluice.dev/sluice/internal/edge/provider/slurm"
	"sluice.dev/sluice/test/slurm/cluster"
	"sluice.dev/sluice/test/witness"
)

// The parts of the page that these tests run.
const (
	setUp   = "### A filler of the site's own"
	itsCost = "### What it costs your users, and how to see it"
	// mostNodes and mostSubmitted are what the page allows the filler.
	mostNodes, mostSubmitted = 2, 6
	// grace of its QOS.
	grace = 30 * time.Second
)

// filled is a Slurm with accounting that is set up as the page says, and where users work in account lab.
func filled(t *testing.T) *cluster.Cluster {
	t.Helper()
	needAccounting(t)
	blocks := page(t, setUp)
	c, err := cluster.Start(t.Context(), cluster.Config{Dir: filepath.Join(t.TempDir(), "slurm"), Nodes: 4, CPUs: 4,
		Gres: []string{"gpu:1g.10gb:2"}, Accounting: true, Extra: strings.Split(strings.TrimSpace(onlyBlock(t, blocks, "ini")), "\n"),
		Partitions: []string{"PartitionName=main Nodes=ALL Default=YES MaxTime=UNLIMITED State=UP"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("slurmctld: %s; slurmdbd: %s", c.Tail("slurmctld"), c.Tail("slurmdbd"))
		}
	})
	for _, command := range append(commands(t, blocks, 0), "sacctmgr -i add account lab", "sacctmgr -i add user sluice Account=lab") {
		paste(t, c, command)
	}
	return c
}

// theUser is the filler's on the page.
var theUser = regexp.MustCompile(`\buser sluice\b`)

// paste runs a command of the page as this test's user, and returns what it printed.
func paste(t *testing.T, c *cluster.Cluster, command string) string {
	t.Helper()
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", theUser.ReplaceAllString(command, "user "+me.Username))
	cmd.Env = append(c.Env(), "PATH="+c.Bin()+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", command, err, out)
	}
	return string(out)
}

// key is the value of a key of the page's head.yaml.
func key(t *testing.T, text, name string) string {
	t.Helper()
	m := regexp.MustCompile(`(?m)^[ -]*` + name + `: (.*)$`).FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("head.yaml of the page has no %s", name)
	}
	return m[1]
}

// TestFiller goes through what the page tells admins, in order, with pilots that have whole nodes.
func TestFiller(t *testing.T) {
	c := filled(t)
	text := onlyBlock(t, page(t, setUp), "yaml")
	s := open(t, c, func(o *lender.Options) {
		o.Partition, o.Account, o.QOS = key(t, text, "partition"), key(t, text, "account"), key(t, text, "qos")
		o.Gres, o.UserSignal = "gpu:1g.10gb:2", true
	})
	f := &filler{map[string]string{}, map[string]bool{}, nil}
	for _, step := range []struct {
		name string
		do   func(s *site, f *filler)
	}{
		{"who may not use it is told so", fillerRights},
		{"never more run than the cap, and the rest waits", fillerCap},
		{"users' jobs preempt it", fillerGivesWay},
		{"accounting says what became of all", fillerAccounts},
		{"what is too long for it is seen never to start", fillerTooLong},
		{"it is stopped all at once, and let again", fillerStops},
	} {
		if !t.Run(step.name, func(t *testing.T) {
			part := *s
			part.T = t
			step.do(&part, f)
		}) {
			return
		}
	}
}

// filler is what a test has seen of one.
type filler struct {
	// ended is how sacct must say that jobs ended, by id, and started whether they ever began.
	ended   map[string]string
	started map[string]bool
	// hosts are ids of users' jobs.
	hosts []string
}

// note says how accounting must show a pilot that is ended now.
func (f *filler) note(p provider.Seen, ended string) {
	f.ended[p.ID], f.started[p.ID] = ended, p.State != provider.Waiting
}

func fillerRights(s *site, _ *filler) {
	p := provider.Pilot{Name: "a", Length: time.Minute, Head: "head:7118", Token: "secret"}
	for _, c := range []struct{ account, qos, want string }{
		{"nosuch", "filler", "Invalid account"},
		{"filler", "nosuch", "Invalid qos"},
		{"lab", "filler", "Invalid qos"},
		{"filler", "normal", "Invalid qos"},
	} {
		o := s.options
		o.Account, o.QOS = c.account, c.qos
		other, err := lender.Open(o)
		if err != nil {
			s.Fatal(err)
		}
		if trial, err := other.Try(s.Context(), p); err != nil || trial.Taken || !strings.Contains(trial.Why, c.want) {
			s.Errorf("account %s, qos %s: %+v, %v; want it refused with %q", c.account, c.qos, trial, err, c.want)
		}
		if err := other.Submit(s.Context(), p); errkind.Of(err) != errkind.Invalid || !strings.Contains(err.Error(), c.want) {
			s.Errorf("account %s, qos %s: %v of kind %v, want invalid with %q", c.account, c.qos, err, errkind.Of(err), c.want)
		}
	}
	if trial, err := s.provider.Try(s.Context(), p); err != nil || !trial.Taken {
		s.Errorf("%+v, %v: want it taken", trial, err)
	}
}

// running are the pilots that run, held to the cap by what squeue alone says.
func (s *site) running() (ids []string) {
	s.Helper()
	nodes := map[string]bool{}
	for _, line := range strings.Fields(s.slurm("squeue", "-h", "-A", "filler", "-t", "R", "-o", "%i|%N")) {
		id, node, _ := strings.Cut(line, "|")
		ids, nodes[node] = append(ids, id), true
	}
	if len(nodes) > mostNodes {
		s.Fatalf("%v run on %d nodes, and the cap is %d", ids, len(nodes), mostNodes)
	}
	return ids
}

// runs waits until so many pilots run.
func (s *site) runs(n int) {
	s.Helper()
	for until := time.Now().Add(time.Minute); len(s.running()) != n; time.Sleep(200 * time.Millisecond) {
		if time.Now().After(until) {
			s.Fatalf("%v run, want %d: %s", s.running(), n, s.slurm("squeue", "-o", "%i %T %r %q"))
		}
	}
}

func fillerCap(s *site, f *filler) {
	for i := range mostSubmitted {
		s.submit(fmt.Sprint("cap-", i))
	}
	p := provider.Pilot{Name: "more", Length: time.Minute, Head: "head:7118", Token: "secret"}
	if err := s.provider.Submit(s.Context(), p); errkind.Of(err) != errkind.Exhausted ||
		!strings.Contains(err.Error(), "QOSMaxSubmitJobPerUserLimit") {
		s.Errorf("%v of kind %v, want exhausted by the limit", err, errkind.Of(err))
	}
	if trial, err := s.provider.Try(s.Context(), p); err != nil || trial.Taken || !strings.Contains(trial.Why, "policy") {
		s.Errorf("%+v, %v: want it refused by the limit", trial, err)
	}
	s.runs(mostNodes)
	waits := s.until("cap-5", "kept back", func(p provider.Seen) bool { return p.Limited })
	if waits.State != provider.Waiting || waits.Why != "QOSGrpNodeLimit" {
		s.Errorf("%+v: want it to wait by the cap", waits)
	}
	shown := paste(s.T, s.cluster, commands(s.T, page(s.T, itsCost), 0)[0])
	if strings.Count(shown, " PENDING ") != 4 || strings.Count(shown, "(QOSGrpNodeLimit)") != 4 {
		s.Errorf("squeue shows\n%s, want four that wait by the cap", shown)
	}
	first := s.running()[0]
	for _, p := range s.look().Seen {
		if p.ID == first { // one that leaves makes room for one that waits
			f.note(p, "CANCELLED by ")
			s.cancel(p.Name)
			s.is(p.Name, provider.Ended)
		}
	}
	s.runs(mostNodes)
	names := map[provider.State][]string{}
	for _, p := range s.look().Seen {
		names[p.State] = append(names[p.State], p.Name)
		f.note(p, "CANCELLED by ")
	}
	if len(names[provider.Waiting]) != mostSubmitted-1-mostNodes {
		s.Errorf("%v: want one gone, two that run, and the others waiting", names)
	}
	s.cancel(names[provider.Waiting]...) // first: they would start as soon as others leave
	s.cancel(names[provider.Running]...)
	s.runs(0)
}

// fillerGivesWay: one is told of its preemption and leaves at once, another knows of nothing until its grace is over.
func fillerGivesWay(s *site, f *filler) {
	deaf := s.options
	deaf.UserSignal = false
	other, err := lender.Open(deaf)
	if err != nil {
		s.Fatal(err)
	}
	if err := s.cluster.Idle(s.Context()); err != nil {
		s.Fatal(err)
	}
	s.submit("told")
	if err := other.Submit(s.Context(), provider.Pilot{Name: "deaf", Length: 10 * time.Minute, Head: "head:7118", Token: "t"}); err != nil {
		s.Fatal(err)
	}
	told, silent := s.is("told", provider.Running), s.is("deaf", provider.Running)
	f.note(told, "COMPLETED")
	f.note(silent, "PREEMPTED")
	s.read("args." + told.ID)
	s.read("args." + silent.ID)
	s.submit("waits", "waits-too")
	began := time.Now()
	host := s.slurm("sbatch", "--parsable", "-A", "lab", "-N", "4", "--exclusive", "-t", "5", "-o", "/dev/null", "--wrap", "sleep 3")
	f.hosts = append(f.hosts, host)
	if p := s.until("told", "preempted", func(p provider.Seen) bool { return p.Preempted }); p.Failed {
		s.Errorf("%+v: a preemption is no failure", p)
	}
	s.is("told", provider.Ended)
	s.Logf("the one that was told was gone after %v", time.Since(began).Round(time.Second))
	if time.Since(began) >= grace {
		s.Errorf("the one that was told left after %v", time.Since(began))
	}
	if p := s.is("deaf", provider.Ended); !p.Preempted || p.Failed {
		s.Errorf("%+v: want it preempted, which is no failure", p)
	}
	s.read("told." + silent.ID)
	for s.slurm("squeue", "-h", "-t", "PD", "-j", host, "-o", "%i") != "" {
		if time.Since(began) > grace+90*time.Second {
			s.Fatalf("the users' job still waits: %s", s.slurm("squeue", "-o", "%i %T %r %q"))
		}
		if ids := s.running(); len(ids) > 0 && !slices.ContainsFunc(ids, func(id string) bool { return id == silent.ID || id == told.ID }) {
			s.Errorf("%v began before the users' job that waits", ids)
		}
		time.Sleep(200 * time.Millisecond)
	}
	s.Logf("the users' job waited %v", time.Since(began).Round(time.Second))
	if waited := time.Since(began); waited > grace+50*time.Second { // the grace, a tick of 30 s, and what starting takes
		s.Errorf("the users' job waited %v", waited)
	}
	done := s.is("waits", provider.Running) // once the users' job is over
	s.is("waits-too", provider.Running)
	f.note(done, "COMPLETED")
	s.read("args." + done.ID)
	s.slurm("scancel", "--signal=TERM", "--full", done.ID) // as when its daemon ends by itself
	s.is("waits", provider.Ended)
	left := s.is("waits-too", provider.Running)
	f.note(left, "CANCELLED by ")
	s.cancel("waits-too")
	s.runs(0)
}

func fillerAccounts(s *site, f *filler) {
	list := commands(s.T, page(s.T, itsCost), 0)
	var wrong []string
	for until := time.Now().Add(30 * time.Second); ; time.Sleep(500 * time.Millisecond) {
		wrong = nil
		states, began := map[string]string{}, map[string]bool{}
		for line := range strings.Lines(paste(s.T, s.cluster, list[1])) {
			if fields := strings.Split(strings.TrimSpace(line), "|"); len(fields) == 5 {
				states[fields[0]], began[fields[0]] = fields[1], fields[4] != "0"
			}
		}
		for id, want := range f.ended {
			if !strings.HasPrefix(states[id], want) || began[id] != f.started[id] {
				wrong = append(wrong, fmt.Sprintf("pilot %s is %q, and began %t; want %q, %t", id, states[id], began[id], want,
					f.started[id]))
			}
		}
		if len(wrong) == 0 || time.Now().After(until) {
			break
		}
	}
	if len(wrong) > 0 {
		s.Errorf("sacct: %s", strings.Join(wrong, "; "))
	}
	for _, id := range f.hosts { // also what was put back into the queue has a row
		if rows := s.slurm("sacct", "-n", "-X", "-D", "-P", "-j", id, "-o", "State,ExitCode"); rows != "COMPLETED|0:0" {
			s.Errorf("users' job %s: %q, want that it ran once, and whole", id, rows)
		}
		if shown := paste(s.T, s.cluster, list[2]); !strings.Contains(shown, "\n"+id+"|normal|COMPLETED|") {
			s.Errorf("the users' jobs are shown as %s", shown)
		}
	}
}

// fillerTooLong: Slurm takes a pilot that its QOS never lets start.
func fillerTooLong(s *site, _ *filler) {
	s.slurm("sacctmgr", "-i", "modify", "qos", "filler", "set", "MaxWall=5")
	s.submit("long")
	p := s.until("long", "seen never to start", func(p provider.Seen) bool { return p.Never })
	if p.State != provider.Waiting || p.Why != "QOSMaxWallDurationPerJobLimit" {
		s.Errorf("%+v", p)
	}
	s.cancel("long")
	s.slurm("sacctmgr", "-i", "modify", "qos", "filler", "set", "MaxWall=-1")
}

func fillerStops(s *site, _ *filler) {
	s.submit("stop-0", "stop-1", "stop-2")
	s.runs(mostNodes)
	blocks := page(s.T, itsCost)
	for _, command := range commands(s.T, blocks, 1) {
		paste(s.T, s.cluster, command)
	}
	for _, name := range []string{"stop-0", "stop-1", "stop-2"} {
		if p := s.is(name, provider.Ended); p.Failed || p.Preempted {
			s.Errorf("%+v was ended by an admin", p)
		}
	}
	p := provider.Pilot{Name: "later", Length: time.Minute, Head: "head:7118", Token: "secret"}
	if err := s.provider.Submit(s.Context(), p); errkind.Of(err) != errkind.Exhausted {
		s.Errorf("%v of kind %v, want exhausted", err, errkind.Of(err))
	}
	for _, command := range commands(s.T, blocks, 2) {
		paste(s.T, s.cluster, command)
	}
	s.submit("again")
	s.is("again", provider.Running)
}

// TestFillerOfAHead: a head with the page's pool that wants more pilots than it may have keeps those that it may, says what keeps the
// others back, and has them again once users' jobs that took their nodes are over.
func TestFillerOfAHead(t *testing.T) {
	c := filled(t)
	bin := programs(t)
	w := emptyWorld(t, c)
	text := onlyBlock(t, page(t, setUp), "yaml")
	name, allowed := key(t, text, "name"), 2*mostNodes // two slices of each node
	for key, value := range map[string]string{"atMost": fmt.Sprint(mostSubmitted + 2), "memory": "100Mi",
		"shared": filepath.Join(w.dir, "shared")} {
		text = regexp.MustCompile(`(?m)^  `+key+`: .*$`).ReplaceAllString(text, "  "+key+": "+value)
	}
	text += fmt.Sprintf("  idle: 5s\n  start: 5s\n  every: 1s\n  scratch: %s\n  sluice: %s\n  gpus: \"sim:custom,mem=9856Mi,speed=143\"\n",
		filepath.Join(w.dir, "scratch"), filepath.Join(bin, "sluice"))
	w.run(bin, text, &witness.Client{Units: 20_000, AtOnce: 3, Many: 8, Few: 8})
	s := &site{T: t, cluster: c}
	w.submits()
	joined := func() error {
		shown, err := w.client.Sluice("providers", name)
		if err == nil {
			s.running()
		}
		if n := strings.Count(shown, " joined "); err == nil && n != allowed {
			err = fmt.Errorf("%d have joined:\n%s", n, shown)
		}
		return err
	}
	w.until("as many have joined as the cap allows", 90*time.Second, joined)
	w.until("it says what keeps the others back", time.Minute, func() error {
		shown, err := w.client.Sluice("providers", name)
		if err == nil && (!regexp.MustCompile(` waiting .*(QOSGrpNodeLimit|QOSMaxJobsPerUserLimit)`).MatchString(shown) ||
			!strings.Contains(shown, "the host takes no more for now") ||
			!strings.Contains(shown, "QOSMaxSubmitJobPerUserLimit")) {
			err = fmt.Errorf("it says\n%s", shown)
		}
		return err
	})
	host := s.slurm("sbatch", "--parsable", "-A", "lab", "-N", "4", "--exclusive", "-t", "5", "-o", "/dev/null", "--wrap", "sleep 2")
	w.until("the users' job is done", grace+90*time.Second, func() error {
		if state := s.slurm("squeue", "-h", "-t", "all", "-j", host, "-o", "%T"); state != "COMPLETED" {
			return fmt.Errorf("it is %s", state)
		}
		return nil
	})
	w.until("the filler has its nodes again", 90*time.Second, joined)
	shown, err := w.client.Sluice("providers", name)
	if err != nil || strings.Contains(shown, "asking failed") {
		t.Errorf("%v: neither a limit nor a preemption is a failure:\n%s", err, shown)
	}
	if _, err = w.client.Insist("providers", "pause", name); err != nil {
		t.Error(err)
	}
	s.slurm("scancel", "-A", "filler")
	s.runs(0)
}

// TestAFailedStartLeavesNothing: of a cluster whose slurmctld does not come up the database and all else that had started are gone.
func TestAFailedStartLeavesNothing(t *testing.T) {
	needAccounting(t)
	dir := filepath.Join(t.TempDir(), "slurm")
	ctx, end := context.WithTimeout(t.Context(), 20*time.Second)
	defer end()
	c, err := cluster.Start(ctx, cluster.Config{Dir: dir, Nodes: 1, CPUs: 1, Accounting: true,
		Partitions: []string{"PartitionName=a Nodes=nosuch"}})
	if err == nil || !strings.Contains(err.Error(), "slurmctld: ") {
		t.Errorf("%v, %v: want that slurmctld says why it ended", c, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "slurmctld.out")); err != nil { // begun after all of accounting answered
		t.Errorf("it had come less far: %v", err)
	}
	if pids := processes(dir + "/"); len(pids) > 0 {
		t.Errorf("processes %v are left", pids)
	}
}
