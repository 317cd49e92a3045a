package pod

import (
	"bytes"
	"compress/flate"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"

	"sluice.dev/sluice/internal/core/errkind"
)

// A run file is encrypted in its Pod's spec (ADR 0051). Readers of Pods see only that there is one; readers of the namespace's Secrets have
// the key. The init container, which is ours, decrypts it; the subjob's container has no key.

// Environment variables of the init container: the sealed run file and the key's text.
const (
	Sealed  = "SLUICE_RUN"
	KeyText = "SLUICE_KEY"
)

// KeySize of a key in bytes (AES-256).
const KeySize = 32

// MaxSealed bounds a sealed run file in bytes: Linux limits an environment variable to 128 KiB.
const MaxSealed = 120 << 10

// mostRun bounds a decrypted run file, in bytes.
const mostRun = 16 << 20

// Key seals run files. ID names it, without dots.
type Key struct {
	ID     string
	Secret []byte
}

// Text is the key as stored in a Secret.
func (k *Key) Text() string { return base64.RawURLEncoding.EncodeToString(k.Secret) }

// ParseKey parses a key's text; false: it is none.
func ParseKey(id, text string) (Key, bool) {
	secret, err := base64.RawURLEncoding.DecodeString(text)
	return Key{ID: id, Secret: secret}, err == nil && len(secret) == KeySize
}

func (k *Key) cipher() (cipher.AEAD, error) {
	b, err := aes.NewCipher(k.Secret)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(b)
}

// bound is the additional data of the encryption: format and Pod.
func bound(name string) []byte { return []byte("sluice.dev/run/1 " + name) }

// packers pools compressors: a new one allocates and clears more than a megabyte, a tenth of the operator's whole work for a short subjob.
var packers = sync.Pool{New: func() any { //nolint:gochecknoglobals // a pool keeps no state of its users
	w, err := flate.NewWriter(io.Discard, flate.BestSpeed)
	if err != nil {
		panic(err) // the level is valid
	}
	return w
}}

// Seal encrypts a run file for one Pod, by its name, as text. Invalid: the result is longer than MaxSealed.
func Seal(k *Key, name string, r *Run) (string, error) {
	plain, err := json.Marshal(r)
	if err != nil {
		return "", err
	}
	if len(plain) > mostRun {
		return "", errkind.Errorf(errkind.Invalid, "its command and environment take %d MiB, and at most %d are taken", len(plain)>>20,
			mostRun>>20)
	}
	var short bytes.Buffer // presigned URLs compress well: they are nearly alike
	w := packers.Get().(*flate.Writer)
	defer packers.Put(w)
	w.Reset(&short)
	_, err = w.Write(plain)
	if err = errors.Join(err, w.Close()); err != nil {
		return "", err
	}
	c, err := k.cipher()
	if err != nil {
		return "", err
	}
	text := k.ID + "." + base64.RawURLEncoding.EncodeToString(c.Seal(nil, nil, short.Bytes(), bound(name)))
	if len(text) > MaxSealed {
		return "", errkind.Errorf(errkind.Invalid, "its command and environment take %d bytes beside its URLs, packed, and a Pod "+
			"carries at most %d: give large settings by its work directory", len(text), MaxSealed)
	}
	return text, nil
}

// KeyOf is the ID of the key of a sealed text.
func KeyOf(text string) string {
	id, _, _ := strings.Cut(text, ".")
	return id
}

// Open decrypts a run file for a Pod. Denied: the key is another, it was sealed for another Pod, or it was changed.
func Open(k *Key, name, text string) ([]byte, error) {
	id, code, _ := strings.Cut(text, ".")
	sealed, err := base64.RawURLEncoding.DecodeString(code)
	if err != nil || id != k.ID {
		return nil, errkind.Errorf(errkind.Denied, "what is to run is not sealed with key %s", k.ID)
	}
	c, err := k.cipher()
	if err != nil {
		return nil, errkind.Errorf(errkind.Denied, "key %s has %d bytes, want %d", k.ID, len(k.Secret), KeySize)
	}
	short, err := c.Open(nil, nil, sealed, bound(name))
	if err != nil {
		return nil, errkind.Errorf(errkind.Denied, "key %s does not open what Pod %s is to run: the key is another one now, or it was "+
			"sealed for another Pod", id, name)
	}
	return io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(short)), mostRun))
}

// NewKey makes a random key.
func NewKey(id string) Key {
	k := Key{ID: id, Secret: make([]byte, KeySize)}
	_, _ = rand.Read(k.Secret) // never fails
	return k
}
