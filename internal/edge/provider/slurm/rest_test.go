package slurm_test

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/provider"
	"sluice.dev/sluice/internal/edge/provider/slurm"
	"sluice.dev/sluice/internal/edge/provider/slurm/slurmtest"
)

// anyCluster is what a cluster may show at a moment: two nodes, and jobs of this user and another.
func anyCluster(begin time.Time) *rapid.Generator[slurmtest.State] {
	return rapid.Custom(func(rt *rapid.T) (s slurmtest.State) {
		draw := func(what string, least, most int) int { return rapid.IntRange(least, most).Draw(rt, what) }
		pick := func(what string, from ...string) string { return rapid.SampledFrom(from).Draw(rt, what) }
		at := func(what string) time.Time { return begin.Add(time.Duration(draw(what, -30, 60)) * time.Minute) }
		hosts := []string{"n0", "n1"}
		for _, name := range hosts {
			s.Nodes = append(s.Nodes, slurmtest.Node{Name: name, Partitions: pick("partitions", "normal,preempt", "preempt", "normal"),
				State: pick("node", "IDLE", "MIXED", "DOWN", "IDLE+DRAIN", "MIXED+COMPLETING", "IDLE+PLANNED"), Gres: "gpu:1g.10gb:2",
				GresUsed: fmt.Sprintf("gpu:1g.10gb:%d(IDX:0)", draw("used", 0, 2)), Features: "(null)", CPUs: 4,
				CPUAlloc: draw("alloc", 0, 4), Memory: 1000, AllocMem: draw("mem", 0, 10) * 100})
		}
		for i := range draw("jobs", 0, 4) {
			j := &slurmtest.Job{ID: i + 1, User: os.Geteuid() + draw("user", 0, 1), CPUs: draw("cpus", 1, 2),
				Partition: pick("partition", "preempt", "normal,preempt", "normal", "gpu"),
				Name:      pick("name", "sluice.aaaa1111.pool.a", "sluice.aaaa1111.pool.b", "sluice.bbbb2222.pool.a", "other"),
				State:     pick("state", "PENDING", "RUNNING", "COMPLETING", "COMPLETED", "FAILED", "CANCELLED", "PREEMPTED", "TIMEOUT"),
				Gres:      pick("gres", "gres:gpu:1g.10gb:1", "N/A"), Memory: pick("memory", "0", "100M"),
				Reason: pick("reason", "None", "Priority", "Resources"), Minutes: draw("minutes", 1, 60), Start: at("start")}
			if j.State == "PENDING" {
				if j.Meant = pick("meant", "n[0-1]", "n0", ""); j.Meant == "" {
					j.Start = time.Time{}
				}
			} else {
				j.Hosts, j.End = pick("host", hosts...), j.Start.Add(time.Duration(j.Minutes)*time.Minute)
				if draw("preempted", 0, 2) == 0 && j.Minutes > 1 {
					j.Preempted, j.End = j.Start, j.End.Add(-time.Minute)
				}
			}
			s.Jobs = append(s.Jobs, j)
		}
		if draw("reserved", 0, 2) == 0 {
			from := at("from")
			s.Reservations = []slurmtest.Reservation{{Name: "r", Nodes: "n0", Start: from, End: from.Add(time.Hour)}}
		}
		return s
	})
}

// Both ways of asking see the same in every cluster. The commands are the oracle; v0.0.38 may be blind, where others' jobs are expected.
func TestBothWaysSeeTheSame(t *testing.T) {
	h := slurmtest.New(t)
	old, newest := h.Serve("v0.0.38", ""), h.Serve("v0.0.45", "")
	begin := time.Now().UTC().Truncate(time.Second)
	gaps := 0
	for seed := range 40 {
		drawn := anyCluster(begin).Example(seed)
		h.Update(func(s *slurmtest.State) {
			s.Jobs, s.Nodes, s.Reservations = drawn.Jobs, drawn.Nodes, drawn.Reservations
		})
		want, err := open(t, options(h)).Look(t.Context()) // a fresh one: it remembers ends that moved
		gaps += len(want.Gaps)
		for _, r := range []*slurmtest.REST{old, newest} {
			got, failed := open(t, through(h, r)).Look(t.Context())
			if r == old && got.Blind && !want.Blind {
				if !slices.ContainsFunc(drawn.Jobs, func(j *slurmtest.Job) bool { return j.State == "PENDING" && !j.Start.IsZero() }) {
					t.Fatalf("seed %d: v0.0.38 is blind, and nobody is expected", seed)
				}
				got.Blind, got.Gaps = want.Blind, want.Gaps
			}
			for _, l := range []*provider.Look{&got, &want} { // each has a now of its own
				for i := range l.Gaps {
					if g := &l.Gaps[i]; time.Since(g.Start).Abs() < time.Minute {
						g.Start = begin
					}
				}
			}
			if errkind.Of(err) != errkind.Of(failed) || err == nil && !reflect.DeepEqual(got, want) {
				t.Fatalf("seed %d: %s sees\n%+v, %v\nand commands\n%+v, %v", seed, r.URL, got, failed, want, err)
			}
		}
	}
	if gaps == 0 {
		t.Error("no cluster had a gap: the test tests little")
	}
}

func TestWhatSlurmrestdIsAsked(t *testing.T) {
	for _, version := range []string{"v0.0.38", "v0.0.43"} {
		h := slurmtest.New(t)
		o := through(h, h.Serve(version, ""))
		o.Account, o.QOS, o.Exclude, o.Constraint, o.Memory = "lab", "low", "n7", "mig", 1<<30+1
		submit(t, open(t, o), "a")
		j := h.State().Jobs[0]
		args := " " + strings.Join(j.Args, " ") + " "
		for _, want := range []string{"--no-requeue", "--job-name=sluice.aaaa1111.pool.a", "--time=10", "--output=/dev/null",
			"--error=/dev/null", "--input=/dev/null", "--chdir=/", "--partition=preempt", "--gres=gpu:1g.10gb:1", "--cpus-per-task=1",
			"--mem=1025M", "--account=lab", "--qos=low", "--exclude=n7", "--constraint=mig", "--ntasks=1"} {
			if !strings.Contains(args, " "+want+" ") {
				t.Errorf("%s: %s: want %s", version, args, want)
			}
		}
		if want := []string{"PATH=/usr/local/bin:/usr/bin:/bin", "SLUICE_PILOT_TOKEN=sluice-join-1-secret"}; !slices.Equal(j.Env, want) {
			t.Errorf("%s: %q, want %q", version, j.Env, want)
		}
		if strings.Contains(j.Script, "sluice-join-1-secret") || !strings.HasPrefix(j.Script, "#!/bin/bash\n") {
			t.Errorf("%s: %s", version, j.Script)
		}
		o.Dir = t.TempDir()
		submit(t, open(t, o), "b")
		if j := h.State().Jobs[1]; len(j.Env) != 1 {
			t.Errorf("%s: %q: want its token in a file alone", version, j.Env)
		}
		if _, err := os.Stat(filepath.Join(o.Dir, "pilots", "sluice.aaaa1111.pool.b.token")); err != nil {
			t.Error(err)
		}
		o.UserSignal = true
		err := open(t, o).Submit(t.Context(), pilot("c"))
		if old := version == "v0.0.38"; old != (errkind.Of(err) == errkind.Unsupported) || !old && err != nil {
			t.Errorf("%s: a user signal: %v", version, err)
		}
	}
}

func TestOptionsOfREST(t *testing.T) {
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		change func(o *slurm.Options)
		want   string
	}{
		{func(o *slurm.Options) { o.REST.URL = "http://slurm.example" }, "rest: url"},
		{func(o *slurm.Options) { o.REST.User = "a b" }, "rest.user"},
		{func(o *slurm.Options) { o.REST.Version = "v1" }, "rest: version"},
		{func(o *slurm.Options) { o.Extra = []string{"--nice=5"} }, "extra: options of sbatch"},
		{func(o *slurm.Options) { o.REST.User, o.Dir = "somebody", "/shared" }, "pilots of somebody can't read what only " + me.Username},
	} {
		o := options(slurmtest.New(t))
		o.REST = &slurm.REST{URL: "unix:/run/slurmrestd.sock"}
		c.change(&o)
		if _, err := slurm.Open(o); errkind.Of(err) != errkind.Invalid || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v of kind %v: want %q", err, errkind.Of(err), c.want)
		}
	}
	o := options(slurmtest.New(t))
	o.Bin, o.REST = "/nonexistent", &slurm.REST{URL: "unix:/run/slurmrestd.sock"}
	text := open(t, o).Describe()
	if !strings.HasPrefix(text, "slurm at unix:/run/slurmrestd.sock: partition preempt") || o.REST.User != "" {
		t.Errorf("%q, %+v: want it opened where no command is, and the caller's options as they were", text, o.REST)
	}
}

// A token that has expired is Denied, in words that say what to do; one that is renewed is taken without a restart.
func TestATokenThatExpires(t *testing.T) {
	h := slurmtest.New(t)
	r := h.Serve("v0.0.43", "first.token")
	o := through(h, r)
	o.REST.TokenFile = filepath.Join(t.TempDir(), "jwt")
	write := func(token string) {
		if err := os.WriteFile(o.REST.TokenFile, []byte("SLURM_JWT="+token+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("first.token")
	s := open(t, o)
	submit(t, s, "a")
	r.Replace("v0.0.43", "second.token")
	if _, err := s.Look(t.Context()); errkind.Of(err) != errkind.Denied || !strings.Contains(err.Error(), "scontrol token") {
		t.Errorf("%v of kind %v, want denied", err, errkind.Of(err))
	}
	if err := s.Submit(t.Context(), pilot("b")); errkind.Of(err) != errkind.Denied {
		t.Errorf("%v of kind %v, want denied", err, errkind.Of(err))
	}
	write("second.token")
	if l := look(t, s); len(l.Seen) != 1 {
		t.Errorf("%+v: want a alone", l.Seen)
	}
	r.Replace("v0.0.38", "third.token")
	if _, err := s.Look(t.Context()); errkind.Of(err) != errkind.Unavailable || !strings.Contains(err.Error(), "has expired") {
		t.Errorf("v0.0.38: %v of kind %v, want unavailable, and what it may be", err, errkind.Of(err))
	}
	r.Replace("v0.0.45", "second.token") // upgraded
	submit(t, s, "c")
	if l := look(t, s); len(l.Seen) != 2 {
		t.Errorf("%+v: want a and c", l.Seen)
	}
	if err := os.Chmod(o.REST.TokenFile, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := slurm.Open(o); errkind.Of(err) != errkind.Denied {
		t.Errorf("%v: want a token that others may read refused", err)
	}
}

// Between a look and its end an id may become another job's, or nobody's: who it is now is asked, and others' jobs are never ended.
func TestWhoIsEndedThroughREST(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*slurmtest.State)
		ended  bool
	}{
		"the same":          {func(*slurmtest.State) {}, true},
		"of another name":   {func(s *slurmtest.State) { s.Jobs[0].Name = "sluice.aaaa1111.pool.b" }, false},
		"of somebody else":  {func(s *slurmtest.State) { s.Jobs[0].User++ }, false},
		"nobody's any more": {func(s *slurmtest.State) { s.Jobs[0].ID = 99 }, false},
	} {
		h := slurmtest.New(t)
		r := h.Serve("v0.0.38", "")
		s := open(t, through(h, r))
		submit(t, s, "a")
		r.After(c.change)
		if err := s.Cancel(t.Context(), []string{"a"}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if j := h.State().Jobs[0]; j.Killed != c.ended {
			t.Errorf("a job %s: %+v: want it ended: %t", name, j, c.ended)
		}
	}
}

// Through slurmrestd a look is three calls, whatever moved.
func TestALookThroughREST(t *testing.T) {
	h := slurmtest.New(t)
	s := open(t, through(h, h.Serve("v0.0.38", "")))
	submit(t, s, "a", "b", "c")
	for _, name := range []string{"a", "b", "c"} {
		h.Start(name)
		h.Preempt(name)
	}
	before := h.State().Calls
	for _, p := range look(t, s).Seen {
		if !p.Preempted {
			t.Errorf("%+v: want it preempted", p)
		}
	}
	now := h.State().Calls
	for name, n := range now {
		want := 0
		if slices.Contains([]string{"GET jobs", "GET nodes", "GET reservations"}, name) {
			want = 1
		}
		if n-before[name] != want {
			t.Errorf("a look calls %s %d times, want %d", name, n-before[name], want)
		}
	}
}

// Where a job is to begin v0.0.38 does not tell: what others are promised is not sold as a gap.
func TestExpectedStartsThroughREST(t *testing.T) {
	h := slurmtest.New(t)
	s := open(t, through(h, h.Serve("v0.0.38", "")))
	if l := look(t, s); l.Blind || len(l.Gaps) == 0 {
		t.Fatalf("%+v: want gaps", l)
	}
	h.Update(func(state *slurmtest.State) {
		state.Jobs = append(state.Jobs, &slurmtest.Job{ID: 9, Name: "other", User: os.Geteuid() + 1, State: "PENDING", CPUs: 1, Memory: "0",
			Minutes: 5, Start: time.Now().Add(time.Hour).Truncate(time.Second), Meant: "n0"})
	})
	if l := look(t, s); !l.Blind || len(l.Gaps) > 0 {
		t.Errorf("%+v: want it blind", l)
	}
	if l := look(t, open(t, through(h, h.Serve("v0.0.45", "")))); l.Blind || l.Gaps[0].End.IsZero() {
		t.Errorf("%+v: want gaps until that start", l)
	}
}

// A slurmrestd that hangs is left at the deadline.
func TestASlurmrestdThatHangs(t *testing.T) {
	h := slurmtest.New(t)
	o := through(h, h.Serve("v0.0.38", ""))
	o.Timeout = 300 * time.Millisecond
	s := open(t, o)
	look(t, s)
	h.Hang(true)
	if _, err := s.Look(t.Context()); errkind.Of(err) != errkind.Unavailable || !strings.Contains(err.Error(), "no answer within 300ms") {
		t.Errorf("%v of kind %v", err, errkind.Of(err))
	}
}
