//go:build etcd

package etcd

import (
	"context"
	"errors"
	"fmt"
	"io"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/journal"
)

// restore is what can be done about records that are gone: Sluice keeps no second copy.
const restore = "restore etcd from a snapshot of its own (etcdutl snapshot restore); or give another prefix to start with no jobs, and submit them again"

// corrupt is the error of a key that is damaged or missing.
func (j *Journal) corrupt(key string, format string, args ...any) error {
	return j.errorf(errkind.Corrupt, "%s: %w; nothing was changed; %s", key, fmt.Errorf(format, args...), restore)
}

// Replay implements journal.Journal. It reads all keys as they were when this one became the writer.
func (j *Journal) Replay(
	snapshot func(state io.Reader) error, record func(p journal.Position, data []byte) error,
) (journal.Position, error) {
	j.mu.Lock()
	asked, broken := j.asked, j.broken
	j.asked = true
	j.mu.Unlock()
	if broken != nil {
		return journal.Position{}, broken
	}
	if asked {
		return journal.Position{}, j.errorf(errkind.Invalid, "it was replayed already")
	}
	r := &reading{j: j, rev: j.since}
	err := r.all(snapshot, record)
	j.mu.Lock()
	defer j.mu.Unlock()
	if err != nil {
		return journal.Position{}, j.breakOff(err)
	}
	j.replayed = true
	j.last, j.lastRev, j.stateAt, j.stateRev = r.last, r.lastRev, r.stateAt, r.stateRev
	j.stateBytes, j.batchBytes = r.stateBytes, r.batchBytes
	return j.last, nil
}

// reading is one reading of all keys, as of one revision.
type reading struct {
	j                      *Journal
	rev                    int64
	last, stateAt          journal.Position
	lastRev, stateRev      int64
	stateBytes, batchBytes int64
}

func (r *reading) all(snapshot func(io.Reader) error, record func(journal.Position, []byte) error) error {
	if err := r.state(snapshot); err != nil {
		return err
	}
	if err := r.batches(record); err != nil {
		return err
	}
	kv, err := r.one(r.j.keys.last())
	if err != nil {
		return err
	}
	if kv == nil {
		return r.j.corrupt("last", "it is missing, and others are there")
	}
	content, err := unseal("last", kv.Value)
	if err != nil {
		return r.j.corrupt("last", "%w", err)
	}
	end, _, err := readPosition(content)
	switch {
	case err != nil:
		return r.j.corrupt("last", "%w", err)
	case end.Seq > r.last.Seq:
		return r.j.corrupt(r.next(), "it is missing: the journal ends at record %d, and was at %s", r.last.Seq, end)
	case end != r.last:
		return r.j.corrupt("last", "it is %s, and the records end at %s", end, r.last)
	}
	r.lastRev = kv.ModRevision
	return nil
}

// state hands over the snapshot that counts, if there is one.
func (r *reading) state(snapshot func(io.Reader) error) error {
	kv, err := r.one(r.j.keys.state())
	if err != nil || kv == nil {
		return err
	}
	h, _, err := contentOf("state", kv.Value)
	if err != nil {
		return r.j.corrupt("state", "%w", err)
	}
	r.last, r.stateAt, r.stateRev, r.stateBytes = h.at, h.at, kv.ModRevision, int64(len(kv.Value))
	p := &parts{r: r, of: "state", seq: h.at.Seq, h: h}
	if err = snapshot(p); err != nil {
		return errors.Join(err, p.failed)
	}
	if _, err = io.Copy(io.Discard, p); err != nil {
		return err
	}
	r.stateBytes += p.bytes
	return nil
}

// contentOf is the header of a value, and what follows it.
func contentOf(name string, v []byte) (h header, rest []byte, err error) {
	content, err := unseal(name, v)
	if err != nil {
		return h, nil, err
	}
	return readHeader(content)
}

// batches hands over the records behind the snapshot. Batches that it covers are left from an opening that ended while it removed them.
func (r *reading) batches(record func(journal.Position, []byte) error) error {
	from, end := r.j.keys.batch(r.stateAt.Seq+1), clientv3.GetPrefixRangeEnd(string(r.j.keys)+"batch/")
	for {
		kvs, more, err := r.get(from, clientv3.WithRange(end), clientv3.WithLimit(page))
		if err != nil {
			return err
		}
		for _, kv := range kvs {
			if err := r.batch(kv, record); err != nil {
				return err
			}
		}
		if !more {
			return nil
		}
		from = string(kvs[len(kvs)-1].Key) + "\x00"
	}
}

func (r *reading) batch(kv *mvccpb.KeyValue, record func(journal.Position, []byte) error) error {
	name := r.j.keys.own(kv.Key)
	first, err := r.j.keys.firstOf(kv.Key)
	if err != nil {
		return r.j.corrupt(name, "no key of a journal's: %w", err)
	}
	if first != r.last.Seq+1 {
		return r.j.corrupt(r.next(), "it is missing: record %d is followed by %s", r.last.Seq, name)
	}
	h, body, err := contentOf(name, kv.Value)
	if err != nil {
		return r.j.corrupt(name, "%w", err)
	}
	r.batchBytes += int64(len(kv.Value))
	if h.parts > 0 {
		p := &parts{r: r, of: "part", seq: first, h: h}
		if body, err = io.ReadAll(p); err != nil {
			return err
		}
		r.batchBytes += p.bytes
	}
	var ended error
	at, err := eachRecord(r.last, body, func(p journal.Position, data []byte) error {
		ended = record(p, data)
		return ended
	})
	switch {
	case ended != nil:
		return ended
	case err != nil:
		return r.j.corrupt(name, "%w", err)
	case at != h.at:
		return r.j.corrupt(name, "behind it is %s, and its records end at %s: what is before it is not what was", h.at, at)
	}
	r.last = at
	return nil
}

// next is the name of the key that the next batch has.
func (r *reading) next() string { return r.j.keys.own([]byte(r.j.keys.batch(r.last.Seq + 1))) }

// one is a single key, nil if it is not there.
func (r *reading) one(key string) (*mvccpb.KeyValue, error) {
	kvs, _, err := r.get(key)
	if err != nil || len(kvs) == 0 {
		return nil, err
	}
	return kvs[0], nil
}

// get reads keys as of the reading's revision, and asks again for as long as etcd may come back.
func (r *reading) get(key string, opts ...clientv3.OpOption) (kvs []*mvccpb.KeyValue, more bool, err error) {
	ctx, cancel := context.WithTimeout(r.j.life, r.j.o.Patience)
	defer cancel()
	opts = append(opts, clientv3.WithRev(r.rev))
	for {
		got, err := r.j.kv.Get(ctx, key, opts...)
		if err == nil {
			return got.Kvs, got.More, nil
		}
		if !passing(err) || !r.j.pause(ctx) {
			return nil, false, r.j.away(err)
		}
	}
}

// parts reads what lies in several keys, one after another.
type parts struct {
	r   *reading
	of  string
	seq uint64
	h   header
	// next part to read, what is left of the one that was, how many bytes of content and of values there were.
	next          int
	rest          []byte
	length, bytes int64
	failed        error
}

// Read implements io.Reader.
func (p *parts) Read(b []byte) (int, error) {
	for len(p.rest) == 0 {
		if p.failed == nil {
			p.failed = p.more()
		}
		if p.failed != nil {
			return 0, p.failed
		}
	}
	n := copy(b, p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

// more gets the next part, or io.EOF.
func (p *parts) more() error {
	key := p.r.j.keys.part(p.of, p.seq, p.h.try, p.next)
	name := p.r.j.keys.own([]byte(key))
	if p.next == p.h.parts {
		if p.length != p.h.length {
			return p.r.j.corrupt(name, "its parts have %d bytes, and had %d", p.length, p.h.length)
		}
		return io.EOF
	}
	kv, err := p.r.one(key)
	if err != nil {
		return err
	}
	if kv == nil {
		return p.r.j.corrupt(name, "it is missing")
	}
	if p.rest, err = unseal(name, kv.Value); err != nil {
		return p.r.j.corrupt(name, "%w", err)
	}
	p.next, p.length, p.bytes = p.next+1, p.length+int64(len(p.rest)), p.bytes+int64(len(kv.Value))
	return nil
}
