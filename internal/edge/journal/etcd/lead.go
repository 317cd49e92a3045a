//go:build etcd

package etcd

import (
	"context"
	"crypto/rand"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/journal"
)

// lead makes this the writer. Who has it open already is not deposed unless it is asked for, and for as long as a lease of a process that
// was killed may last it waits for that.
func (j *Journal) lead(ctx context.Context) error {
	for until := time.Now().Add(aliveTTL + j.o.Patience/2); ; {
		done, who, err := j.take(ctx)
		if done || err != nil {
			return err
		}
		if who == process() || time.Now().After(until) {
			return j.errorf(errkind.Conflict, "%s has it open: stop that one first, or depose it (--depose), so that it can write nothing more", who)
		}
		select {
		case <-ctx.Done():
			return j.errorf(errkind.Unavailable, "%s has it open: %w", who, context.Cause(ctx))
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// take becomes the writer if nobody else is, or returns who is. The key leader is put by a transaction that compares what was seen, so of
// two who try at the same time one sees the other.
func (j *Journal) take(ctx context.Context) (done bool, who string, err error) {
	ctx, cancel := context.WithTimeout(ctx, j.o.Patience)
	defer cancel()
	seen, err := j.kv.Txn(ctx).Then(
		clientv3.OpGet(j.keys.leader()), clientv3.OpGet(j.keys.alive()), clientv3.OpGet(j.keys.last()),
		clientv3.OpGet(string(j.keys), clientv3.WithPrefix(), clientv3.WithCountOnly()),
	).Commit()
	if err != nil {
		return false, "", j.away(err)
	}
	leader, alive, last := got(seen, 0), got(seen, 1), got(seen, 2)
	if len(alive.Kvs) > 0 && !j.o.Depose {
		id, name := holder(string(alive.Kvs[0].Value))
		if id == "" || id != j.o.Holder || name == process() {
			return false, name, nil
		}
	}
	var rev int64
	if len(leader.Kvs) > 0 {
		rev = leader.Kvs[0].ModRevision
	}
	lease, err := j.client.Grant(ctx, int64(aliveTTL/time.Second))
	if err != nil {
		return false, "", j.away(err)
	}
	named := j.o.Holder + "\n" + process()
	ops := []clientv3.Op{
		clientv3.OpPut(j.keys.leader(), named), clientv3.OpPut(j.keys.alive(), named, clientv3.WithLease(lease.ID)),
	}
	if locks := int64(len(leader.Kvs) + len(alive.Kvs)); len(last.Kvs) == 0 && got(seen, 3).Count == locks {
		ops = append(ops, clientv3.OpPut(j.keys.id(), string(seal("id", []byte(rand.Text())))),
			clientv3.OpPut(j.keys.last(), string(seal("last", appendPosition(nil, journal.Position{})))))
	}
	ops = append(ops, clientv3.OpGet(j.keys.id()))
	put, err := j.kv.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(j.keys.leader()), "=", rev)).Then(ops...).Commit()
	if err != nil {
		return false, "", j.away(err)
	}
	if !put.Succeeded {
		return false, "another process, which opened it just now,", nil
	}
	j.lease, j.term, j.since = lease.ID, put.Header.Revision, put.Header.Revision
	if kvs := got(put, len(ops)-1).Kvs; len(kvs) == 1 {
		id, err := unseal("id", kvs[0].Value)
		if err != nil {
			return false, "", j.corrupt("id", "%w", err)
		}
		j.id = string(id)
	} else {
		return false, "", j.corrupt("id", "it is missing, and others are there")
	}
	return true, "", nil
}

func got(r *clientv3.TxnResponse, n int) *pb.RangeResponse { return r.Responses[n].GetResponseRange() }

// holder is what the keys leader and alive say: the name of who has the journal, for good, and of its process.
func holder(v string) (id, name string) {
	id, name, _ = strings.Cut(v, "\n")
	return id, name
}

// stayAlive keeps the key alive for as long as the journal is open, and puts it again after an outage that was longer than its lease.
func (j *Journal) stayAlive() {
	for j.life.Err() == nil {
		if beats, err := j.client.KeepAlive(j.life, j.lease); err == nil {
			for range beats { // until the lease is lost, or the journal closed
				continue
			}
		}
		select {
		case <-j.life.Done():
			return
		case <-time.After(time.Second):
		}
		j.revive()
	}
}

// revive puts the key alive again, unless another one is the writer.
func (j *Journal) revive() {
	ctx, cancel := context.WithTimeout(j.life, j.o.Patience)
	defer cancel()
	lease, err := j.client.Grant(ctx, int64(aliveTTL/time.Second))
	if err != nil {
		return // tried again in a second
	}
	put, err := j.kv.Txn(ctx).If(j.leads()).
		Then(clientv3.OpPut(j.keys.alive(), j.o.Holder+"\n"+process(), clientv3.WithLease(lease.ID))).Commit()
	if err != nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if !put.Succeeded {
		j.end()
		return
	}
	j.lease = lease.ID
}

// leads is the comparison that every change makes.
func (j *Journal) leads() clientv3.Cmp {
	return clientv3.Compare(clientv3.ModRevision(j.keys.leader()), "=", j.term)
}
