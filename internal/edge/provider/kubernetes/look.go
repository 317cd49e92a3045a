//go:build kubernetes

package kubernetes

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/provider"
)

const (
	// forceAfter is how long a deleted Pod's time is over before it is asked whether its machine is there.
	forceAfter = time.Minute
	// stuckFor is how long a Pod that can't start is left to its kubelet, which tries again.
	stuckFor = 2 * time.Minute
	// keepFailed is how long a failed Pod stays, for people to read its log. One that ended well is deleted with the next look.
	keepFailed = 10 * time.Minute
	// partingFor is how long a Pod that is gone is shown as it was last.
	partingFor = time.Minute
	// owedFor is how long a token is kept for a Pod that may yet appear.
	owedFor = 10 * time.Minute
)

// Look implements provider.Provider. It lists the pool's Pods, and sees to what needs no decision: it gives a Pod the Secret that is
// missing, or deletes the Pod, ends Pods that can't start, and removes those that have ended.
func (k *Kubernetes) Look(ctx context.Context) (provider.Look, error) {
	pods, err := k.list(ctx)
	if err != nil {
		return provider.Look{}, err
	}
	look := provider.Look{Blind: true}
	there := map[types.UID]bool{}
	for i := range pods {
		p := &pods[i]
		there[p.UID] = true
		seen := seenOf(p)
		if err = k.tend(ctx, p, &seen); err != nil { // what all others do is seen all the same
			seen.Why = brief(strings.TrimSpace(seen.Why + " " + err.Error()))
		}
		look.Seen = append(look.Seen, seen)
	}
	look.Seen = append(look.Seen, k.partings(there)...)
	slices.SortStableFunc(look.Seen, func(a, b provider.Seen) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.ID, b.ID))
	})
	return look, nil
}

// tend does what a Pod needs, and notes what is known of it for later looks.
func (k *Kubernetes) tend(ctx context.Context, p *corev1.Pod, seen *provider.Seen) error {
	now := k.now()
	switch {
	case seen.State == provider.Ended:
		return k.tidy(ctx, p, seen, now)
	case seen.State == provider.Ending:
		k.note(p, seen)
		return nil
	case p.Status.Phase != corev1.PodRunning:
		if err := k.complete(ctx, p, seen); err != nil || seen.State == provider.Ending {
			return err
		}
	}
	if seen.Preempted {
		k.note(p, seen)
	}
	return k.unstick(ctx, p, seen, now)
}

// note keeps what a Pod that will go was. Why it was ended is known since the look that ended it.
func (k *Kubernetes) note(p *corev1.Pod, seen *provider.Seen) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.recall(p, seen)
	k.last[p.UID] = parting{seen: *seen}
}

// recall adds what earlier looks knew of a Pod's end. k.mu is held.
func (k *Kubernetes) recall(p *corev1.Pod, seen *provider.Seen) {
	before, ok := k.last[p.UID]
	if !ok {
		return
	}
	seen.Preempted, seen.Failed = seen.Preempted || before.seen.Preempted, seen.Failed || before.seen.Failed
	if before.seen.Failed || seen.Why == "" {
		seen.Why = before.seen.Why
	}
}

// partings are those Pods that went since a minute ago, as ended. It forgets what is known of Pods that are not there.
func (k *Kubernetes) partings(there map[types.UID]bool) (list []provider.Seen) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.now()
	for id, x := range k.last {
		switch {
		case there[id]:
			continue
		case x.gone.IsZero():
			x.gone, x.seen.State = now, provider.Ended
			if x.seen.End.IsZero() || x.seen.End.After(now) {
				x.seen.End = now
			}
			k.last[id] = x
		case now.Sub(x.gone) >= partingFor:
			delete(k.last, id)
			continue
		}
		list = append(list, x.seen)
	}
	for name, d := range k.owed {
		if !k.making[name] && now.Sub(d.since) >= owedFor {
			delete(k.owed, name)
		}
	}
	for id := range k.whole {
		if !there[id] {
			delete(k.whole, id)
		}
	}
	for id := range k.stuck {
		if !there[id] {
			delete(k.stuck, id)
		}
	}
	for id := range k.ended {
		if !there[id] {
			delete(k.ended, id)
		}
	}
	return list
}

// complete sees to it that a Pod which has not started has its Secret, or is deleted.
func (k *Kubernetes) complete(ctx context.Context, p *corev1.Pod, seen *provider.Seen) error {
	pilot := p.Labels[LabelPilot]
	k.mu.Lock()
	whole, making, token := k.whole[p.UID], k.making[pilot], k.owed[pilot].token
	k.mu.Unlock()
	if whole || making {
		return nil
	}
	if token != "" && p.Name == k.podName(pilot) {
		err := k.give(ctx, p, pilot, token)
		if err == nil || errkind.Of(err) == errkind.Unavailable {
			return nil //nolint:nilerr // the next look tries again
		}
		return k.end(ctx, p, seen, err.Error())
	}
	// Trying to make it shows whether it is there, and takes no right to read the namespace's Secrets.
	has, err := call(ctx, k, "looking for Secret "+k.podName(pilot), func(ctx context.Context) (bool, error) {
		_, err := k.client.CoreV1().Secrets(p.Namespace).Create(ctx, k.makeSecret(p, pilot, ""),
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		switch {
		case apierrors.IsAlreadyExists(err), apierrors.IsForbidden(err): // a full quota: then it is found out by its machine's silence
			return true, nil
		}
		return false, err
	})
	if err != nil {
		return err
	}
	if !has {
		return k.end(ctx, p, seen, "its Secret was never made: its head ended meanwhile")
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.whole[p.UID] = true
	return nil
}

// end deletes a Pod that will never be a pilot, which is its failure.
func (k *Kubernetes) end(ctx context.Context, p *corev1.Pod, seen *provider.Seen, why string) error {
	if err := k.remove(ctx, p, nil); err != nil {
		return err
	}
	seen.State, seen.Failed, seen.Why = provider.Ending, true, why
	k.note(p, seen)
	return nil
}

// unstick ends a Pod that has a machine and can't start there for some time. Where that is for a person to mend no other is asked for.
func (k *Kubernetes) unstick(ctx context.Context, p *corev1.Pod, seen *provider.Seen, now time.Time) error {
	why, ours, asked := stuck(p)
	if why == "" {
		k.mu.Lock()
		defer k.mu.Unlock()
		delete(k.stuck, p.UID)
		return nil
	}
	seen.Why = why
	k.mu.Lock()
	x, known := k.stuck[p.UID]
	if !known {
		x.since = now
	}
	switch { // a kubelet that pauses between two tries says less
	case ours:
		x.ours = why
	case asked: // the last try says otherwise
		x.ours = ""
	}
	k.stuck[p.UID] = x
	late := now.Sub(x.since) >= stuckFor
	if late && x.ours != "" {
		k.hopeless, k.givenUp = x.ours, now
	}
	k.mu.Unlock()
	if !late {
		return nil
	}
	return k.end(ctx, p, seen, cmp.Or(x.ours, why))
}

// tidy removes a Pod that has ended, once a look has shown it so: the object is of no use then, and its Secret goes with it.
func (k *Kubernetes) tidy(ctx context.Context, p *corev1.Pod, seen *provider.Seen, now time.Time) error {
	k.mu.Lock()
	k.recall(p, seen)
	since, shown := k.ended[p.UID]
	if !shown {
		k.ended[p.UID] = now
	}
	k.mu.Unlock()
	if !shown || seen.Failed && now.Sub(since) < keepFailed || p.DeletionTimestamp != nil {
		return nil
	}
	return k.remove(ctx, p, ptr(int64(0)))
}
