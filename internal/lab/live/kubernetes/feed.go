//go:build kubernetes

package kubernetes

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiwatch "k8s.io/apimachinery/pkg/watch"
)

// feed follows one kind of object: it lists all, and then watches what becomes of them. Of each it keeps what cut leaves, and of one that
// it leaves nothing of, nothing.
type feed[T any] struct {
	// list gives a page, and where the next one begins; watch follows from a resource version on.
	list  func(ctx context.Context, o metav1.ListOptions) (items []metav1.Object, at metav1.ListInterface, err error)
	watch func(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error)
	cut   func(o any) (x T, is bool)
	// named adds what was asked, and what to do, to an error.
	named func(verb string, err error) error

	mu sync.Mutex
	// synced: now is all there is, as far as events have come. err is why the last call failed, nil if it did not.
	synced bool
	err    error
	// now is what is there, by key; gone what is no longer, with when that was heard.
	now  map[string]T
	gone map[string]gone[T]
	// news is closed and made anew when synced or err changes.
	news chan struct{}
}

// gone is what was seen last of an object.
type gone[T any] struct {
	last T
	at   time.Time
}

const (
	// page is how many objects are asked for at once: a cluster has tens of thousands of Pods.
	page = 500
	// A watch is asked anew after this time. From failure to failure it is tried again later, up to the longest.
	watchLasts      = 5 * time.Minute
	soonest, latest = time.Second, 10 * time.Second
)

func (f *feed[T]) run(ctx context.Context) {
	wait := soonest
	pause := func(err error) {
		if wait = min(2*wait, latest); err == nil {
			wait = soonest
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
	for ctx.Err() == nil {
		version, err := f.all(ctx)
		if err != nil {
			f.say(false, f.named("list", err))
			pause(err)
			continue
		}
		for ctx.Err() == nil {
			if version, err = f.follow(ctx, version); forgotten(err) {
				f.say(false, nil) // what happened since then is lost: all that there is tells what came of it
				pause(err)
				break
			}
			if err != nil {
				f.say(true, f.named("watch", err))
			}
			pause(err)
		}
	}
}

// forgotten says whether the API server knows nothing of a resource version: it is too old, or never was, as the server's data were put
// back.
func forgotten(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) ||
		apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge)
}

// say notes whether all is known, and what failed.
func (f *feed[T]) say(synced bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.synced, f.err = synced, err
	close(f.news)
	f.news = make(chan struct{})
}

// all lists what there is, and returns its resource version.
func (f *feed[T]) all(ctx context.Context) (version string, err error) {
	found := map[string]T{}
	for o := (metav1.ListOptions{Limit: page}); ; {
		items, at, err := f.list(ctx, o)
		if err != nil {
			return "", err
		}
		for _, item := range items {
			if x, is := f.cut(item); is {
				found[key(item)] = x
			}
		}
		version, o.Continue = at.GetResourceVersion(), at.GetContinue()
		if o.Continue == "" {
			break
		}
	}
	f.mu.Lock()
	for k, x := range f.now { //sluice:sorted each for itself
		if _, is := found[k]; !is {
			f.gone[k] = gone[T]{x, time.Now()}
		}
	}
	f.now = found
	f.mu.Unlock()
	f.say(true, nil)
	return version, nil
}

// follow watches from a resource version on, and returns how far it came. A nil error: the watch has ended as it should.
func (f *feed[T]) follow(ctx context.Context, version string) (string, error) {
	lasts := int64(watchLasts / time.Second)
	w, err := f.watch(ctx, metav1.ListOptions{ResourceVersion: version, AllowWatchBookmarks: true, TimeoutSeconds: &lasts})
	if err != nil {
		return version, err
	}
	defer w.Stop()
	f.say(true, nil)
	for {
		select {
		case <-ctx.Done():
			return version, nil
		case event, more := <-w.ResultChan():
			if !more {
				return version, nil
			}
			if event.Type == apiwatch.Error {
				return version, apierrors.FromObject(event.Object)
			}
			o, is := event.Object.(metav1.Object)
			if !is {
				return version, errors.New("an event of an object that has no name")
			}
			f.heard(event.Type, o)
			version = cmp.Or(o.GetResourceVersion(), version)
		}
	}
}

// heard takes an event.
func (f *feed[T]) heard(what apiwatch.EventType, o metav1.Object) {
	if what == apiwatch.Bookmark {
		return
	}
	x, is := f.cut(o)
	k := key(o)
	f.mu.Lock()
	defer f.mu.Unlock()
	_, was := f.now[k]
	switch {
	case what == apiwatch.Deleted && is, was && !is:
		delete(f.now, k)
		f.gone[k] = gone[T]{x, time.Now()}
	case is:
		f.now[k] = x
	}
}

// await returns when all is known, with what fails until then.
func (f *feed[T]) await(ctx context.Context) error {
	for {
		f.mu.Lock()
		synced, err, news := f.synced, f.err, f.news
		f.mu.Unlock()
		if err != nil || synced {
			return err
		}
		select {
		case <-ctx.Done():
			return f.named("list", context.Cause(ctx))
		case <-news:
		}
	}
}

// key tells objects apart: one that is made again under its name is another.
func key(o metav1.Object) string { return string(o.GetUID()) }
