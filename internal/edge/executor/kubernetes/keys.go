//go:build kubernetes

package kubernetes

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"maps"
	"slices"
	"strings"
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

func (e *Executor) keyring(ns string) *keyring {
	e.mu.Lock()
	defer e.mu.Unlock()
	k := e.keys[ns]
	if k == nil {
		k = &keyring{mine: map[string]pod.Key{}}
		e.keys[ns] = k
	}
	return k
}

// key is the key to seal with now in a namespace, made if there is none.
func (e *Executor) key(ctx context.Context, ns string) (pod.Key, error) {
	k := e.keyring(ns)
	k.mu.Lock()
	defer k.mu.Unlock()
	now := e.o.Clock().UTC()
	if id := newest(k.mine); id != "" && now.Sub(made(id)) < keyLasts {
		return k.mine[id], nil
	}
	there, err := e.readKeys(ctx, ns)
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
	if err := e.writeKeys(ctx, ns, there, next); err != nil {
		return pod.Key{}, err
	}
	maps.DeleteFunc(k.mine, func(id string, _ pod.Key) bool { return next[id] == nil })
	k.mine[key.ID], k.checked = key, e.o.Clock()
	return key, nil
}

// haveKeys checks a namespace's keys, at most once in checkKeys, and writes this process's again if they were deleted or changed.
// NotFound: there is no key at all, and this process has none. A single lost key of an earlier process goes unnoticed.
func (e *Executor) haveKeys(ctx context.Context, ns string) error {
	k := e.keyring(ns)
	k.mu.Lock()
	defer k.mu.Unlock()
	if e.o.Clock().Sub(k.checked) < checkKeys {
		return nil
	}
	there, err := e.readKeys(ctx, ns)
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
		e.o.Log.Warn("somebody has changed the keys of this operator; they are put back", "namespace", ns, "secret", e.keysName())
		err = e.writeKeys(ctx, ns, there, next)
	case len(there) == 0:
		return errkind.Errorf(errkind.NotFound, "Secret %s/%s, with the keys of its operator, is gone", ns, e.keysName())
	}
	if err == nil {
		k.checked = e.o.Clock()
	}
	return err
}

// keysName is the Secret's name, in every namespace.
func (e *Executor) keysName() string { return cluster.KeysName(e.o.Operator) }

// readKeys reads the Secret; its absence is no error.
func (e *Executor) readKeys(ctx context.Context, ns string) (map[string][]byte, error) {
	s, err := call(e, "get secret", func() (*corev1.Secret, error) {
		return e.o.Client.CoreV1().Secrets(ns).Get(ctx, e.keysName(), metav1.GetOptions{})
	})
	if apierrors.IsNotFound(err) {
		return map[string][]byte{}, nil
	}
	if err != nil {
		return nil, err
	}
	keys := map[string][]byte{}
	for id, text := range s.Data {
		if _, ok := pod.ParseKey(id, string(text)); ok && !made(id).IsZero() {
			keys[id] = text
		}
	}
	return keys, nil
}

// writeKeys changes the Secret from the keys read to those wanted.
func (e *Executor) writeKeys(ctx context.Context, ns string, there, next map[string][]byte) error {
	secrets := e.o.Client.CoreV1().Secrets(ns)
	change := map[string]any{}
	for id := range there {
		change[id] = nil
	}
	for id, secret := range next {
		change[id] = secret
	}
	patch, err := json.Marshal(map[string]any{"data": change})
	if err != nil {
		return err
	}
	if len(there) > 0 {
		_, err = call(e, "patch secret", func() (*corev1.Secret, error) {
			return secrets.Patch(ctx, e.keysName(), types.MergePatchType, patch, metav1.PatchOptions{})
		})
		if !apierrors.IsNotFound(err) {
			return err
		}
	}
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: e.keysName(), Namespace: ns, Labels: map[string]string{cluster.LabelOperator: e.o.Operator}},
		Type:       corev1.SecretTypeOpaque, Data: next,
	}
	_, err = call(e, "create secret", func() (*corev1.Secret, error) { return secrets.Create(ctx, s, metav1.CreateOptions{}) })
	if apierrors.IsAlreadyExists(err) { // emptied by somebody, or the answer to our creation was lost
		_, err = call(e, "patch secret", func() (*corev1.Secret, error) {
			return secrets.Patch(ctx, e.keysName(), types.MergePatchType, patch, metav1.PatchOptions{})
		})
	}
	return err
}

// dropKeys deletes the keys of a namespace where nothing of this operator runs. The next subjob there makes new ones.
func (e *Executor) dropKeys(ctx context.Context, ns string) error {
	k := e.keyring(ns)
	k.mu.Lock()
	defer k.mu.Unlock()
	e.mu.Lock()
	used := false
	for _, r := range e.runs {
		used = used || e.namespace(&r.rec) == ns
	}
	e.mu.Unlock()
	if used {
		return nil
	}
	_, err := call(e, "delete secret", func() (struct{}, error) {
		return struct{}{}, e.o.Client.CoreV1().Secrets(ns).Delete(ctx, e.keysName(), metav1.DeleteOptions{})
	})
	if apierrors.IsNotFound(err) {
		err = nil
	}
	clear(k.mine)
	return err
}

// newest is the ID of the latest key; empty: none.
func newest(keys map[string]pod.Key) string {
	ids := slices.Sorted(maps.Keys(keys))
	if len(ids) == 0 {
		return ""
	}
	return ids[len(ids)-1]
}

// made is when a key was made, by its ID; zero: not an ID of ours.
func made(id string) time.Time {
	day, _, _ := strings.Cut(id, "-")
	at, err := time.Parse(keyForm, day)
	if err != nil {
		return time.Time{}
	}
	return at
}

// mostLent is the longest life of a presigned URL: S3's own bound.
const mostLent = 7 * 24 * time.Hour
