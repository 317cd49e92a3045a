//go:build etcd && linux

package etcd

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"sluice.dev/sluice/internal/edge/journal"
	"sluice.dev/sluice/internal/edge/journal/etcd/etcdtest"
	"sluice.dev/sluice/internal/edge/journal/journaltest"
)

// TestConformance runs the suite of every journal against a real etcd. Its files are keys.
func TestConformance(t *testing.T) {
	m := etcdtest.Start(t, 1, true)[0]
	c := etcdtest.Client(t, m.Endpoint)
	journaltest.Run(t, func(t testing.TB) journaltest.Store { return newPlace(t, c) })
}

// place is a prefix of its own of an etcd that may have no room.
type place struct {
	t      testing.TB
	client *clientv3.Client
	prefix string
	kv     *limited
}

var places atomic.Int64

func newPlace(t testing.TB, c *clientv3.Client) place {
	p := place{t, c, fmt.Sprintf("/test/%d/", places.Add(1)), &limited{KV: c.KV}}
	p.SetRoom(-1)
	return p
}

func (p place) Open(notice func(string)) (journal.Journal, error) {
	c, err := clientv3.New(clientv3.Config{Endpoints: p.client.Endpoints()})
	if err != nil {
		return nil, err
	}
	j, err := openOn(context.Background(), c, p.kv, Options{Prefix: p.prefix, Notice: notice, partBytes: 400})
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	return j, nil
}

func (p place) SetRoom(n int64) { p.kv.room.Store(n) }

func (p place) Files() (names []string) {
	r, err := p.client.Get(p.t.Context(), p.prefix, clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		p.t.Fatal(err)
	}
	for _, kv := range r.Kvs {
		if name := strings.TrimPrefix(string(kv.Key), p.prefix); name != "leader" && name != "alive" {
			names = append(names, name)
		}
	}
	return names
}

func (p place) Get(name string) []byte {
	r, err := p.client.Get(p.t.Context(), p.prefix+name)
	if err != nil || len(r.Kvs) != 1 {
		p.t.Fatalf("%s: %v, %d keys", name, err, len(r.Kvs))
	}
	return r.Kvs[0].Value
}

func (p place) Rot(name string, content []byte) {
	var err error
	if content == nil {
		_, err = p.client.Delete(p.t.Context(), p.prefix+name)
	} else {
		_, err = p.client.Put(p.t.Context(), p.prefix+name, string(content))
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p place) Copy() journaltest.Store {
	c := newPlace(p.t, p.client)
	for _, name := range p.Files() {
		c.Rot(name, p.Get(name))
	}
	return c
}

// limited is an etcd with room for so many bytes more, if not negative.
type limited struct {
	clientv3.KV
	room atomic.Int64
}

func (l *limited) Txn(ctx context.Context) clientv3.Txn { return &limitedTxn{l.KV.Txn(ctx), l, 0} }

type limitedTxn struct {
	clientv3.Txn
	l    *limited
	size int64
}

func (x *limitedTxn) If(cs ...clientv3.Cmp) clientv3.Txn {
	x.Txn = x.Txn.If(cs...)
	return x
}

func (x *limitedTxn) Then(ops ...clientv3.Op) clientv3.Txn {
	for _, o := range ops {
		if o.IsPut() {
			x.size += int64(len(o.ValueBytes()))
		}
	}
	x.Txn = x.Txn.Then(ops...)
	return x
}

func (x *limitedTxn) Else(ops ...clientv3.Op) clientv3.Txn {
	x.Txn = x.Txn.Else(ops...)
	return x
}

func (x *limitedTxn) Commit() (*clientv3.TxnResponse, error) {
	if room := x.l.room.Load(); room >= 0 && x.size > 0 {
		if x.size > room {
			return nil, rpctypes.ErrNoSpace
		}
		x.l.room.Add(-x.size)
	}
	return x.Txn.Commit()
}
