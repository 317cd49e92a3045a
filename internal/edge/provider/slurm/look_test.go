package slurm_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/provider"
	"sluice.dev/sluice/internal/edge/provider/slurm"
	"sluice.dev/sluice/internal/edge/provider/slurm/slurmtest"
)

func pilot(name string) provider.Pilot {
	return provider.Pilot{Name: name, Length: 10 * time.Minute, Head: "head:7118", Token: "sluice-join-1-secret"}
}

func submit(t *testing.T, s *slurm.Slurm, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := s.Submit(t.Context(), pilot(name)); err != nil {
			t.Fatal(err)
		}
	}
}

func look(t *testing.T, s *slurm.Slurm) provider.Look {
	t.Helper()
	l, err := s.Look(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Options that can't be are refused whole, each with its name.
func TestOptionsAreChecked(t *testing.T) {
	h := slurmtest.New(t)
	o := slurm.Options{Bin: h.Bin, Mark: "Ab", Pool: "a.b", Partition: "a,b", Gres: ":", QOS: "--x",
		Constraint: "a b", Sluice: "sluice", Dir: "here", Scratch: "$(id)", Before: []string{"a\nb"}, CPUs: -1, Extra: []string{"--time=5"}}
	_, err := slurm.Open(o)
	if errkind.Of(err) != errkind.Invalid {
		t.Fatalf("%v, want one of kind invalid", err)
	}
	for _, part := range []string{`mark "Ab"`, `name "a.b"`, `partition "a,b"`, "gres", "qos", "constraint", "sluice", "dir",
		"scratch", `"a\nb"`, "cpus", `extra "--time=5"`} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%v: nothing of %s", err, part)
		}
	}
	o = options(h)
	o.Bin = t.TempDir()
	if _, err := slurm.Open(o); errkind.Of(err) != errkind.Unsupported {
		t.Errorf("without commands: %v of kind %v", err, errkind.Of(err))
	}
}

func TestExtraOptionsThatClashAreRefused(t *testing.T) {
	h := slurmtest.New(t)
	for extra, good := range map[string]bool{
		"--nice=100": true, "--exclusive": true, "--mem-per-cpu=1G": true, "--begin=now+1hour": true, "--licenses=a:1": true,
		"--requeue": false, "--req": false, "--job-name=x": false, "--job": false, "--time=1": false, "--time-min=1": false,
		"--time-m=1":  false,
		"--array=1-5": false, "--export=ALL": false, "--exp=ALL": false, "--output=x": false, "--err=x": false, "--wrap=id": false,
		"--signal=KILL": false, "--parsable": false, "-J": false, "-t5": false, "--": false, "script": false, "": false, "--nice 5": false,
		"--comment=x": false, "--no-req": false, "--mem=1": false, "--wait": false, "--test-only": false, "--Nice=5": false,
	} {
		o := options(h)
		o.Extra = []string{extra}
		if _, err := slurm.Open(o); (err == nil) != good || err != nil && errkind.Of(err) != errkind.Invalid {
			t.Errorf("%q: %v, want taken: %t", extra, err, good)
		}
	}
}

// A command gets what it needs of the environment, and no setting of Slurm's that would change what is asked or answered.
func TestTheEnvironmentOfCommands(t *testing.T) {
	for name, value := range map[string]string{"SBATCH_TIMELIMIT": "1", "SQUEUE_FORMAT": "%i",
		"SLURM_TIME_FORMAT": "relative", "SCANCEL_USER": "x", "SLURM_CONF": "/etc/other.conf", "TZ": "America/New_York", "SECRET": "s"} {
		t.Setenv(name, value)
	}
	h := slurmtest.New(t)
	s := open(t, options(h))
	submit(t, s, "a")
	wanted := map[string]string{"SLURM_CONF": "/etc/other.conf", "TZ": "UTC", "LANG": "C", "SLUICE_PILOT_TOKEN": "sluice-join-1-secret"}
	var names []string
	for _, e := range h.State().Jobs[0].Env {
		name, value, _ := strings.Cut(e, "=")
		names = append(names, name)
		if want, fixed := wanted[name]; fixed && value != want {
			t.Errorf("%s: want %s", e, want)
		}
		if _, fixed := wanted[name]; !fixed && !slices.Contains([]string{"PATH", "HOME", "USER", "LOGNAME", "LC_ALL", "PWD"}, name) {
			t.Errorf("%s is in the environment of sbatch", e)
		}
	}
	for _, name := range []string{"PATH", "SLURM_CONF", "TZ", "LANG", "LC_ALL"} { // without TZ times are those of this machine's zone
		if !slices.Contains(names, name) {
			t.Errorf("%v: want what commands need, such as %s", names, name)
		}
	}
	begin := time.Now()
	h.Start("a")
	if seen := look(t, s).Seen[0]; seen.Began.Sub(begin).Abs() > time.Hour/2 {
		t.Errorf("it began at %v, and it is %v", seen.Began, begin)
	}
}

func TestWhatSbatchIsAsked(t *testing.T) {
	h := slurmtest.New(t)
	o := options(h)
	o.Account, o.QOS, o.Exclude, o.Extra, o.UserSignal = "lab", "low", "n7", []string{"--nice=100"}, true
	o.Memory = 1<<30 + 1
	s := open(t, o)
	submit(t, s, "a")
	args := strings.Join(h.State().Jobs[0].Args, " ")
	for _, want := range []string{"--parsable", "--no-requeue", "--job-name=sluice.aaaa1111.pool.a",
		"--time=10", "--export=SLUICE_PILOT_TOKEN", "--output=/dev/null", "--partition=preempt", "--gres=gpu:1g.10gb:1",
		"--cpus-per-task=1", "--mem=1025M",
		"--account=lab", "--qos=low", "--exclude=n7", "--nice=100", "--signal=B:USR1@60"} {
		if !strings.Contains(" "+args+" ", " "+want+" ") {
			t.Errorf("%s: want %s", args, want)
		}
	}
	if strings.Contains(args, "--time-min") {
		t.Errorf("%s: Slurm gives the least of a range", args)
	}
	o.Dir = t.TempDir()
	s = open(t, o)
	submit(t, s, "b")
	j := h.State().Jobs[1]
	if !slices.Contains(j.Args, "--export=NIL") || strings.Contains(strings.Join(j.Env, " "), "sluice-join-1-secret") {
		t.Errorf("%v, %v: want its token in a file alone", j.Args, j.Env)
	}
	trial, err := s.Try(t.Context(), pilot("c"))
	if err != nil || !trial.Taken || trial.Starts.IsZero() || !strings.HasPrefix(trial.Command, "sbatch --test-only --parsable ") {
		t.Errorf("%+v, %v", trial, err)
	}
}

// wrapped are options of a provider that is given scripts for some of a cluster's commands.
func wrapped(t *testing.T, h *slurmtest.Host, scripts map[string]string) slurm.Options {
	t.Helper()
	o := options(h)
	o.Bin = t.TempDir()
	for _, name := range []string{"sbatch", "squeue", "scontrol", "scancel"} {
		text := fmt.Sprintf("#!/bin/sh\n%s\nexec %s/%s \"$@\"\n", scripts[name], h.Bin, name)
		if err := os.WriteFile(filepath.Join(o.Bin, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return o
}

// Between a look and its scancel an id may become another job's: the name is told, too.
func TestWhatScancelIsTold(t *testing.T) {
	h := slurmtest.New(t)
	submit(t, open(t, options(h)), "a", "b")
	told := filepath.Join(t.TempDir(), "told")
	s := open(t, wrapped(t, h, map[string]string{"scancel": fmt.Sprintf("echo \"$@\" >>%s", told)}))
	if err := s.Cancel(t.Context(), []string{"b", "a", "b", "c"}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(told)
	if want := "--name=sluice.aaaa1111.pool.a 1\n--name=sluice.aaaa1111.pool.b 2\n"; err != nil || string(text) != want {
		t.Errorf("%q, %v: want %q", text, err, want)
	}
}

// A job that is forgotten between a squeue and the question about its end is no reason to see nothing.
func TestAnEndThatIsForgotten(t *testing.T) {
	h := slurmtest.New(t)
	submit(t, open(t, options(h)), "a")
	h.Start("a")
	h.Preempt("a")
	s := open(t, wrapped(t, h, map[string]string{"scontrol": `if [ "$1 $2" = "show job" ]; then
  echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1
fi`}))
	if l := look(t, s); len(l.Seen) != 1 || l.Seen[0].Preempted || l.Seen[0].State != provider.Running {
		t.Errorf("%+v", l.Seen)
	}
}

// A pilot that waits says why; one that a limit keeps back, of whatever is limited, is told from one that waits for room.
func TestWhyPilotsWait(t *testing.T) {
	h := slurmtest.New(t)
	s := open(t, options(h))
	submit(t, s, "a")
	for _, reason := range []string{"QOSMaxWallDurationPerJobLimit", "QOSMaxGRESPerJob", "AssocMaxCpuPerJobLimit", "QOSMinGRES"} {
		h.Update(func(state *slurmtest.State) { state.Jobs[0].Reason = reason })
		if p := look(t, s).Seen[0]; p.State != provider.Waiting || p.Why != reason || !p.Never {
			t.Errorf("%s: %+v, want that it never starts", reason, p)
		}
	}
	for reason, limited := range map[string]bool{
		"QOSGrpNodeLimit": true, "QOSGrpCpuLimit": true, "QOSGrpGRES": true, "QOSMaxJobsPerUserLimit": true, "AssocGrpCpuLimit": true,
		"AssocMaxJobsLimit": true, "AssocGrpCPUMinutesLimit": true, "Resources": false, "Priority": false, "QOSNotAllowed": false,
		"InvalidQOS": false, "PartitionTimeLimit": false, "Licenses": false, "ReqNodeNotAvail, Reserved for maintenance": false,
	} {
		h.Update(func(state *slurmtest.State) { state.Jobs[0].Reason = reason })
		if p := look(t, s).Seen[0]; p.State != provider.Waiting || p.Why != reason || p.Limited != limited || p.Never {
			t.Errorf("%s: %+v, want limited %t, and that it starts some day", reason, p, limited)
		}
	}
	h.Start("a")
	h.Update(func(state *slurmtest.State) { state.Jobs[0].Reason = "QOSGrpNodeLimit" }) // Slurm may leave it there
	if p := look(t, s).Seen[0]; p.State != provider.Running || p.Limited {
		t.Errorf("%+v: one that runs is kept back by nothing", p)
	}
}

// When Slurm means to start a pilot is told of one that waits, and of no other.
func TestExpectedStarts(t *testing.T) {
	h := slurmtest.New(t)
	s := open(t, options(h))
	submit(t, s, "a", "b")
	at := time.Now().UTC().Truncate(time.Second).Add(time.Hour)
	h.Update(func(state *slurmtest.State) { state.Jobs[0].Start = at })
	h.Start("b")
	if l := look(t, s); !l.Seen[0].Expected.Equal(at) || !l.Seen[0].Began.IsZero() || !l.Seen[1].Expected.IsZero() {
		t.Errorf("%+v: want a expected at %v", l.Seen, at)
	}
}

// With a reservation of its own a provider has room on its nodes alone, and while it lasts; without it that time is others'.
func TestAReservationOfItsOwn(t *testing.T) {
	h := slurmtest.New(t)
	begin := time.Now().UTC().Truncate(time.Second)
	h.Update(func(state *slurmtest.State) {
		other := state.Nodes[0]
		other.Name = "n1"
		state.Nodes = append(state.Nodes, other)
		state.Reservations = []slurmtest.Reservation{{Name: "mine", Nodes: "n1", Start: begin.Add(-time.Hour), End: begin.Add(time.Hour)}}
	})
	for name, want := range map[string]struct {
		count int
		ends  bool
	}{"mine": {2, true}, "": {2, false}, "nosuch": {0, false}} {
		o := options(h)
		o.Reservation = name
		count, ends := 0, false
		for _, g := range look(t, open(t, o)).Gaps {
			if g.Start.Before(begin.Add(time.Minute * 30)) {
				count, ends = count+g.Count, g.End.Equal(begin.Add(time.Hour))
			}
		}
		if count != want.count || ends != want.ends {
			t.Errorf("in reservation %q: room for %d, which ends with it: %t; want %d, %t", name, count, ends, want.count, want.ends)
		}
	}
}

// What a command says with 0, and what it does not say, is no answer.
func TestAnswersThatAreNone(t *testing.T) {
	h := slurmtest.New(t)
	s := open(t, options(h))
	submit(t, s, "a")
	for name, said := range map[string]slurmtest.Said{
		"an error and 0":         {Err: "squeue: error: Invalid user: nobody\n"},
		"an error beside a list": {Out: "12|\n", Err: "squeue: error: something\n"},
		"a remark and nothing":   {Err: "squeue: warning\n"},
		"rubbish":                {Out: "<html>\n"},
		"nothing and 1":          {Code: 1},
	} {
		h.Say("squeue", said)
		if l, err := s.Look(t.Context()); err == nil || len(l.Seen) > 0 {
			t.Errorf("%s: %+v, %v: want an error", name, l, err)
		}
		if err := s.Cancel(t.Context(), []string{"a"}); err == nil {
			t.Errorf("%s: cancelled", name)
		}
	}
	h.Say("squeue", slurmtest.Said{})
	h.Say("scontrol", slurmtest.Said{Out: "NodeName=n0 Partitions=preempt CPUTot=many\n"})
	if _, err := s.Look(t.Context()); errkind.Of(err) != errkind.Unavailable {
		t.Errorf("nodes that are not understood: %v", err)
	}
	h.Say("scontrol", slurmtest.Said{Err: "slurm_load_node error: Access/permission denied\n", Code: 1})
	if l := look(t, s); !l.Blind || len(l.Seen) != 1 {
		t.Errorf("%+v: want it blind where nodes are private", l)
	}
	h.Say("scontrol", slurmtest.Said{})
	for _, said := range []slurmtest.Said{{Out: "", Err: "sbatch: warning"}, {Out: "Submitted batch job 5\n"}, {Code: 1},
		{Err: "sbatch: error: Batch job submission failed: Unspecified error", Code: 1}} {
		h.Say("sbatch", said)
		if err := s.Submit(t.Context(), pilot("b")); errkind.Of(err) != errkind.Unavailable {
			t.Errorf("%+v: %v of kind %v, want unavailable", said, err, errkind.Of(err))
		}
	}
}

// A command that hangs is ended with what it has started, at its deadline.
func TestACommandThatHangs(t *testing.T) {
	h := slurmtest.New(t)
	o := options(h)
	o.Timeout = 300 * time.Millisecond
	s := open(t, o)
	h.Hang(true)
	done := make(chan error, 1)
	go func() {
		_, err := s.Look(context.WithoutCancel(t.Context()))
		done <- err
	}()
	select {
	case err := <-done:
		if errkind.Of(err) != errkind.Unavailable || !strings.Contains(err.Error(), "squeue: no answer within 300ms") {
			t.Errorf("%v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("it waits for a command that hangs")
	}
}

func TestRefusalsHaveKinds(t *testing.T) {
	h := slurmtest.New(t)
	s := open(t, options(h))
	for said, want := range map[string]errkind.Kind{
		"Batch job submission failed: Unable to contact slurm controller (connect failure)":          errkind.Unavailable,
		"Batch job submission failed: Socket timed out on send/recv operation":                       errkind.Unavailable,
		"Batch job submission failed: Zero Bytes were transmitted or received":                       errkind.Unavailable,
		"Batch job submission failed: Something that nobody has read yet":                            errkind.Unavailable,
		"Batch job submission failed: Invalid account or account/partition combination specified":    errkind.Invalid,
		"Batch job submission failed: Invalid qos specification":                                     errkind.Invalid,
		"Batch job submission failed: Requested node configuration is not available":                 errkind.Invalid,
		"Batch job submission failed: Requested reservation is invalid":                              errkind.Invalid,
		"Batch job submission failed: Invalid feature specification":                                 errkind.Invalid,
		"unrecognized option '--nonsense'":                                                           errkind.Invalid,
		"QOSMaxSubmitJobPerUserLimit":                                                                errkind.Exhausted,
		"Batch job submission failed: Job violates accounting/QOS policy (job submit limit, user's)": errkind.Exhausted,
		"Batch job submission failed: Slurm temporarily unable to accept job, sleeping and retrying": errkind.Exhausted,
		"Batch job submission failed: Access/permission denied":                                      errkind.Denied,
		"Batch job submission failed: User's group not permitted to use this partition":              errkind.Denied,
	} {
		h.Say("sbatch", slurmtest.Said{Err: "sbatch: error: " + said + "\n", Code: 1})
		err := s.Submit(t.Context(), pilot("a"))
		if errkind.Of(err) != want || !strings.Contains(err.Error(), said) {
			t.Errorf("%q: %v of kind %v, want %v and the words", said, err, errkind.Of(err), want)
		}
	}
}

// An unknown partition shows no node and no error; it is named.
func TestAPartitionThatIsNot(t *testing.T) {
	h := slurmtest.New(t)
	o := options(h)
	o.Partition = "nosuch"
	s := open(t, o)
	trial, failed := s.Try(t.Context(), pilot("a"))
	_, err := s.Look(t.Context())
	for _, err := range []error{err, s.Submit(t.Context(), pilot("a")), errors.Join(failed, errors.New(trial.Why))} {
		if err == nil || !strings.Contains(err.Error(), "partition nosuch") {
			t.Errorf("%v: want it to name the partition", err)
		}
	}
	if errkind.Of(err) != errkind.Invalid || trial.Taken {
		t.Errorf("%v of kind %v, %+v", err, errkind.Of(err), trial)
	}
}

// Slurm takes a job that is longer than its partition allows, and never starts it.
func TestALengthThatItsPartitionDoesNotAllow(t *testing.T) {
	h := slurmtest.New(t)
	s := open(t, options(h))
	p := pilot("a")
	for _, c := range []struct {
		length time.Duration
		good   bool
	}{{4 * time.Hour, true}, {4*time.Hour + time.Minute, false}} {
		p.Length = c.length
		trial, failed := s.Try(t.Context(), p)
		err := s.Submit(t.Context(), p)
		if (err == nil) != c.good || failed != nil || trial.Taken != c.good {
			t.Errorf("%v: %v, %+v, %v: want taken: %t", c.length, err, trial, failed, c.good)
		}
	}
	if n := h.State().Calls["scontrol show partition"]; n != 1 {
		t.Errorf("it asked %d times about the partition", n)
	}
}

// Ends that move are asked about once, and are a preemption only where Slurm says so.
func TestEndsThatMove(t *testing.T) {
	h := slurmtest.New(t)
	s := open(t, options(h))
	submit(t, s, "a", "b", "c")
	for _, name := range []string{"a", "b"} {
		h.Start(name)
	}
	asked := func() int { return h.State().Calls["scontrol show job"] }
	calls := h.State().Calls
	look(t, s)
	for _, name := range []string{"squeue", "scontrol show node", "scontrol show reservation"} {
		if n := h.State().Calls[name] - calls[name]; n != 1 {
			t.Errorf("a look calls %s %d times", name, n)
		}
	}
	if asked() != 0 {
		t.Error("it asked about an end that did not move")
	}
	h.Update(func(state *slurmtest.State) { state.Jobs[0].End = state.Jobs[0].End.Add(-5 * time.Minute) }) // an administrator's
	h.Preempt("b")
	for range 3 {
		l := look(t, s)
		if l.Seen[0].Preempted || !l.Seen[1].Preempted || l.Seen[2].Preempted {
			t.Fatalf("%+v: want b alone preempted", l.Seen)
		}
	}
	if asked() != 2 {
		t.Errorf("it asked %d times about two ends", asked())
	}
	h.Preempt("a")
	if l := look(t, s); !l.Seen[0].Preempted || asked() != 3 {
		t.Errorf("%+v after %d: want a preempted, too", l.Seen, asked())
	}
	h.End("b", false)
	if l := look(t, s); !l.Seen[1].Preempted || l.Seen[1].Failed || l.Seen[1].State != provider.Ended {
		t.Errorf("%+v: want it preempted, which is no failure", l.Seen[1])
	}
}

// Where pilots are told of their preemption at once they leave, and Slurm says that they ended well.
func TestAPreemptedPilotThatLeft(t *testing.T) {
	h := slurmtest.New(t)
	o := options(h)
	o.UserSignal = true
	s := open(t, o)
	submit(t, s, "left", "idle")
	h.Start("left")
	h.Start("idle")
	h.End("idle", false)
	h.Preempt("left")
	h.Update(func(state *slurmtest.State) {
		state.Jobs[0].State, state.Jobs[0].End = "COMPLETED", state.Jobs[0].End.Add(-time.Second)
	})
	for range 3 {
		l := look(t, s)
		for _, p := range l.Seen {
			if p.State != provider.Ended || p.Failed || p.Preempted != (p.Name == "left") {
				t.Errorf("%+v: want left alone preempted", p)
			}
		}
	}
	if n := h.State().Calls["scontrol show job"]; n != 2 {
		t.Errorf("it asked %d times about two", n)
	}
}

// Many ends that move at once cost one call, and those of cancelled pilots none.
func TestManyEndsThatMove(t *testing.T) {
	h := slurmtest.New(t)
	s := open(t, options(h))
	for i := range 6 {
		submit(t, s, fmt.Sprint("a", i))
		h.Start(fmt.Sprint("a", i))
	}
	if err := s.Cancel(t.Context(), []string{"a0", "a1"}); err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		h.Preempt(fmt.Sprint("a", i+2))
	}
	for range 2 {
		for _, p := range look(t, s).Seen {
			if cancelled := p.Name < "a2"; p.Preempted == cancelled || (p.State == provider.Ending) != cancelled {
				t.Errorf("%+v: want two that end, and four that are preempted", p)
			}
		}
	}
	if n := h.State().Calls["scontrol show job"]; n != 1 {
		t.Errorf("it asked %d times", n)
	}
	if err := s.Cancel(t.Context(), []string{"a2"}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if p := look(t, s).Seen[2]; !p.Preempted || p.State != provider.Ending {
			t.Errorf("%+v: want it preempted still", p)
		}
	}
	if n := h.State().Calls["scontrol show job"]; n != 1 {
		t.Errorf("it asked %d times", n)
	}
}

// A job's name is anybody's text: one that looks like other lines makes no pilot, and hides none.
func TestNamesThatLie(t *testing.T) {
	h := slurmtest.New(t)
	s := open(t, options(h))
	submit(t, s, "a")
	mine := os.Geteuid()
	names := map[string]int{
		"x\n9|COMPLETED|" + fmt.Sprint(mine) + "|N/A|N/A|5:00|n0||1|0|N/A|None|sluice.aaaa1111.pool.forged|": mine,
		"sluice.aaaa1111.pool.other":      mine + 1, // somebody else's
		"sluice.aaaa1111.pools.b":         mine,
		"sluice.aaaa1111.pool.$(id)":      mine,
		"sluice.aaaa1111.pool.":           mine,
		"we|ird %i %j":                    mine,
		"sluice.aaaa1111.pool.b\nanother": mine,
	}
	h.Update(func(state *slurmtest.State) {
		for name, user := range names {
			state.Jobs = append(state.Jobs, &slurmtest.Job{ID: 100 + len(state.Jobs), Name: name, User: user, State: "RUNNING",
				CPUs: 1, Memory: "0", Partition: "preempt", Submit: time.Now(), Start: time.Now(), End: time.Now().Add(time.Minute)})
		}
	})
	if l := look(t, s); len(l.Seen) != 1 || l.Seen[0].Name != "a" {
		t.Errorf("%+v: want a alone", l.Seen)
	}
	if err := s.Cancel(t.Context(), []string{"other", "forged", "b"}); err != nil {
		t.Fatal(err)
	}
	for _, j := range h.State().Jobs {
		if j.Told || j.Killed {
			t.Errorf("job %d %q was cancelled", j.ID, j.Name)
		}
	}
}

// Without a shared folder nothing is left of what a pilot said that failed; people are told how to keep it.
func TestAPilotThatFailedWithoutAWord(t *testing.T) {
	h := slurmtest.New(t)
	s := open(t, options(h))
	submit(t, s, "a", "b")
	for name, failed := range map[string]bool{"a": true, "b": false} {
		h.Start(name)
		h.End(name, failed)
	}
	for _, p := range look(t, s).Seen {
		if said := strings.Contains(p.Why, "key shared"); said != (p.Name == "a") {
			t.Errorf("%s: %q", p.Name, p.Why)
		}
	}
}
