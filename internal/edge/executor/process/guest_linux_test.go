package process_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/node"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/executor/process"
	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/store"
	"sluice.dev/sluice/internal/edge/store/head"
)

// headStore is the store of a head as a machine that joined it sees it, without the network between them.
type headStore struct {
	store.Store
	number int // of the machine's node
}

func (s *headStore) may(op head.Operation, name string) error {
	return head.Machines("cluster", func(t job.Token) bool { return node.NumberOf(t) == s.number }, head.Call{Operation: op, Machine: "m",
		Name: name})
}

func (s *headStore) Remove(context.Context, store.Digest, time.Time) (bool, error) {
	return false, s.may(head.RemoveObject, "")
}

func (s *headStore) List(context.Context, func(store.Object) error) error {
	return s.may(head.ListObjects, "")
}

func (s *headStore) Names(_ context.Context, folder string, _ func(store.Named) error) error {
	return s.may(head.ListNames, folder)
}

func (s *headStore) Sweep(context.Context, time.Time) (int, error) {
	return 0, s.may(head.SweepUploads, "")
}

func (s *headStore) SetName(ctx context.Context, name string, refs store.Refs) error {
	if err := s.may(head.SetName, name); err != nil {
		return err
	}
	return s.Store.SetName(ctx, name, refs)
}

func (s *headStore) Unname(ctx context.Context, name string) error {
	if err := s.may(head.RemoveName, name); err != nil {
		return err
	}
	return s.Store.Unname(ctx, name)
}

func (s *headStore) ReadName(ctx context.Context, name string) (store.Named, error) {
	if err := s.may(head.ReadName, name); err != nil {
		return store.Named{}, err
	}
	return s.Store.ReadName(ctx, name)
}

// said is a log that a test reads.
type said struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// numbered is a token of the node with a number.
func numbered(number int, seq uint64) job.Token {
	return job.Token{Epoch: 1, Seq: uint64(number)<<40 | seq}
}

// TestAMachineThatJoinedNamesItsOwnAlone: an executor whose store is a head's goes on from a checkpoint of another machine, and leaves the
// names of others, and what is to be collected, to the head, without a complaint.
func TestAMachineThatJoinedNamesItsOwnAlone(t *testing.T) {
	const mine, other = 1 << 16, 1<<16 + 1
	s := newStore(t)
	var log said
	b := newBench(t, func(o *process.Options) {
		o.Store, o.Keep, o.Joined.Owner = &headStore{s, other}, true, "cluster"
	})
	first := chained(numbered(other, 1), 0, 10, leaves)
	b.run(first, job.Done)
	b.commit(first)
	b.again(func(o *process.Options) { // on another machine
		o.DataDir, o.Store = t.TempDir(), &headStore{s, mine}
		o.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	})
	second := chained(numbered(mine, 1), 10, 20, `cat "$SLUICE_RESUME_DIR/at"; `+strings.ReplaceAll(leaves, "10", "20"))
	second.Body.(*protocol.Work).Plan.Resume = first.Token
	b.run(second, job.Done)
	if out := shim.Tail(b.at(second.Token).Stdout(), 10, 1000); out != "ten" {
		t.Errorf("the program saw %q", out)
	}
	b.commit(second)
	if list, err := os.ReadDir(filepath.Join(b.o.DataDir, "checkpoints", "j")); err != nil || len(list) != 1 ||
		list[0].Name() != second.Token.String() {
		t.Errorf("checkpoints on the machine: %v, %v", list, err)
	}
	lost := chained(numbered(mine, 2), 20, 30, strings.ReplaceAll(leaves, "10", "30"))
	b.run(lost, job.Done)
	b.do(protocol.Message{Kind: protocol.Settle, Token: lost.Token, Job: "j", Body: &protocol.Settlement{}})
	b.next(protocol.Settled)
	for token, counts := range map[job.Token]bool{first.Token: true, second.Token: true, lost.Token: false} {
		if roles := result(t, s, token); (roles["output:sub/said"] != "") != counts || (roles["checkpoint:at"] != "") != counts {
			t.Errorf("the store has of %v %v", token, roles)
		}
	}
	if err := b.ex.PruneWorkdirs(func(string) bool { return false }); err != nil {
		t.Errorf("pruning: %v", err)
	}
	b.purge(2)
	if roles := result(t, s, second.Token); roles["output:sub/said"] == "" {
		t.Error("the machine has removed a name that is its head's to remove")
	}
	if _, err := os.Lstat(filepath.Join(b.o.DataDir, "store-owner")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it has an owner of its own: %v", err)
	}
	if log.String() != "" {
		t.Errorf("it complains:\n%s", log.String())
	}
}

// TestOwnersAreChecked: an owner needs its store and must be one word; the word of a data directory stays what it is.
func TestOwnersAreChecked(t *testing.T) {
	s := newStore(t)
	for what, change := range map[string]func(*process.Options){
		"two words": func(o *process.Options) { o.Store, o.Keep, o.Joined.Owner = s, true, "a/b" },
		"no name":   func(o *process.Options) { o.Store, o.Keep, o.Joined.Owner = s, true, ".." },
		"no store":  func(o *process.Options) { o.Keep, o.Joined.Owner = true, "a" },
		"not kept":  func(o *process.Options) { o.Store, o.Joined.Owner = s, "a" },
	} {
		o := process.Options{DataDir: t.TempDir(), ShimPath: "/bin/true", Isolation: treeOnly(), Deliver: func(protocol.Message) {}}
		change(&o)
		if ex, err := process.New(o); errkind.Of(err) != errkind.Invalid {
			t.Errorf("%s: %v", what, err)
			if err == nil {
				_ = ex.Close()
			}
		}
	}
	dir := t.TempDir()
	word, err := process.StoreOwner(dir)
	if err != nil || word == "" {
		t.Fatal(word, err)
	}
	if again, err := process.StoreOwner(dir); err != nil || again != word {
		t.Errorf("it was %s, and is %s, %v", word, again, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "store-owner"), []byte("a/b\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if word, err := process.StoreOwner(dir); errkind.Of(err) != errkind.Corrupt {
		t.Errorf("a damaged word is read as %q, %v", word, err)
	}
}
