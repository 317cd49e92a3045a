package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
)

type headMode int

const (
	noHead headMode = iota
	lazyHead
	syncedHead
)

// plain is an append-only file of frames, one a batch: length, checksum, chained SHA-256 digest, records; and beside it,
// perhaps, a head with the number of acknowledged records.
type plain struct {
	f, head *os.File
	mode    headMode
	off     int64
	n       uint64
	digest  [32]byte
	buf     []byte
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

const plainHeader = 4 + 4 + 32

func openPlain(mode headMode) func(string) (store, error) {
	return func(dir string) (store, error) {
		f, err := os.OpenFile(filepath.Join(dir, "log"), os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		head, err := os.OpenFile(filepath.Join(dir, "head"), os.O_RDWR|os.O_CREATE, 0o600)
		return &plain{f: f, head: head, mode: mode}, err
	}
}

func (p *plain) append(batch [][]byte) error {
	p.buf = append(p.buf[:0], make([]byte, plainHeader)...)
	digest := p.digest
	for _, r := range batch {
		h := sha256.New()
		h.Write(digest[:])
		h.Write(r)
		h.Sum(digest[:0])
		p.buf = binary.AppendUvarint(p.buf, uint64(len(r)))
		p.buf = append(p.buf, r...)
	}
	binary.LittleEndian.PutUint32(p.buf, uint32(len(p.buf)-plainHeader))
	copy(p.buf[8:], digest[:])
	binary.LittleEndian.PutUint32(p.buf[4:], crc32.Checksum(p.buf[8:], castagnoli))
	if _, err := p.f.WriteAt(p.buf, p.off); err != nil {
		return errors.Join(err, p.f.Truncate(p.off), p.f.Sync())
	}
	if err := p.f.Sync(); err != nil {
		return err
	}
	p.off += int64(len(p.buf))
	p.digest = digest
	p.n += uint64(len(batch))
	if p.mode == noHead {
		return nil
	}
	_, err := p.head.WriteAt(append(binary.LittleEndian.AppendUint64(nil, p.n), digest[:]...), 0)
	if err == nil && p.mode == syncedHead {
		err = p.head.Sync()
	}
	return err
}

func (p *plain) close() error { return errors.Join(p.f.Close(), p.head.Close()) }

func scanPlain(mode headMode) func(string, func([]byte)) error {
	return func(dir string, f func([]byte)) error {
		b, err := os.ReadFile(filepath.Join(dir, "log"))
		if err != nil {
			return err
		}
		var digest [32]byte
		n := uint64(0)
		for off := 0; off < len(b); {
			rest := b[off:]
			if len(rest) < plainHeader {
				return fmt.Errorf("byte %d: a header is cut short", off)
			}
			length := int(binary.LittleEndian.Uint32(rest))
			if length > len(rest)-plainHeader || crc32.Checksum(rest[8:plainHeader+length], castagnoli) != binary.LittleEndian.Uint32(rest[4:]) {
				return fmt.Errorf("byte %d: a batch is damaged", off)
			}
			for payload := rest[plainHeader : plainHeader+length]; len(payload) > 0; n++ {
				size, k := binary.Uvarint(payload)
				r := payload[k : k+int(size)]
				h := sha256.New()
				h.Write(digest[:])
				h.Write(r)
				h.Sum(digest[:0])
				f(r)
				payload = payload[k+int(size):]
			}
			if !bytes.Equal(digest[:], rest[8:plainHeader]) {
				return fmt.Errorf("byte %d: the digest does not follow", off)
			}
			off += plainHeader + length
		}
		if mode == noHead {
			return nil
		}
		head, err := os.ReadFile(filepath.Join(dir, "head"))
		if err != nil || len(head) < 8 || binary.LittleEndian.Uint64(head) > n {
			return fmt.Errorf("the head says more than the %d records there are (%v)", n, err)
		}
		return nil
	}
}
