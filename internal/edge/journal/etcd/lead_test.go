//go:build etcd && linux

package etcd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/journal"
	"sluice.dev/sluice/internal/edge/journal/etcd/etcdtest"
	"sluice.dev/sluice/internal/edge/journal/journaltest"
)

// open opens a journal and returns the records that it has.
func open(t *testing.T, o Options) (journal.Journal, []string) {
	t.Helper()
	j, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j, read(t, j)
}

func read(t *testing.T, j journal.Journal) (records []string) {
	t.Helper()
	_, err := j.Replay(func(state io.Reader) error {
		b, err := io.ReadAll(state)
		records = append(records, string(b))
		return err
	}, func(_ journal.Position, b []byte) error {
		records = append(records, string(b))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return records
}

func endpoints(members []*etcdtest.Member) (list []string) {
	for _, m := range members {
		list = append(list, m.Endpoint)
	}
	return list
}

// TestWhoWasDeposedWritesNothing: of two that write at once, one of which deposes the other at a random moment, what the first was told is
// stored is there for the second, and nothing that it wrote later.
func TestWhoWasDeposedWritesNothing(t *testing.T) {
	o := Options{Endpoints: endpoints(etcdtest.Start(t, 1, true)), Depose: true}
	for round := range 20 {
		o.Prefix = fmt.Sprintf("/deposed/%d", round)
		first, _ := open(t, o)
		var told []string
		var ended error
		var both sync.WaitGroup
		both.Go(func() {
			for n := 0; ; n++ {
				r := fmt.Sprintf("record %d", n)
				if n%7 == 6 {
					if ended = journaltest.Snapshot(first, []byte(strings.Join(append(told, ""), ";"))); ended != nil {
						return
					}
				}
				if _, ended = first.Append([][]byte{[]byte(r)}); ended != nil {
					return
				}
				told = append(told, r)
			}
		})
		time.Sleep(time.Duration(rand.Int64N(int64(30 * time.Millisecond))))
		second, found := open(t, o)
		got := strings.Trim(strings.ReplaceAll(strings.Join(found, ";"), ";;", ";"), ";") // a snapshot ends with one
		if _, err := second.Append([][]byte{[]byte("the second's")}); err != nil {
			t.Fatal(err)
		}
		both.Wait()
		if errkind.Of(ended) != errkind.Conflict || !strings.Contains(ended.Error(), "is its writer now") {
			t.Fatalf("round %d: the first ended by %v", round, ended)
		}
		if _, err := first.Append([][]byte{[]byte("again")}); errkind.Of(err) != errkind.Conflict {
			t.Fatalf("and wrote on: %v", err)
		}
		want := strings.Join(told, ";")
		if next := strings.Trim(fmt.Sprintf("%s;record %d", want, len(told)), ";"); got != want && got != next {
			t.Fatalf("round %d: told %q, found %q", round, want, got)
		}
		_ = first.Close()
		_ = second.Close()
		third, last := open(t, o)
		if last[len(last)-1] != "the second's" {
			t.Fatalf("round %d: at the end stands %q", round, last[len(last)-1])
		}
		_ = third.Close()
	}
}

// TestWhoIsAliveIsNotDeposed unless that is asked for; the same holder's next process does not wait for the last one's lease.
func TestWhoIsAliveIsNotDeposed(t *testing.T) {
	o := Options{Endpoints: endpoints(etcdtest.Start(t, 1, true)), Prefix: "/alive", Holder: "a"}
	first, _ := open(t, o)
	key := keys("/alive/")
	c := etcdtest.Client(t, o.Endpoints...)
	elsewhere := func(holder string) {
		t.Helper()
		g, err := c.Grant(t.Context(), 3)
		if err == nil {
			_, err = c.Put(t.Context(), key.alive(), holder+"\nprocess 1 on another", clientv3.WithLease(g.ID))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	_ = first.Close()
	elsewhere("a") // as after kill -9
	begun := time.Now()
	again, _ := open(t, o)
	if took := time.Since(begun); took > 2*time.Second {
		t.Errorf("its next process waited for %v", took)
	}
	_ = again.Close()
	elsewhere("b")
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if _, err := Open(ctx, o); !strings.Contains(fmt.Sprint(err), "process 1 on another has it open") {
		t.Errorf("deposed who is alive: %v", err)
	}
	begun = time.Now()
	later, _ := open(t, o) // the other one's lease lapses
	if took := time.Since(begun); took < time.Second || took > 8*time.Second {
		t.Errorf("waited for %v", took)
	}
	_ = later.Close()
}

// TestLostAnswers: a transaction whose answer is lost, and one that etcd carries out after the one that was made in its place, count once.
func TestLostAnswers(t *testing.T) {
	m := etcdtest.Start(t, 1, true)[0]
	for seed := range uint64(20) {
		c := etcdtest.Client(t, m.Endpoint)
		lossy := &lossy{KV: c.KV, draw: rand.New(rand.NewPCG(seed, 1))}
		j, err := openOn(t.Context(), c, lossy, Options{Prefix: fmt.Sprintf("/lost/%d", seed), partBytes: 60, again: time.Microsecond})
		if err != nil {
			t.Fatal(err)
		}
		_ = read(t, j)
		lossy.on = true
		var want []string
		for n := range 40 {
			if n%10 == 9 {
				if err := journaltest.Snapshot(j, []byte(strings.Repeat("s", n*3))); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				want = []string{strings.Repeat("s", n*3)}
			}
			r := strings.Repeat(fmt.Sprintf("%d ", n), 1+n%30)
			if _, err := j.Append([][]byte{[]byte(r)}); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			want = append(want, r)
		}
		lossy.on = false
		lossy.late()
		_ = j.Close()
		next, got := open(t, Options{Endpoints: []string{m.Endpoint}, Prefix: fmt.Sprintf("/lost/%d", seed)})
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d: %q, want %q", seed, got, want)
		}
		_ = next.Close()
	}
}

// lossy loses a third of the answers, carries out a third of the requests only later, and the rest as they come.
type lossy struct {
	clientv3.KV
	draw  *rand.Rand
	on    bool
	later []func()
}

func (l *lossy) late() {
	for _, f := range l.later {
		f()
	}
	l.later = nil
}

func (l *lossy) Txn(ctx context.Context) clientv3.Txn {
	return &lossyTxn{Txn: l.KV.Txn(context.WithoutCancel(ctx)), l: l}
}

type lossyTxn struct {
	clientv3.Txn
	l *lossy
}

func (x *lossyTxn) If(cs ...clientv3.Cmp) clientv3.Txn {
	x.Txn = x.Txn.If(cs...)
	return x
}

func (x *lossyTxn) Then(ops ...clientv3.Op) clientv3.Txn {
	x.Txn = x.Txn.Then(ops...)
	return x
}

func (x *lossyTxn) Else(ops ...clientv3.Op) clientv3.Txn {
	x.Txn = x.Txn.Else(ops...)
	return x
}

func (x *lossyTxn) Commit() (*clientv3.TxnResponse, error) {
	if !x.l.on {
		return x.Txn.Commit()
	}
	switch x.l.draw.IntN(3) {
	case 0:
		_, _ = x.Txn.Commit()
		return nil, rpctypes.ErrTimeout
	case 1:
		x.l.later = append(x.l.later, func() { _, _ = x.Txn.Commit() })
		return nil, rpctypes.ErrTimeout
	}
	r, err := x.Txn.Commit()
	if x.l.draw.IntN(2) == 0 {
		x.l.late()
	}
	return r, err
}

// TestMembersThatAreKilled: with one member killed and started again in turn, what was told is stored, once; without a majority an Append
// waits, and after Patience the journal is over.
func TestMembersThatAreKilled(t *testing.T) {
	members := etcdtest.Start(t, 3, false)
	o := Options{Endpoints: endpoints(members), Prefix: "/killed"}
	j, _ := open(t, o)
	var told []string
	var longest time.Duration
	for n := range 600 {
		if n%200 == 100 {
			members[n/200].Kill()
		}
		if n%200 == 199 {
			members[n/200].Restart()
			members[n/200].Wait()
		}
		r := fmt.Sprintf("record %d", n)
		begun := time.Now()
		if _, err := j.Append([][]byte{[]byte(r)}); err != nil {
			t.Fatalf("record %d: %v", n, err)
		}
		longest = max(longest, time.Since(begun))
		told = append(told, r)
	}
	t.Logf("600 records with 3 kills, the longest waited %v", longest)
	_ = j.Close()
	j, got := open(t, o)
	if !slices.Equal(got, told) {
		t.Fatalf("%d records, told %d", len(got), len(told))
	}
	_ = j.Close()
	o.Patience = 2 * time.Second
	j, _ = open(t, o)
	members[0].Pause()
	members[1].Pause()
	_, err := j.Append([][]byte{[]byte("without a majority")})
	members[0].Resume()
	members[1].Resume()
	if errkind.Of(err) != errkind.Unavailable {
		t.Fatalf("without a majority: %v", err)
	}
	if _, again := j.Append(nil); !errors.Is(again, err) {
		t.Fatalf("it is used on: %v", again)
	}
}

// TestLargeBatches: what is larger than a request of etcd's takes several, and is there whole or not at all.
func TestLargeBatches(t *testing.T) {
	o := Options{Endpoints: endpoints(etcdtest.Start(t, 1, true)), Prefix: "/large"}
	j, _ := open(t, o)
	var want []string
	for _, sizes := range [][]int{{3 << 20, 1, 16 << 20}, {1 << 20}, {1<<20 - 200}, {16 << 20, 16 << 20, 16 << 20, 16<<20 - 40}} {
		var batch [][]byte
		for i, n := range sizes {
			b := make([]byte, n)
			for k := range b {
				b[k] = byte(k*7 + i)
			}
			batch, want = append(batch, b), append(want, string(b))
		}
		if _, err := j.Append(batch); err != nil {
			t.Fatal(err)
		}
	}
	_ = j.Close()
	if _, got := open(t, o); !slices.Equal(got, want) {
		t.Fatalf("%d records, want %d", len(got), len(want))
	}
}
