//go:build kubernetes

package kubernetes

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice.dev/sluice/internal/core/errkind"
)

// page is how many Pods one call lists.
const page = 500

// call bounds one call of the API server. Errors: Unavailable where the context is over already.
func call[T any](ctx context.Context, k *Kubernetes, what string, do func(context.Context) (T, error)) (is T, err error) {
	if err = ctx.Err(); err != nil {
		return is, errkind.Errorf(errkind.Unavailable, "kubernetes: %s: not called: %w", what, err)
	}
	ctx, cancel := context.WithTimeout(ctx, k.o.Timeout)
	defer cancel()
	is, err = do(ctx)
	return is, said(what, err)
}

// list lists the pool's Pods as they are stored. A list that could not be read to its end is Unavailable: a part of it would show pilots
// missing.
func (k *Kubernetes) list(ctx context.Context) (all []corev1.Pod, err error) {
	o := metav1.ListOptions{LabelSelector: k.selector(), Limit: page}
	for {
		l, err := call(ctx, k, "listing Pods of namespace "+k.o.Namespace, func(ctx context.Context) (*corev1.PodList, error) {
			return k.client.CoreV1().Pods(k.o.Namespace).List(ctx, o)
		})
		if err != nil {
			return nil, err
		}
		for i := range l.Items {
			if l.Items[i].Labels[LabelPilot] != "" {
				all = append(all, l.Items[i])
			}
		}
		if o.Continue = l.Continue; o.Continue == "" {
			return all, nil
		}
	}
}

// give makes a Pod's Secret.
func (k *Kubernetes) give(ctx context.Context, p *corev1.Pod, pilot, token string) error {
	_, err := call(ctx, k, "making Secret "+p.Name, func(ctx context.Context) (*corev1.Secret, error) {
		s, err := k.client.CoreV1().Secrets(p.Namespace).Create(ctx, k.makeSecret(p, pilot, token), metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return s, nil
		}
		return s, err
	})
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.whole[p.UID] = true
	delete(k.owed, pilot)
	return nil
}

// remove deletes one Pod, and no other of its name. grace in seconds; nil: its own. One that is gone is no error.
func (k *Kubernetes) remove(ctx context.Context, p *corev1.Pod, grace *int64) error {
	_, err := call(ctx, k, "deleting Pod "+p.Name, func(ctx context.Context) (none struct{}, err error) {
		err = k.client.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: grace,
			Preconditions: metav1.NewUIDPreconditions(string(p.UID))})
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			err = nil
		}
		return none, err
	})
	return err
}
