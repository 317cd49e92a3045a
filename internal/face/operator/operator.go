//go:build kubernetes

package operator

import (
	"context"
	"errors"
	"time"

	"k8s.io/client-go/kubernetes"

	"sluice.dev/sluice/internal/core/errkind"
)

// Run waits for the lease and then runs a cluster's daemon until ctx ends (nil) or it can't go on. When the lease is lost it returns an
// error of kind Unavailable: another operator may be at work, and this process must end.
func Run(ctx context.Context, o Options) error {
	if err := o.check(); err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(o.Cluster)
	if err != nil {
		return errkind.Errorf(errkind.Invalid, "the cluster: %w", err)
	}
	b := &board{}
	pages, err := b.listen(o.Health, o.Log)
	if err != nil {
		return err
	}
	defer pages.close()
	l, err := newLease(client, &o)
	if err != nil {
		return err
	}
	working, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var late *time.Timer // set, if at all, before leave returns, which waits for hold's goroutine
	led := l.hold(context.WithoutCancel(ctx), func() {
		stop(errLost())
		if ctx.Err() == nil { // end the process within the lease's last third, whatever hangs
			late = time.AfterFunc(o.Lease/4, o.Die)
		}
	})
	defer func() {
		if late != nil {
			late.Stop()
		}
	}()
	defer l.leave()
	select {
	case <-led:
	case <-ctx.Done():
		return nil
	}
	b.leads.Store(true)
	o.Log.Info("this operator has the lease", "name", o.Name, "identity", o.Identity)
	err = lead(working, client, &o, b, pages.addr())
	b.show(nil)
	if lost := context.Cause(working); lost != nil && ctx.Err() == nil && errkind.Of(lost) == errkind.Unavailable {
		return errors.Join(lost, err)
	}
	return err
}

func errLost() error {
	return errkind.Errorf(errkind.Unavailable, "the lease of this operator was not renewed in time: another may be at work, so this one "+
		"stops; subjobs go on")
}
