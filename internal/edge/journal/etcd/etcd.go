//go:build etcd

// Package etcd is the kind of journal whose records are keys of an etcd cluster, so that they outlive the machine of whoever writes them.
//
// Its keys, below a prefix:
//
//	leader         who writes: the revision at which this key was last put is the fence
//	alive          who has it open, for as long as a lease of etcd's lasts
//	id             which journal this is: drawn when it was made
//	last           the position of the last record
//	batch/SEQ      the records of one Append, from record SEQ on (16 hexadecimal digits)
//	part/SEQ/...   the parts of a batch that is too large for one request
//	state          the snapshot that counts: its position, its length, how many parts it has
//	state/SEQ/...  the parts of the snapshot as of record SEQ
//
// Whatever changes one of them is a transaction that compares the revision of leader. So who was deposed can change nothing more, whatever
// it believes of leases and clocks: the key alive decides only whether to refuse a second opening. Each value is sealed with a digest over
// its name and content, and a batch has the position behind it, which a reader computes from the records: what is damaged, missing or
// of another place is named.
package etcd

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/journal"
)

// Options say where a journal is, and how it is opened.
type Options struct {
	// Endpoints are etcd's members, such as https://10.0.0.1:2379.
	Endpoints []string
	// Prefix is what all keys begin with, such as /sluice/lab. Another journal needs another one.
	Prefix string
	// TLS of the connections to https endpoints; User and Password where etcd asks for them.
	TLS            *tls.Config
	User, Password string
	// Holder names whoever opens it, for good: a data directory, whose lock has one process of it at a time. Who finds its own name in the
	// key alive knows that to be of a process that is dead, and does not wait.
	Holder string
	// Depose opens it although another one has it open, who can then write nothing more.
	Depose bool
	// Notice is told what is worth a line in the log. It may be called from any goroutine.
	Notice func(text string)
	// Patience is how long an Append, a Snapshot or Open waits for etcd to answer: 10 s unless it is said.
	Patience time.Duration
	// partBytes is the most that one value holds, and again how long a try waits for the next: 1 MiB and 50 ms unless a test has less.
	partBytes int
	again     time.Duration
}

const (
	patience  = 10 * time.Second
	partBytes = 1 << 20
	again     = 50 * time.Millisecond
	// aliveTTL is how long the key alive outlasts its process. etcd grants no less than one and a half of its election timeouts.
	aliveTTL = 3 * time.Second
	// page is how many keys are read at once.
	page = 64
)

// Journal is one open journal. It implements journal.Journal.
type Journal struct {
	client *clientv3.Client
	kv     clientv3.KV
	o      Options
	keys   keys
	life   context.Context
	end    context.CancelFunc
	beats  sync.WaitGroup

	mu sync.Mutex
	// term is the revision of the key leader that made this one the writer; since is the revision to read at.
	term, since int64
	// id is which journal it is.
	id    string
	lease clientv3.LeaseID
	// asked says that Replay was called, replayed that it has come to the end.
	asked, replayed bool
	// broken is why it is not written any more.
	broken error
	// last is the position of the last record, stateAt that of the snapshot that counts; lastRev and stateRev are their keys' revisions.
	last, stateAt     journal.Position
	lastRev, stateRev int64
	// stateBytes and batchBytes are what the snapshot and the batches behind it take.
	stateBytes, batchBytes int64
	// tries counts what was begun that has parts.
	tries        uint64
	snapshotting bool
}

// Open becomes the writer of a journal, and makes it if there is none.
func Open(ctx context.Context, o Options) (*Journal, error) {
	if len(o.Endpoints) == 0 || strings.Trim(o.Prefix, "/") == "" {
		return nil, errkind.Errorf(errkind.Invalid, "a journal in etcd needs endpoints and a prefix, such as /sluice/lab")
	}
	c, err := clientv3.New(clientv3.Config{
		Endpoints: o.Endpoints, TLS: o.TLS, Username: o.User, Password: o.Password, DialTimeout: patience,
		DialKeepAliveTime: 2 * time.Second, DialKeepAliveTimeout: 2 * time.Second, Logger: zap.NewNop(),
	})
	if err != nil {
		return nil, errkind.Errorf(errkind.Unavailable, "journal etcd:%s: %w", o.Prefix, err)
	}
	j, err := openOn(ctx, c, c.KV, o)
	if err != nil {
		_ = c.Close() // nothing was begun
		return nil, err
	}
	return j, nil
}

// openOn opens it with a client whose transactions and reads go through kv.
func openOn(ctx context.Context, c *clientv3.Client, kv clientv3.KV, o Options) (*Journal, error) {
	o.Patience = cmp.Or(o.Patience, patience)
	o.partBytes, o.again = cmp.Or(o.partBytes, partBytes), cmp.Or(o.again, again)
	if o.Notice == nil {
		o.Notice = func(string) {}
	}
	j := &Journal{client: c, kv: kv, o: o, keys: keys("/" + strings.Trim(o.Prefix, "/") + "/")}
	if err := j.lead(ctx); err != nil {
		if j.lease != 0 {
			_, _ = c.Revoke(ctx, j.lease) // it lapses by itself
		}
		return nil, err
	}
	j.life, j.end = context.WithCancel(context.WithoutCancel(ctx))
	j.beats.Go(j.stayAlive)
	return j, nil
}

// String names the journal in messages.
func (j *Journal) String() string { return "etcd:" + string(j.keys) }

// Identity says which journal it is, for good: its prefix, and what was drawn when it was made.
func (j *Journal) Identity() string { return fmt.Sprintf("%s %s", j, j.id) }

func (j *Journal) errorf(kind errkind.Kind, format string, args ...any) error {
	return errkind.Errorf(kind, "journal %s: %w", j, fmt.Errorf(format, args...))
}

// usable says why it can't be written or asked.
func (j *Journal) usable() error {
	switch {
	case j.broken != nil:
		return j.broken
	case !j.replayed:
		return j.errorf(errkind.Invalid, "replay it before writing to it")
	}
	return nil
}

// breakOff ends the writing.
func (j *Journal) breakOff(err error) error {
	if j.broken == nil {
		j.broken = err
	}
	return err
}

// Size implements journal.Journal.
func (j *Journal) Size() (bytes int64, records uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.stateBytes + j.batchBytes + sealSize + positionSize + sealSize + int64(len(j.id)), j.last.Seq - j.stateAt.Seq
}

// Close implements journal.Journal.
func (j *Journal) Close() error {
	j.mu.Lock()
	if j.life.Err() != nil {
		j.mu.Unlock()
		return nil
	}
	j.end()
	lease := j.lease
	_ = j.breakOff(j.errorf(errkind.Invalid, "it is closed"))
	j.mu.Unlock()
	j.beats.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if lease != 0 {
		_, _ = j.client.Revoke(ctx, lease) // it lapses by itself
	}
	return j.client.Close()
}

// process names this process to people.
func process() string {
	host, err := os.Hostname()
	if err != nil {
		host = "a machine without a name"
	}
	return fmt.Sprintf("process %d on %s", os.Getpid(), host)
}
