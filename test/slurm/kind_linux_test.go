package slurm

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/provider"
	lender "sluice.dev/sluice/internal/edge/provider/slurm"
	"sluice.dev/sluice/test/slurm/cluster"
)

// start makes a cluster with partitions normal and preempt and n nodes of 4 processors and two gpu:1g.10gb, or skips the test. extra are
// lines of slurm.conf.
func start(t *testing.T, n int, extra ...string) *cluster.Cluster {
	t.Helper()
	return begin(t, cluster.Config{Dir: filepath.Join(folder(t, 0o755), "slurm"), Nodes: n, CPUs: 4, Gres: []string{"gpu:1g.10gb:2"},
		Preempt: true, Extra: extra})
}

// begin starts a cluster, or skips the test.
func begin(t *testing.T, config cluster.Config) *cluster.Cluster {
	t.Helper()
	need(t)
	c, err := cluster.Start(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("slurmctld: %s", c.Tail("slurmctld"))
		}
	})
	return c
}

// folder is one that other users may go into: those of package testing are not.
func folder(t *testing.T, mode os.FileMode) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "sluice-slurm-") //nolint:usetesting // its folder is this user's alone
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, mode); err != nil {
		t.Fatal(err)
	}
	return dir
}

// program stands for sluice on the nodes: it writes down what it was called with, and ends well when it is told to.
const program = `#!/bin/bash
printf '%%s ' "$@" >%[1]s/args.$SLURM_JOB_ID
env >%[1]s/env.$SLURM_JOB_ID
trap 'echo told >%[1]s/told.$SLURM_JOB_ID; exit 0' TERM
while :; do sleep 0.1; done
`

// site is a cluster with a provider of it.
type site struct {
	*testing.T
	cluster  *cluster.Cluster
	provider *lender.Slurm
	options  lender.Options
	// said is where programs on nodes write, scratch where pilots keep their data.
	said, scratch string
}

func open(t *testing.T, c *cluster.Cluster, change ...func(*lender.Options)) *site {
	t.Helper()
	s := &site{T: t, cluster: c, said: folder(t, 0o777), scratch: folder(t, 0o777)}
	path := filepath.Join(s.said, "sluice")
	if err := os.WriteFile(path, fmt.Appendf(nil, program, s.said), 0o755); err != nil {
		t.Fatal(err)
	}
	s.options = lender.Options{Mark: "aaaa1111", Pool: "pool", Bin: c.Bin(), Partition: "preempt", Gres: "gpu:1g.10gb:1", CPUs: 1,
		Memory: 100 << 20, Dir: t.TempDir(), Scratch: s.scratch, Sluice: path}
	for _, f := range change {
		f(&s.options)
	}
	var err error
	if s.provider, err = lender.Open(s.options); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *site) look() provider.Look {
	s.Helper()
	l, err := s.provider.Look(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	return l
}

// until waits until a copy of a pilot is as wanted, and returns it. Slurm looks at ends each 30 s, and kills 30 s later.
func (s *site) until(name, what string, is func(provider.Seen) bool) provider.Seen {
	s.Helper()
	var last provider.Look
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		var err error
		if last, err = s.provider.Look(s.Context()); err != nil {
			continue // slurmctld starts
		}
		for _, p := range last.Seen {
			if p.Name == name && is(p) {
				return p
			}
		}
	}
	s.Fatalf("%s is never %s: %+v", name, what, last.Seen)
	return provider.Seen{}
}

func (s *site) is(name string, state provider.State) provider.Seen {
	s.Helper()
	return s.until(name, fmt.Sprint("in state ", state), func(p provider.Seen) bool { return p.State == state })
}

func (s *site) submit(names ...string) {
	s.Helper()
	for _, name := range names {
		p := provider.Pilot{Name: name, Length: 10 * time.Minute, Head: "head.example:7118", Token: "sluice-join-1-secret"}
		if err := s.provider.Submit(s.Context(), p); err != nil {
			s.Fatal(err)
		}
	}
}

func (s *site) cancel(names ...string) {
	s.Helper()
	if err := s.provider.Cancel(s.Context(), names); err != nil {
		s.Fatal(err)
	}
}

// read is what a program on a node has written, waited for.
func (s *site) read(name string) string {
	s.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if text, err := os.ReadFile(filepath.Join(s.said, name)); err == nil && len(text) > 0 {
			return string(text)
		}
	}
	s.Fatalf("there is no %s", name)
	return ""
}

// slurm runs a command of Slurm's.
func (s *site) slurm(name string, args ...string) string {
	s.Helper()
	out, err := s.cluster.Run(s.Context(), name, args...)
	if err != nil {
		s.Fatal(err)
	}
	return out
}

// shown is all that slurmrestd says of a job; empty: there is none.
func (s *site) shown(id string) string {
	s.Helper()
	if s.options.REST == nil {
		return ""
	}
	socket := strings.TrimPrefix(s.options.REST.URL, "unix:")
	to := http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		}}}
	q, err := http.NewRequestWithContext(s.Context(), http.MethodGet, "http://slurm/slurm/v0.0.38/job/"+id, nil)
	if err != nil {
		s.Fatal(err)
	}
	reply, err := to.Do(q)
	if err != nil {
		s.Fatal(err)
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err != nil || !strings.Contains(string(text), "sluice.aaaa1111.pool.") {
		s.Fatalf("%s, %v: want job %s", text, err, id)
	}
	return string(text)
}

// restart kills slurmctld and starts it again.
func (s *site) restart() {
	s.Helper()
	s.cluster.KillController()
	ctx, end := context.WithTimeout(s.Context(), 3*time.Second)
	defer end()
	if _, err := s.provider.Look(ctx); errkind.Of(err) != errkind.Unavailable {
		s.Errorf("without slurmctld: %v of kind %v, want unavailable", err, errkind.Of(err))
	}
	if err := s.cluster.StartController(); err != nil {
		s.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if _, err := s.provider.Look(s.Context()); err == nil {
			return
		}
	}
	s.Fatal("slurmctld does not answer again")
}

// TestKind goes through a provider's life on a real Slurm, in order.
func TestKind(t *testing.T) { life(t, open(t, start(t, 2))) }

// through starts a slurmrestd of a cluster, and has a provider ask that.
func through(t *testing.T, c *cluster.Cluster, byToken bool) func(*lender.Options) {
	t.Helper()
	if err := cluster.FindREST(); err != nil && os.Getenv("SLUICE_SLURM") != "require" {
		t.Skip(err)
	}
	r, err := c.StartREST(t.Context(), byToken)
	if err != nil {
		t.Fatal(err)
	}
	return func(o *lender.Options) {
		o.Bin, o.REST = "", &lender.REST{URL: r.URL, User: r.User}
		o.Dir = "" // pilots may be another user's, who can't read what lies there
	}
}

// TestKindThroughREST is the same life where Slurm is asked through slurmrestd.
func TestKindThroughREST(t *testing.T) {
	c := start(t, 2)
	s := open(t, c, through(t, c, false))
	life(t, s)
	o := s.options
	o.UserSignal = true
	other, err := lender.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	p := provider.Pilot{Name: "a", Length: time.Minute, Head: "head:7118", Token: "secret"}
	if err := other.Submit(t.Context(), p); errkind.Of(err) != errkind.Unsupported {
		t.Errorf("a user signal: %v of kind %v, want unsupported", err, errkind.Of(err))
	}
}

// TestRESTByToken: where a JWT says who asks one that has expired is told of, and one that is renewed is taken.
func TestRESTByToken(t *testing.T) {
	key := filepath.Join(folder(t, 0o755), "key")
	if err := os.WriteFile(key, []byte(rand.Text()+rand.Text()), 0o600); err != nil {
		t.Fatal(err)
	}
	c := start(t, 1, "AuthAltTypes=auth/jwt", "AuthAltParameters=jwt_key="+key)
	path := filepath.Join(t.TempDir(), "jwt")
	var user string
	renew := func(seconds int) {
		token, err := c.Run(t.Context(), "scontrol", "token", "username="+user, fmt.Sprint("lifespan=", seconds))
		if err == nil {
			err = os.WriteFile(path, []byte(token+"\n"), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	s := open(t, c, through(t, c, true), func(o *lender.Options) {
		user, o.REST.TokenFile = o.REST.User, path
		renew(600)
	})
	s.submit("a")
	s.is("a", provider.Running)
	renew(1)
	time.Sleep(3 * time.Second)
	if _, err := s.provider.Look(t.Context()); errkind.Of(err) != errkind.Unavailable || !strings.Contains(err.Error(), "has expired") {
		t.Errorf("%v of kind %v: want it unavailable, and what it may be", err, errkind.Of(err))
	}
	renew(600)
	s.cancel("a")
	s.is("a", provider.Ended)
}

// life goes through a provider's life.
func life(t *testing.T, s *site) {
	t.Helper()
	for _, c := range []struct {
		name string
		do   func(s *site)
	}{
		{"gaps end where reservations begin", gaps},
		{"a trial says when, and what can't be", tries},
		{"a partition that is not there is named", partition},
		{"a pilot runs, and is ended by name", lives},
		{"slurmctld dies without a word", crashes},
		{"a preempted pilot is seen at once", preemption},
	} {
		if !t.Run(c.name, func(t *testing.T) {
			part := *s
			part.T = t
			c.do(&part)
		}) {
			return
		}
	}
}

func gaps(s *site) {
	l := s.look()
	if l.Blind || len(l.Gaps) != 1 || l.Gaps[0].Count != 4 || !l.Gaps[0].End.IsZero() {
		s.Fatalf("%+v: want room for four, for good", l)
	}
	from := time.Now().Add(20 * time.Minute).Truncate(time.Second)
	if err := s.cluster.Reserve(s.Context(), "later", from, 10*time.Minute, "n0"); err != nil {
		s.Fatal(err)
	}
	l = s.look()
	if len(l.Gaps) != 3 || !l.Gaps[0].End.Equal(from) || l.Gaps[0].Count != 2 || !l.Gaps[1].End.IsZero() || l.Gaps[1].Count != 2 ||
		!l.Gaps[2].Start.Equal(from.Add(10*time.Minute)) || l.Gaps[2].Count != 2 {
		s.Fatalf("%+v: want room for two until %v and from 10 minutes later, and for two more for good", l.Gaps, from)
	}
	s.slurm("scontrol", "delete", "reservation=later")
}

func tries(s *site) {
	p := provider.Pilot{Name: "a", Length: 10 * time.Minute, Head: "head:7118", Token: "secret"}
	trial, err := s.provider.Try(s.Context(), p)
	if s.options.REST != nil {
		if errkind.Of(err) != errkind.Unsupported {
			s.Errorf("%+v, %v of kind %v: slurmrestd knows no trial", trial, err, errkind.Of(err))
		}
	} else if err != nil || !trial.Taken || time.Since(trial.Starts).Abs() > 10*time.Minute {
		s.Errorf("%+v, %v: want it taken about now", trial, err)
	}
	p.Length = 5 * time.Hour // the partition allows four; Slurm would take it and never start it
	if trial, err = s.provider.Try(s.Context(), p); err != nil || trial.Taken || !strings.Contains(trial.Why, "4h") {
		s.Errorf("%+v, %v: want it refused for its length", trial, err)
	}
	o := s.options
	o.Gres, p.Length = "gpu:h100:1", time.Minute
	other, err := lender.Open(o)
	if err != nil {
		s.Fatal(err)
	}
	if trial, err = other.Try(s.Context(), p); s.options.REST == nil && (err != nil || trial.Taken || trial.Why == "") {
		s.Errorf("%+v, %v: want it refused for its device", trial, err)
	}
	if err := other.Submit(s.Context(), p); errkind.Of(err) != errkind.Invalid {
		s.Errorf("%v of kind %v, want invalid", err, errkind.Of(err))
	}
	if l := s.look(); len(l.Seen) != 0 {
		s.Errorf("%+v: trials leave nothing", l.Seen)
	}
}

func partition(s *site) {
	o := s.options
	o.Partition = "nosuch"
	other, err := lender.Open(o)
	if err != nil {
		s.Fatal(err)
	}
	if _, err = other.Look(s.Context()); errkind.Of(err) != errkind.Invalid || !strings.Contains(err.Error(), "nosuch") {
		s.Errorf("%v of kind %v, want one that names it", err, errkind.Of(err))
	}
}

func lives(s *site) {
	s.submit("lives")
	p := s.is("lives", provider.Running)
	if p.End.Sub(p.Began) != 10*time.Minute || time.Since(p.Began).Abs() > 5*time.Minute {
		s.Errorf("it runs from %v to %v", p.Began, p.End)
	}
	args := s.read("args." + p.ID)
	for _, want := range []string{"join head.example:7118 ", "--name lives ", "--listen 127.0.0.1:0 ", "--ephemeral",
		"--until " + p.End.UTC().Format("2006-01-02T15:04:05Z"), "--data " + s.scratch + "/sluice-aaaa1111."} {
		if !strings.Contains(args, want) {
			s.Errorf("called with %q, want %q", args, want)
		}
	}
	if env := s.read("env." + p.ID); !strings.Contains(env, "SLURM_GPUS_ON_NODE=1\n") || strings.Contains(env, "sluice-join-1-secret") {
		s.Errorf("it runs with %s", env)
	}
	for _, path := range []string{"squeue -h -a -t all -o %all", "scontrol show job -d -o"} {
		words := strings.Fields(path)
		if text := s.slurm(words[0], words[1:]...); strings.Contains(text, "sluice-join-1-secret") {
			s.Errorf("%s shows the token", path)
		}
	}
	if said := s.shown(p.ID); strings.Contains(said, "sluice-join-1-secret") {
		s.Errorf("slurmrestd shows the token: %s", said)
	}
	if text := s.slurm("scontrol", "show", "job", "-o", p.ID); !strings.Contains(text, " Requeue=0 ") {
		s.Errorf("%s: want a job that runs once", text)
	}
	if l := s.look(); len(l.Gaps) < 1 || l.Gaps[0].Count != 3 || l.Gaps[len(l.Gaps)-1].Start.Before(p.End) {
		s.Errorf("%+v: want room for three now, and for one more at %v", l.Gaps, p.End)
	}
	s.cancel("lives")
	if p = s.is("lives", provider.Ended); p.Failed || p.Preempted {
		s.Errorf("%+v was cancelled", p)
	}
	s.read("told." + p.ID)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		s.look() // which removes tokens
		left, _ := filepath.Glob(s.scratch + "/*")
		tokens, _ := filepath.Glob(s.options.Dir + "/pilots/*")
		if len(left)+len(tokens) == 0 {
			break
		}
		if time.Now().After(deadline) {
			text, _ := os.ReadFile(strings.Join(tokens, ""))
			s.Fatalf("left behind: %v, %v: %s", left, tokens, text)
		}
	}
}

// crashes: what Slurm acknowledged is lost and its id given again, and who was cancelled comes back.
func crashes(s *site) {
	all := s.slurm("sbatch", "--parsable", "-p", "normal", "-N", "2", "--exclusive", "-t", "60", "-o", "/dev/null", "--wrap", "sleep 3000")
	for deadline := time.Now().Add(time.Minute); s.slurm("squeue", "-h", "-o", "%T", "-j", all) != "RUNNING"; {
		if time.Now().After(deadline) {
			s.Fatal("the job of others does not start")
		}
		time.Sleep(100 * time.Millisecond)
	}
	if l := s.look(); len(l.Gaps) != 1 || l.Gaps[0].Start.Before(time.Now().Add(30*time.Minute)) || l.Gaps[0].Count != 4 {
		s.Errorf("%+v: want no room until the others' hour is over", l.Gaps)
	}
	s.submit("back")
	s.is("back", provider.Waiting)
	time.Sleep(7 * time.Second) // state is written at most every 5 s
	s.cancel("back")
	s.is("back", provider.Ended)
	s.restart()
	s.is("back", provider.Waiting) // Slurm forgets who was cancelled while it waited
	s.cancel("back")
	s.is("back", provider.Ended)

	time.Sleep(6 * time.Second)
	s.submit("saved")
	s.submit("lost") // less than 5 s later: not written
	lost := s.is("lost", provider.Waiting)
	s.restart()
	for _, p := range s.look().Seen {
		if p.Name == "lost" {
			s.Logf("job %s was saved after all: nothing to see", p.ID)
			s.cancel("saved", "lost", "back")
			s.slurm("scancel", all)
			return
		}
	}
	s.submit("next")
	if next := s.is("next", provider.Waiting); next.ID != lost.ID && next.ID != "" {
		s.Logf("id %s of a job that was lost was not given again: the next has %s", lost.ID, next.ID)
	}
	s.cancel("lost")
	if p := s.is("next", provider.Waiting); p.State != provider.Waiting {
		s.Errorf("%+v: another's cancel ended it", p)
	}
	s.cancel("saved", "next", "back")
	s.slurm("scancel", all)
}

func preemption(s *site) {
	if err := s.cluster.Idle(s.Context()); err != nil {
		s.Fatal(err)
	}
	s.submit("gives-way")
	began := s.is("gives-way", provider.Running)
	s.read("args." + began.ID)
	s.slurm("sbatch", "-p", "normal", "-N", "2", "--exclusive", "-t", "60", "-o", "/dev/null", "--wrap", "sleep 3000")
	p := s.until("gives-way", "preempted", func(p provider.Seen) bool { return p.Preempted })
	if p.State == provider.Running && !p.End.Before(began.End) {
		s.Errorf("%+v: want its end moved from %v", p, began.End)
	}
	if p = s.is("gives-way", provider.Ended); !p.Preempted || p.Failed {
		s.Errorf("%+v: want it preempted, which is no failure", p)
	}
	s.read("told." + began.ID)
}

// TestUserSignal: where the site says so, a pilot is told of its preemption at once, and has left before its grace is over.
func TestUserSignal(t *testing.T) {
	s := open(t, start(t, 1, "SlurmctldParameters=preempt_send_user_signal"), func(o *lender.Options) { o.UserSignal = true })
	s.submit("gives-way")
	began := s.is("gives-way", provider.Running)
	s.read("args." + began.ID)
	s.slurm("sbatch", "-p", "normal", "-N", "1", "--exclusive", "-t", "60", "-o", "/dev/null", "--wrap", "sleep 3000")
	s.read("told." + began.ID)
	p := s.is("gives-way", provider.Ended)
	if p.Failed || !p.Preempted || p.End.Sub(p.Began) >= 10*time.Minute {
		s.Errorf("%+v: want it left early since it was preempted, which is no failure", p)
	}
}
