//go:build kubernetes

package kubernetes

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/cluster"
	"sluice.dev/sluice/internal/edge/executor/shim/pod"
)

const (
	// keyLasts is how long new run files are sealed with one key; keyStays how long the key is kept, which is at least as long as any URL
	// sealed with it lives.
	keyLasts = 24 * time.Hour
	keyStays = keyLasts + mostLent
	// keyForm is the time layout with which a key's ID begins: when it was made.
	keyForm = "20060102T150405Z"
	// mostKeys are kept in a namespace; each process of an operator makes one.
	mostKeys = 200
	// checkKeys is how often a namespace's keys are verified while a Pod waits for them.
	checkKeys = 30 * time.Second
)

// keys are the keys that seal run files, in a Secret of each namespace. Invariant: nothing is sealed but with a key that this process made
// and that the Secret has. It also has keys of earlier processes, for Pods that have not begun.
type keys struct {
	api *api
	// used reports whether an unsettled subjob is of a namespace.
	used func(ns string) bool

	mu    sync.Mutex
	rings map[string]*keyring
}

// keyring is what this process has in one namespace.
type keyring struct {
	mu sync.Mutex
	// mine are the keys that this process made: it seals with no other, since others may be able to write the Secret.
	mine    map[string]pod.Key
	checked time.Time
}

func (s *keys) ring(ns string) *keyring {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.rings[ns]
	if k == nil {
		k = &keyring{mine: map[string]pod.Key{}}
		s.rings[ns] = k
	}
	return k
}

// key is the key to seal with now in a namespace, made if there is none.
func (s *keys) key(ctx context.Context, ns string) (pod.Key, error) {
	k := s.ring(ns)
	k.mu.Lock()
	defer k.mu.Unlock()
	now := s.api.o.Clock().UTC()
	if id := newest(k.mine); id != "" && now.Sub(made(id)) < keyLasts {
		return k.mine[id], nil
	}
	there, err := s.read(ctx, ns)
	if err != nil {
		return pod.Key{}, err
	}
	key := pod.NewKey(now.Format(keyForm) + "-" + strings.ToLower(rand.Text()[:6]))
	next := maps.Clone(there)
	next[key.ID] = []byte(key.Text())
	maps.DeleteFunc(next, func(id string, _ []byte) bool { return now.Sub(made(id)) > keyStays })
	for _, id := range slices.Sorted(maps.Keys(next))[:max(0, len(next)-mostKeys)] { // an operator that restarts again and again
		delete(next, id)
	}
	if err := s.write(ctx, ns, there, next); err != nil {
		return pod.Key{}, err
	}
	maps.DeleteFunc(k.mine, func(id string, _ pod.Key) bool { return next[id] == nil })
	k.mine[key.ID], k.checked = key, s.api.o.Clock()
	return key, nil
}

// have checks a namespace's keys, at most once in checkKeys, and writes this process's again if they were deleted or changed.
// NotFound: there is no key at all, and this process has none. A single lost key of an earlier process goes unnoticed.
func (s *keys) have(ctx context.Context, ns string) error {
	k := s.ring(ns)
	k.mu.Lock()
	defer k.mu.Unlock()
	if s.api.o.Clock().Sub(k.checked) < checkKeys {
		return nil
	}
	there, err := s.read(ctx, ns)
	if err != nil {
		return err
	}
	next, lacks := maps.Clone(there), false
	for id, key := range k.mine {
		lacks = lacks || string(there[id]) != key.Text()
		next[id] = []byte(key.Text())
	}
	switch {
	case lacks:
		s.api.o.Log.Warn("somebody has changed the keys of this operator; they are put back", "namespace", ns, "secret", s.api.o.keysName())
		err = s.write(ctx, ns, there, next)
	case len(there) == 0:
		return errkind.Errorf(errkind.NotFound, "Secret %s/%s, with the keys of its operator, is gone", ns, s.api.o.keysName())
	}
	if err == nil {
		k.checked = s.api.o.Clock()
	}
	return err
}

// read reads the Secret; its absence is no error.
func (s *keys) read(ctx context.Context, ns string) (map[string][]byte, error) {
	secret, err := call(s.api, "get secret", func() (*corev1.Secret, error) {
		return s.api.o.Client.CoreV1().Secrets(ns).Get(ctx, s.api.o.keysName(), metav1.GetOptions{})
	})
	if apierrors.IsNotFound(err) {
		return map[string][]byte{}, nil
	}
	if err != nil {
		return nil, err
	}
	keys := map[string][]byte{}
	for id, text := range secret.Data {
		if _, ok := pod.ParseKey(id, string(text)); ok && !made(id).IsZero() {
			keys[id] = text
		}
	}
	return keys, nil
}

// write changes the Secret from the keys read to those wanted.
func (s *keys) write(ctx context.Context, ns string, there, next map[string][]byte) error {
	secrets := s.api.o.Client.CoreV1().Secrets(ns)
	keys := map[string]any{}
	for id := range there {
		keys[id] = nil
	}
	for id, secret := range next {
		keys[id] = secret
	}
	patch, err := json.Marshal(map[string]any{"data": keys})
	if err != nil {
		return err
	}
	change := func() error {
		_, failed := call(s.api, "patch secret", func() (*corev1.Secret, error) {
			return secrets.Patch(ctx, s.api.o.keysName(), types.MergePatchType, patch, metav1.PatchOptions{})
		})
		return failed
	}
	if len(there) > 0 {
		if err = change(); !apierrors.IsNotFound(err) {
			return err
		}
	}
	made := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: s.api.o.keysName(), Namespace: ns,
			Labels: map[string]string{cluster.LabelOperator: s.api.o.Operator}},
		Type: corev1.SecretTypeOpaque, Data: next,
	}
	_, err = call(s.api, "create secret", func() (*corev1.Secret, error) { return secrets.Create(ctx, made, metav1.CreateOptions{}) })
	if apierrors.IsAlreadyExists(err) { // emptied by somebody, or the answer to our creation was lost
		err = change()
	}
	return err
}

// drop deletes the keys of a namespace where nothing of this operator runs. The next subjob there makes new ones.
func (s *keys) drop(ctx context.Context, ns string) error {
	k := s.ring(ns)
	k.mu.Lock()
	defer k.mu.Unlock()
	if s.used(ns) {
		return nil
	}
	_, err := call(s.api, "delete secret", func() (struct{}, error) {
		return struct{}{}, s.api.o.Client.CoreV1().Secrets(ns).Delete(ctx, s.api.o.keysName(), metav1.DeleteOptions{})
	})
	if apierrors.IsNotFound(err) {
		err = nil
	}
	clear(k.mine)
	return err
}

// newest is the ID of the latest key; empty: none.
func newest(keys map[string]pod.Key) (id string) {
	for k := range keys {
		id = max(id, k)
	}
	return id
}

// made is when a key was made, by its ID; zero: not an ID of ours.
func made(id string) time.Time {
	day, _, _ := strings.Cut(id, "-")
	at, _ := time.Parse(keyForm, day)
	return at
}

// mostLent is the longest life of a presigned URL: S3's own bound.
const mostLent = 7 * 24 * time.Hour
