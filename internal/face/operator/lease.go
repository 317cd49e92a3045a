//go:build kubernetes

package operator

import (
	"context"
	"log/slog"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// lease keeps a second operator of the same name from working.
type lease struct {
	client  kubernetes.Interface
	elector *leaderelection.LeaderElector
	led     chan struct{}
	o       *Options
	log     *slog.Logger
	giveUp  context.CancelFunc
	done    sync.WaitGroup
}

func newLease(client kubernetes.Interface, o *Options) (*lease, error) {
	l := &lease{client: client, led: make(chan struct{}), o: o, log: o.Log}
	var err error
	l.elector, err = leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Name: leaseName(o.Name), Namespace: o.Namespace}, Client: client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: o.Identity},
		},
		// ReleaseOnCancel is not used: it waits for the API server before it reports the loss.
		Name: o.Name, LeaseDuration: o.Lease, RenewDeadline: renewBy(o.Lease), RetryPeriod: renewEvery(o.Lease),
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { close(l.led) },
			OnStoppedLeading: func() {},
			OnNewLeader: func(id string) {
				if id != o.Identity {
					l.log.Info("another operator has the lease; this one waits for it", "name", o.Name, "holder", id)
				}
			},
		},
	})
	return l, err
}

func leaseName(operator string) string { return "sluice-" + operator }

// hold acquires the lease in the background, closes the returned channel when it has it, and renews it. lost is called when that ends, for
// whatever reason.
func (l *lease) hold(ctx context.Context, lost func()) <-chan struct{} {
	ctx, l.giveUp = context.WithCancel(ctx)
	l.done.Go(func() {
		l.elector.Run(ctx)
		lost()
	})
	return l.led
}

// leave stops renewing and releases the lease if it is held, so that the next operator need not wait for its expiry.
func (l *lease) leave() {
	l.giveUp()
	l.done.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), shutdown)
	defer cancel()
	leases := l.client.CoordinationV1().Leases(l.o.Namespace)
	now, err := leases.Get(ctx, leaseName(l.o.Name), metav1.GetOptions{})
	if err != nil || now.Spec.HolderIdentity == nil || *now.Spec.HolderIdentity != l.o.Identity {
		return // it expires, or is another's by now
	}
	second, nobody, at := int32(1), "", metav1.NewMicroTime(time.Now())
	now.Spec.HolderIdentity, now.Spec.LeaseDurationSeconds, now.Spec.RenewTime = &nobody, &second, &at
	if _, err := leases.Update(ctx, now, metav1.UpdateOptions{}); err != nil {
		l.log.Info("the lease was not given back: it lapses", "error", err)
	}
}
