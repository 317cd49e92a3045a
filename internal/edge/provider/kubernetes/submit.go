//go:build kubernetes

package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/provider"
)

// Submit implements provider.Provider: the Pod, and then its Secret.
func (k *Kubernetes) Submit(ctx context.Context, p provider.Pilot) error {
	if err := p.Check(Step); err != nil {
		return err
	}
	if err := k.hope(); err != nil {
		return err
	}
	k.mu.Lock()
	k.making[p.Name], k.owed[p.Name] = true, debt{p.Token, k.now()} // before the Pod can be there
	k.mu.Unlock()
	err := k.make(ctx, p)
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.making, p.Name)
	if err != nil && errkind.Of(err) != errkind.Unavailable {
		delete(k.owed, p.Name)
	}
	return err
}

// tryAgain is how long after that was found a pool is given up for a person; then one Pod is tried, since somebody may have mended it.
const tryAgain = time.Hour

// hope is an error while no Pod of this pool can start.
func (k *Kubernetes) hope() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.hopeless == "" {
		return nil
	}
	if now := k.now(); now.Sub(k.givenUp) >= tryAgain {
		k.givenUp = now
		return nil
	}
	return errkind.Errorf(errkind.Invalid, "kubernetes: no Pod is asked for, since the last one could not start: %s: mend it, and run "+
		"`sluice providers test %s` then", k.hopeless, k.o.Pool)
}

// make makes a pilot's Pod and Secret. A Pod that is there already is from a try whose answer was lost: a look sees what it lacks.
func (k *Kubernetes) make(ctx context.Context, p provider.Pilot) error {
	what := "making Pod " + k.podName(p.Name)
	made, err := call(ctx, k, what, func(ctx context.Context) (*corev1.Pod, error) {
		return k.client.CoreV1().Pods(k.o.Namespace).Create(ctx, k.makePod(p), metav1.CreateOptions{})
	})
	if err != nil {
		return err
	}
	err = k.give(ctx, made, p.Name, p.Token)
	if err == nil || errkind.Of(err) == errkind.Unavailable {
		return err
	}
	// It would wait for its Secret for ever.
	if failed := k.remove(context.WithoutCancel(ctx), made, nil); failed != nil {
		return errkind.Errorf(errkind.Unavailable, "%w; its Pod is there still: %w", err, failed)
	}
	return err
}

// Cancel implements provider.Provider: it deletes every Pod that bears such a name. A token that is owed to one is forgotten: a Pod that
// appears later gets none, and is deleted.
func (k *Kubernetes) Cancel(ctx context.Context, names []string) error {
	if len(names) == 0 {
		return nil
	}
	pods, err := k.list(ctx)
	if err != nil {
		return err
	}
	k.mu.Lock()
	for _, name := range names {
		delete(k.owed, name)
	}
	k.mu.Unlock()
	var errs []error // one that can't be deleted keeps no other
	for i := range pods {
		p := &pods[i]
		switch {
		case !slices.Contains(names, p.Labels[LabelPilot]) || over(p):
		case p.DeletionTimestamp == nil:
			errs = append(errs, k.remove(ctx, p, nil))
		default:
			errs = append(errs, k.force(ctx, p))
		}
	}
	return errors.Join(errs...)
}

// force deletes a Pod at once whose time is over by some, if the cluster has removed its machine. Nobody else can confirm such a Pod's end,
// and the machine will not come back under that name with it. Whoever may not read machines leaves it to the cluster's own collector.
func (k *Kubernetes) force(ctx context.Context, p *corev1.Pod) error {
	if p.Spec.NodeName == "" || k.now().Before(p.DeletionTimestamp.Add(forceAfter)) {
		return nil
	}
	gone, err := call(ctx, k, "reading machine "+p.Spec.NodeName, func(ctx context.Context) (bool, error) {
		_, err := k.client.CoreV1().Nodes().Get(ctx, p.Spec.NodeName, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return true, nil
		case apierrors.IsForbidden(err):
			return false, nil
		}
		return false, err
	})
	if err != nil || !gone {
		return err
	}
	return k.remove(ctx, p, ptr(int64(0)))
}

// Try implements provider.Provider: the API server does with the Pod all but store it. Whoever asks has mended what no Pod could start for.
func (k *Kubernetes) Try(ctx context.Context, p provider.Pilot) (t provider.Trial, err error) {
	if err = p.Check(Step); err != nil {
		return t, err
	}
	t.Command = fmt.Sprintf("kubectl -n %s create --dry-run=server, of a Pod %s: %s", k.o.Namespace, k.podName(p.Name), k.o.describe())
	_, err = call(ctx, k, "trying Pod "+k.podName(p.Name), func(ctx context.Context) (*corev1.Pod, error) {
		return k.client.CoreV1().Pods(k.o.Namespace).Create(ctx, k.makePod(p), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	})
	switch {
	case errkind.Of(err) == errkind.Unavailable:
		return t, err
	case err != nil:
		t.Why = err.Error()
		return t, nil
	}
	t.Taken = true
	k.mu.Lock()
	defer k.mu.Unlock()
	k.hopeless = ""
	return t, nil
}
