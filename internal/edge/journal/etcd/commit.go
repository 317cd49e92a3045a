//go:build etcd

package etcd

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"sluice.dev/sluice/internal/core/errkind"
)

// answer is how long a first try waits. A member that has lost its leader holds a request for 7 s (5 s and two election timeouts) before
// it says so, and the next leader is elected in one or two. Each try waits twice as long, for a disk that is slow.
const answer = time.Second

// guard is a key that a change puts, and its revision before.
type guard struct {
	key string
	rev *int64
}

// change makes a transaction that puts g's key to value and does ops, if this one is still the writer. One whose answer was lost may have
// been made: it is asked for again until etcd answers or Patience is over, and then it is found by what the key has. The key's revision
// is compared too, so a request that etcd carries out late, behind later ones, does nothing.
//
// An error of kind Exhausted has changed nothing. Any other may have, and ends the journal: the next opening reads what is there.
func (j *Journal) change(g guard, value []byte, ops ...clientv3.Op) error {
	ctx, cancel := context.WithTimeout(j.life, j.o.Patience)
	defer cancel()
	ops = append(ops, clientv3.OpPut(g.key, string(value)))
	for wait := answer; ; wait *= 2 {
		one, over := context.WithTimeout(ctx, wait)
		r, err := j.kv.Txn(one).If(j.leads(), clientv3.Compare(clientv3.ModRevision(g.key), "=", *g.rev)).
			Then(ops...).Else(clientv3.OpGet(j.keys.leader()), clientv3.OpGet(g.key)).Commit()
		over()
		switch {
		case err == nil && r.Succeeded:
			*g.rev = r.Header.Revision
			return nil
		case err == nil:
			leader, own := got(r, 0).Kvs, got(r, 1).Kvs
			if len(leader) == 1 && leader[0].ModRevision == j.term && len(own) == 1 && bytes.Equal(own[0].Value, value) {
				*g.rev = own[0].ModRevision
				return nil
			}
			return j.ends(j.deposed(leader))
		case errors.Is(err, rpctypes.ErrNoSpace):
			return j.errorf(errkind.Exhausted, "etcd has no room (%w): compact and defragment it, or raise its quota", err)
		case !passing(err):
			return j.ends(j.away(err))
		}
		if !j.pause(ctx) {
			return j.ends(j.away(err))
		}
	}
}

// pause waits before the same request is made again; false: there is no time left.
func (j *Journal) pause(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(j.o.again):
		return true
	}
}

// ends is breakOff for a caller without the lock.
func (j *Journal) ends(err error) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.breakOff(err)
}

// deposed is the error of who is not the writer any more.
func (j *Journal) deposed(leader []*mvccpb.KeyValue) error {
	who := "somebody removed its key " + j.keys.leader()
	if len(leader) == 1 && leader[0].ModRevision != j.term {
		_, name := holder(string(leader[0].Value))
		who = name + " is its writer now"
	} else if len(leader) == 1 {
		who = "somebody else has changed its keys"
	}
	return j.errorf(errkind.Conflict, "%s: this process may write nothing more", who)
}

// passing says that the same request may be answered when it is asked again.
func passing(err error) bool {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return true
	}
	var e rpctypes.EtcdError
	if errors.As(err, &e) {
		return e.Code() == codes.Unavailable || e.Code() == codes.DeadlineExceeded || errors.Is(err, rpctypes.ErrTooManyRequests)
	}
	return slices.Contains([]codes.Code{codes.Unavailable, codes.DeadlineExceeded, codes.Aborted, codes.Canceled}, status.Code(err))
}

// away is the error of an etcd that does not answer, or refuses.
func (j *Journal) away(err error) error {
	return j.errorf(errkind.Unavailable, "etcd at %v: %w", j.o.Endpoints, err)
}
