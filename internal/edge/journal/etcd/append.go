//go:build etcd

package etcd

import (
	clientv3 "go.etcd.io/etcd/client/v3"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/journal"
)

// Append implements journal.Journal: one transaction, behind those of its parts if it is larger than one value.
func (j *Journal) Append(records [][]byte) (journal.Position, error) {
	j.mu.Lock()
	at, err := j.last, j.usable()
	rev, t := j.lastRev, try{term: uint64(j.term), number: j.tries + 1}
	j.mu.Unlock()
	if err != nil {
		return journal.Position{}, err
	}
	if len(records) == 0 {
		return at, nil
	}
	if err := j.fits(records); err != nil {
		return journal.Position{}, err
	}
	first, body := at.Seq+1, appendRecords(nil, records)
	for _, r := range records {
		at = at.Next(r)
	}
	h := header{at: at, length: int64(len(body))}
	size := 0
	if len(body) > j.o.partBytes {
		j.mu.Lock()
		j.tries++
		j.mu.Unlock()
		h.try = t
		for ; len(body) > 0; h.parts++ {
			n := min(len(body), j.o.partBytes)
			written, err := j.putPart("part", first, t, h.parts, body[:n])
			if err != nil {
				return journal.Position{}, err
			}
			size, body = size+written, body[n:]
		}
	}
	key := j.keys.batch(first)
	value := seal(j.keys.own([]byte(key)), h.append(nil), body)
	if err := j.change(guard{j.keys.last(), &rev}, seal("last", appendPosition(nil, at)), clientv3.OpPut(key, string(value))); err != nil {
		return journal.Position{}, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.last, j.lastRev = at, rev
	j.batchBytes += int64(size + len(value))
	return at, nil
}

// putPart puts one part, and returns how many bytes its value has. No other try has its key.
func (j *Journal) putPart(of string, seq uint64, t try, n int, content []byte) (int, error) {
	key := j.keys.part(of, seq, t, n)
	value := seal(j.keys.own([]byte(key)), content)
	var none int64
	return len(value), j.change(guard{key, &none}, value)
}

// fits is the error of a batch that no journal takes.
func (j *Journal) fits(records [][]byte) error {
	total := 0
	for i, r := range records {
		if len(r) > journal.MaxRecord {
			return j.errorf(errkind.Invalid, "record %d of the batch has %d bytes, more than %d: nothing was stored", i, len(r), journal.MaxRecord)
		}
		total += len(r)
	}
	if total > journal.MaxBatch {
		return j.errorf(errkind.Invalid, "the batch has %d records of %d bytes together, more than %d: nothing was stored; split it",
			len(records), total, journal.MaxBatch)
	}
	return nil
}
