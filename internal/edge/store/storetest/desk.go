package storetest

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/store"
)

// Place is where one store lies, and what a test can do to it behind its back.
type Place struct {
	// Open opens the store; again, for another process beside the first.
	Open func() (store.Store, error)
	// Age makes an object look as if it had been put that long ago.
	Age func(d store.Digest, by time.Duration)
	// Damage changes a byte of a stored object.
	Damage func(d store.Digest)
	// Tear changes a byte of what a broken upload of an object has left, as a power cut may. Nil: the kind's server keeps that from
	// happening.
	Tear func(d store.Digest)
	// Sent is how many bytes of contents were sent for storing so far.
	Sent func() int64
	// Part is how much a broken upload may lose at most of what it has sent, in bytes.
	Part int64
	// Fail has everything that changes the store fail in this way until it is called with Works.
	Fail func(Fault)
	// Spec is handed to a child process, whose TestMain calls Child with it.
	Spec string
}

// Fault is a way to fail.
type Fault int

// The ways.
const (
	Works Fault = iota
	Full
	Forbidden
	Unreachable
)

// Kind makes the place of an empty store.
type Kind func(t testing.TB) *Place

type desk struct {
	*testing.T
	*Place
	s store.Store
}

func opened(t *testing.T, p *Place) store.Store {
	t.Helper()
	s, err := p.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func (d *desk) ok(err error) {
	d.Helper()
	if err != nil {
		d.Fatal(err)
	}
}

func (d *desk) kind(err error, want errkind.Kind, what string) {
	d.Helper()
	if err == nil || errkind.Of(err) != want {
		d.Fatalf("%s: %v (of kind %v), want an error of kind %v", what, err, errkind.Of(err), want)
	}
}

func (d *desk) put(data []byte) store.Digest {
	d.Helper()
	o, err := d.s.Put(d.Context(), "", bytes.NewReader(data))
	d.ok(err)
	if o.Digest != digestOf(data) || o.Size != int64(len(data)) {
		d.Fatalf("put %d bytes of %s, and it says %d of %s", len(data), digestOf(data), o.Size, o.Digest)
	}
	return o.Digest
}

func (d *desk) holds(data []byte) {
	d.Helper()
	r, err := d.s.Open(d.Context(), digestOf(data))
	d.ok(err)
	got, err := io.ReadAll(r)
	d.ok(errors.Join(err, r.Close()))
	if !bytes.Equal(got, data) {
		d.Fatalf("%d bytes came back of %d, or others", len(got), len(data))
	}
}

// unseen: an object is nowhere to be seen.
func (d *desk) unseen(g store.Digest) {
	d.Helper()
	_, err := d.s.Stat(d.Context(), g)
	d.kind(err, errkind.NotFound, "Stat of what was not stored")
	_, err = d.s.Open(d.Context(), g)
	d.kind(err, errkind.NotFound, "Open of what was not stored")
	d.kind(d.s.Renew(d.Context(), g), errkind.NotFound, "Renew of what was not stored")
	if slices.Contains(d.all(), g) {
		d.Fatal("an object that was not stored is listed")
	}
}

func (d *desk) all() (list []store.Digest) {
	d.Helper()
	d.ok(d.s.List(d.Context(), func(o store.Object) error {
		list = append(list, o.Digest)
		return nil
	}))
	slices.Sort(list)
	return list
}

func digestOf(data []byte) store.Digest {
	h := sha256.New()
	h.Write(data)
	return store.DigestOf(h)
}

// content is some bytes, others for each seed.
func content(seed uint64, size int) []byte {
	data := make([]byte, size)
	r := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), 1})
	_, _ = r.Read(data) // never fails
	return data
}
