package process_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/edge/executor/process"
	"sluice.dev/sluice/internal/edge/executor/process/folders"
	"sluice.dev/sluice/internal/edge/store"
)

// machine is a bench that is a machine of the cluster whose store s is.
func machine(t *testing.T, s store.Store) *bench {
	t.Helper()
	return newBench(t, func(o *process.Options) { o.Store, o.Keep, o.Joined.Owner = &headStore{s, 1 << 16}, true, "cluster" })
}

// atHead makes the bench the head of the cluster, and removes all that the machine had. It may be called again: the head starts anew.
func (b *bench) atHead(s store.Store) {
	b.Helper()
	if b.o.Joined.Owner == "" {
		b.again(func(*process.Options) {})
		return
	}
	machine, dir := b.o.DataDir, b.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "store-owner"), []byte("cluster\n"), 0o600); err != nil {
		b.Fatal(err)
	}
	b.again(func(o *process.Options) { o.DataDir, o.Store, o.Joined.Owner = dir, s, "" })
	if out, err := exec.Command("sh", "-c", `chmod -R u+rwx "$0"; rm -r "$0"`, machine).CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
}

// lifeOf is what the head's zone shows of the job.
func lifeOf(g job.Generation) *status.Job { return &status.Job{Name: "j", Generation: g} }

// piece of the job that a subjob has committed.
func piece(t job.Token, from, to int64, member int) status.Output {
	return status.Output{Token: t, Range: job.Range{From: from, To: to}, Member: member}
}

// kept reads the logs that are kept of a subjob.
func (b *bench) kept(t job.Token) (all [2]string) {
	b.Helper()
	stdout, stderr := folders.LogPath(b.o.DataDir, "j", t, false)
	for i, path := range []string{stdout, stderr} {
		if data, err := os.ReadFile(path); err == nil {
			all[i] = string(data)
		}
	}
	return all
}

// rolesOf are the roles in the store's name of a subjob.
func rolesOf(t *testing.T, s store.Store, token job.Token) (roles []string) {
	t.Helper()
	for name, refs := range names(t, s) {
		if name != "jobs/cluster/j/"+token.String() {
			continue
		}
		for role := range refs {
			roles = append(roles, role)
		}
	}
	slices.Sort(roles)
	return roles
}

// TestAHeadHasWhatABurntMachineLeft: output, silence and logs of subjobs of a machine that is gone for good get into the places where the
// head's own lie, once however often they are asked for, also across restarts; and what nobody needs leaves the store.
func TestAHeadHasWhatABurntMachineLeft(t *testing.T) {
	s := newStore(t)
	b := machine(t, s)
	wrote, silent, failed, lost := numbered(1<<16, 1), numbered(1<<16, 2), numbered(1<<16, 3), numbered(1<<16, 4)
	b.run(chained(wrote, 0, 10, "echo words; echo trouble >&2; "+leaves), job.Done)
	b.commit(chained(wrote, 0, 10, ""))
	b.run(chained(silent, 10, 20, strings.ReplaceAll(leaves[strings.Index(leaves, "echo ten"):], "10", "20")), job.Done)
	b.commit(chained(silent, 10, 20, ""))
	b.run(chained(failed, 20, 30, "echo why it failed >&2; exit 3"), job.ExitFailed)
	b.do(protocol.Message{Kind: protocol.Settle, Token: failed, Job: "j", Body: &protocol.Settlement{}})
	b.next(protocol.Settled)
	b.run(chained(lost, 20, 30, "echo late; "+strings.ReplaceAll(leaves, "10", "30")), job.Done) // it is never settled
	want := map[job.Token][]string{wrote: {"checkpoint", "logs", "output"}, silent: {"checkpoint", "logs"}, failed: {"logs"},
		lost: {"checkpoint", "logs", "output"}}
	for token, roles := range want {
		if got := rolesOf(t, s, token); !reflect.DeepEqual(got, roles) {
			t.Errorf("the store has of %v %v, want %v", token, got, roles)
		}
	}
	b.atHead(s)
	for range 2 {
		for _, o := range []status.Output{piece(wrote, 0, 10, 0), piece(silent, 10, 20, 0), piece(wrote, 0, 10, 2)} {
			if err := b.ex.Remote.Output(t.Context(), lifeOf(1), o); err != nil {
				t.Error(err)
			}
		}
		for token, want := range map[job.Token][2]string{wrote: {"words\n", "trouble\n"}, silent: {}, failed: {"", "why it failed\n"},
			lost: {"late\n", ""}} {
			if found, err := b.ex.Remote.Logs(t.Context(), lifeOf(1), token); err != nil || !found {
				t.Errorf("logs of %v: %v, %v", token, found, err)
			}
			if got := b.kept(token); got != want {
				t.Errorf("logs of %v are %q, want %q", token, got, want)
			}
			counts := token == wrote || token == silent
			if err := b.ex.Remote.Forget(t.Context(), lifeOf(1), token, counts); err != nil {
				t.Error(err)
			}
		}
		outs, err := b.ex.Outputs("j")
		if err != nil || len(outs) != 2 {
			t.Fatalf("outputs %+v, %v", outs, err)
		}
		for i, o := range outs {
			if o.Token != wrote || o.Range != (job.Range{From: 0, To: 10}) || o.Member != 2*i ||
				!slices.Equal(o.Files, []string{"sub/said"}) {
				t.Errorf("output %+v", o)
			}
			if data, err := os.ReadFile(filepath.Join(o.Path, "sub/said")); string(data) != "done\n" {
				t.Errorf("it says %q, %v", data, err)
			}
			if info, err := os.Stat(o.Path); err != nil || info.Mode().Perm() != 0o700 {
				t.Errorf("%v, %v", info, err)
			}
		}
		b.atHead(s)
	}
	for _, want := range []bool{true, false} {
		if has, err := b.ex.Remote.HasCheckpoint(t.Context(), lifeOf(1), wrote); err != nil || has != want {
			t.Errorf("the older checkpoint is there: %v, %v; want %v", has, err, want)
		}
		if err := b.ex.Remote.ForgetCheckpoint(t.Context(), lifeOf(1), wrote); err != nil {
			t.Error(err)
		}
	}
	want = map[job.Token][]string{wrote: {"output"}, silent: {"checkpoint"}, failed: nil, lost: nil}
	for token, roles := range want {
		if got := rolesOf(t, s, token); !reflect.DeepEqual(got, roles) {
			t.Errorf("in the end the store has of %v %v, want %v", token, got, roles)
		}
	}
	b.purge(2)
	if all := names(t, s); len(all) > 0 {
		t.Errorf("a job that is gone has left %v", all)
	}
	if left, err := filepath.Glob(filepath.Join(b.o.DataDir, "runs", ".[obl]*")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// TestAnOutputThatTheStoreHasLost: it is an error that names the subjob and says what to do, and nothing is listed in its place.
func TestAnOutputThatTheStoreHasLost(t *testing.T) {
	s := newStore(t)
	b := machine(t, s)
	first := numbered(1<<16, 1)
	b.run(chained(first, 0, 10, leaves), job.Done)
	b.atHead(s)
	name := "jobs/cluster/j/" + first.String()
	refs := names(t, s)[name]
	path := filepath.Join(strings.TrimPrefix(s.String(), "local:"), "objects", string(refs["output"])[:2], string(refs["output"]))
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	write := func(data []byte) {
		t.Helper()
		if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o600); data != nil && err != nil {
			t.Fatal(err)
		}
	}
	damaged := slices.Clone(whole)
	damaged[len(damaged)/3] ^= 1
	for what, lose := range map[string]func(){
		"damaged": func() { write(damaged) },
		"cut off": func() { write(whole[:len(whole)/2]) },
		"gone":    func() { _ = os.Remove(path) },
		"unnamed": func() { _ = s.Unname(t.Context(), name) },
	} {
		write(whole)
		if err := store.Name(t.Context(), s, name, refs); err != nil {
			t.Fatal(err)
		}
		lose()
		err := b.ex.Remote.Output(t.Context(), lifeOf(1), piece(first, 0, 10, 0))
		if errkind.Of(err) != errkind.Corrupt || !strings.Contains(err.Error(), first.String()) ||
			!strings.Contains(err.Error(), "backup") {
			t.Errorf("%s: %v", what, err)
		}
		if outs, err := b.ex.Outputs("j"); err != nil || len(outs) > 0 {
			t.Errorf("%s: listed are %+v, %v", what, outs, err)
		}
	}
	write(whole)
	if err := store.Name(t.Context(), s, name, refs); err != nil {
		t.Fatal(err)
	}
	small := lifeOf(1)
	small.Spec = &job.Spec{Launch: job.Launch{OutputLimit: 1}}
	if err := b.ex.Remote.Output(t.Context(), small, piece(first, 0, 10, 0)); errkind.Of(err) != errkind.Exhausted {
		t.Errorf("more than the job's limit: %v", err)
	}
	if err := b.ex.Remote.Output(t.Context(), lifeOf(1), piece(first, 0, 10, 0)); err != nil {
		t.Errorf("once it is mended: %v", err)
	}
}

// TestWhatALaterLifeDoesNotGet: what is brought of a job that was forgotten meanwhile is not put among the files of its next life.
func TestWhatALaterLifeDoesNotGet(t *testing.T) {
	s := newStore(t)
	b := machine(t, s)
	first := numbered(1<<16, 1)
	b.run(chained(first, 0, 10, "echo words; "+leaves), job.Done)
	b.atHead(s)
	refs := names(t, s)["jobs/cluster/j/"+first.String()]
	b.purge(2)
	if err := store.Name(t.Context(), s, "jobs/cluster/j/"+first.String(), refs); err != nil { // by a machine that is late
		t.Fatal(err)
	}
	if err := b.ex.Remote.Output(t.Context(), lifeOf(1), piece(first, 0, 10, 0)); err != nil {
		t.Error(err)
	}
	if _, err := b.ex.Remote.Logs(t.Context(), lifeOf(1), first); err != nil {
		t.Error(err)
	}
	if err := errors.Join(b.ex.Remote.ForgetCheckpoint(t.Context(), lifeOf(1), first),
		b.ex.Remote.Forget(t.Context(), lifeOf(1), first, false)); err != nil {
		t.Error(err)
	}
	if roles := rolesOf(t, s, first); len(roles) != 3 {
		t.Errorf("of the name for the next life are left %v", roles)
	}
	if outs, err := b.ex.Outputs("j"); err != nil || len(outs) > 0 || b.kept(first) != [2]string{} {
		t.Errorf("the next life has %+v, %v, and logs %q", outs, err, b.kept(first))
	}
	if err := b.ex.Remote.Output(t.Context(), lifeOf(2), piece(first, 0, 10, 0)); err != nil {
		t.Error(err)
	}
	if outs, err := b.ex.Outputs("j"); err != nil || len(outs) != 1 {
		t.Errorf("a life that it counts in has %+v, %v", outs, err)
	}
}

// TestLogsOfALiar: what a machine calls logs shows nobody a file of the head.
func TestLogsOfALiar(t *testing.T) {
	s := newStore(t)
	b := machine(t, s)
	b.atHead(s)
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	liar := numbered(1<<16, 1)
	packed := pack(t, tar.Header{Name: "stdout", Typeflag: tar.TypeSymlink, Linkname: secret})
	o, err := s.Put(t.Context(), "", bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Name(t.Context(), s, "jobs/cluster/j/"+liar.String(), store.Refs{"logs": o.Digest}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.ex.Remote.Logs(t.Context(), lifeOf(1), liar); err != nil {
		t.Error(err)
	}
	if got := b.kept(liar); got != [2]string{} {
		t.Errorf("its logs show %q", got)
	}
}

// TestASubjobThatLeftNothingHasNoName: its result says so, and only if it is true, in this life of the executor and the next; a head that
// does not go by that finds a name.
func TestASubjobThatLeftNothingHasNoName(t *testing.T) {
	piece := func(of func(*protocol.Message)) func(t job.Token) protocol.Message {
		return func(t job.Token) protocol.Message {
			m := lease(time.Minute, "true")
			m.Token = t
			of(&m)
			return m
		}
	}
	script := func(text string) func(t job.Token) protocol.Message {
		return piece(func(m *protocol.Message) { m.Body.(*protocol.Work).Spec.Launch.Command = []string{"sh", "-c", text} })
	}
	for _, c := range []struct {
		what    string
		subjob  func(t job.Token) protocol.Message
		outcome job.Outcome
		nothing bool
		roles   []string
	}{
		{"nothing", script("true"), job.Done, true, nil},
		{"a failure without a word", script("exit 3"), job.ExitFailed, true, nil},
		{"a folder of output", script(`mkdir "$SLUICE_OUTPUT_DIR/sub"`), job.Done, false, []string{"logs", "output"}},
		{"a word", script("echo word"), job.Done, false, []string{"logs"}},
		{"a word of trouble", script("echo word >&2; exit 3"), job.ExitFailed, false, []string{"logs"}},
		{"a checkpoint", func(t job.Token) protocol.Message {
			return chained(t, 0, 10, leaves[strings.Index(leaves, "echo ten"):])
		}, job.Done, false, []string{"checkpoint", "logs"}},
		{"nothing, as a member of a gang", piece(func(m *protocol.Message) {
			m.Body.(*protocol.Work).Plan.Members = 2
		}), job.Done, false, []string{"logs"}},
	} {
		for _, takes := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, taken %v", c.what, takes), func(t *testing.T) {
				s := newStore(t)
				b := newBench(t, func(o *process.Options) {
					o.Store, o.Keep, o.Joined.Owner, o.Joined.TakesNothing = &headStore{s, 1 << 16}, true, "cluster", takes
				})
				first := numbered(1<<16, 1)
				roles := c.roles
				if c.nothing && !takes {
					roles = []string{"logs"}
				}
				for life, res := range []job.Result{b.run(c.subjob(first), c.outcome), *b.found(first).Result} {
					if res.LeftNothing != (c.nothing && takes) {
						t.Errorf("life %d: it says that it left nothing: %v", life, res.LeftNothing)
					}
					if got := rolesOf(t, s, first); !slices.Equal(got, roles) {
						t.Errorf("life %d: the store has %v, want %v", life, got, roles)
					}
				}
			})
		}
	}
}

// found is what the next life of the machine's executor finds of a subjob.
func (b *bench) found(t job.Token) *protocol.Found {
	b.Helper()
	for _, f := range b.again(func(*process.Options) {}) {
		if f.Token == t {
			return &f.Found
		}
	}
	b.Fatalf("nothing is found of %v", t)
	return nil
}
