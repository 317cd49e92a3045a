//go:build kubernetes

package kubernetes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"reflect"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"sluice.dev/sluice/internal/lab/history/record"
)

// Source watches a cluster.
type Source struct {
	client kubernetes.Interface
	// host is the API server's address, for people.
	host  string
	pods  *feed[record.Pod]
	nodes *feed[record.Host]
	// What was kept, by uid.
	written map[string]record.Pod
	hosts   map[string]record.Host
}

// watch begins, until the context ends.
func watch(ctx context.Context, client kubernetes.Interface, host string) *Source {
	s := &Source{client: client, host: host, written: map[string]record.Pod{}, hosts: map[string]record.Host{}}
	pods, nodes := client.CoreV1().Pods(metav1.NamespaceAll), client.CoreV1().Nodes()
	s.pods = newFeed(cutPod, func(verb string, err error) error { return s.named(verb, "pods", err) },
		func(ctx context.Context, o metav1.ListOptions) ([]metav1.Object, metav1.ListInterface, error) {
			list, err := pods.List(ctx, o)
			if err != nil {
				return nil, nil, err
			}
			return objects(list.Items), list, nil
		}, pods.Watch)
	s.nodes = newFeed(cutNode, func(verb string, err error) error { return s.named(verb, "nodes", err) },
		func(ctx context.Context, o metav1.ListOptions) ([]metav1.Object, metav1.ListInterface, error) {
			list, err := nodes.List(ctx, o)
			if err != nil {
				return nil, nil, err
			}
			return objects(list.Items), list, nil
		}, nodes.Watch)
	go s.pods.run(ctx)
	go s.nodes.run(ctx)
	return s
}

func newFeed[T any](cut func(any) (T, bool), named func(string, error) error,
	list func(context.Context, metav1.ListOptions) ([]metav1.Object, metav1.ListInterface, error),
	watch func(context.Context, metav1.ListOptions) (apiwatch.Interface, error),
) *feed[T] {
	return &feed[T]{list: list, watch: watch, cut: cut, named: named, now: map[string]T{}, gone: map[string]gone[T]{},
		news: make(chan struct{})}
}

// objects are pointers to those of a list.
func objects[T any, P interface {
	*T
	metav1.Object
}](items []T) (out []metav1.Object) {
	for i := range items {
		out = append(out, P(&items[i]))
	}
	return out
}

// Name is part of live.Source.
func (s *Source) Name() string { return "kubernetes" }

// Look is part of live.Source. Beside what the watches have told it asks for one Pod: that shows whether the API server is there, and takes
// these credentials still, which a watch that is quiet does not.
func (s *Source) Look(ctx context.Context, now time.Time, anew bool) (lines []record.Line, keep func(), err error) {
	if _, err := s.client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{Limit: 1}); err != nil {
		return nil, nil, s.named("list", "pods", err)
	}
	if err := s.pods.await(ctx); err != nil {
		return nil, nil, err
	}
	if err := s.nodes.await(ctx); err != nil {
		return nil, nil, err
	}
	hosts := s.nodes.snapshot()
	var changed []record.Host
	var left []string
	for uid, h := range hosts.now { //sluice:sorted below
		if was, is := s.hosts[uid]; anew || !is || !reflect.DeepEqual(was, h) {
			changed = append(changed, h)
		}
	}
	there := map[string]bool{}
	for _, h := range hosts.now { //sluice:sorted a set
		there[h.Name] = true
	}
	for _, h := range s.hosts { //sluice:sorted below
		if !there[h.Name] && !anew {
			left = append(left, h.Name)
		}
	}
	slices.SortFunc(changed, func(x, y record.Host) int { return cmp.Compare(x.Name, y.Name) })
	slices.Sort(left)
	pods := s.pods.snapshot()
	told, gone, written, waiting := s.changes(pods, now, anew)
	lines = append(lines, record.Line{Gone: left}, record.Line{Hosts: changed}, record.Line{Pods: told}, record.Line{Left: gone},
		record.Line{Seen: true, Waiting: waiting})
	return lines, func() {
		s.written, s.hosts = written, hosts.now
		s.pods.forget(pods.gone)
		s.nodes.forget(hosts.gone)
	}, nil
}

// changes are the Pods that are new or not as they were written, those that have gone, and what is written then. A Pod that is over is
// written once.
func (s *Source) changes(at snapshot[record.Pod], now time.Time, anew bool) (told []record.Pod, left []record.Left,
	written map[string]record.Pod, waiting int,
) {
	tell := func(p record.Pod) {
		if was, is := s.written[p.UID]; !is || anew && !p.Over() || !reflect.DeepEqual(was, p) {
			told = append(told, p)
		}
	}
	for _, p := range at.now { //sluice:sorted below
		tell(p)
		if p.Node == "" && !p.Over() {
			waiting++
		}
	}
	for uid, g := range at.gone { //sluice:sorted below
		if was := s.written[uid]; was.Ended == 0 {
			tell(g.last)
			left = append(left, record.Left{UID: uid, At: min(g.at.Unix(), now.Unix())})
		}
	}
	slices.SortFunc(told, func(x, y record.Pod) int { return cmp.Compare(x.UID, y.UID) })
	slices.SortFunc(left, func(x, y record.Left) int { return cmp.Compare(x.UID, y.UID) })
	return told, left, at.now, waiting
}

// snapshot is what a feed knows.
type snapshot[T any] struct {
	now  map[string]T
	gone map[string]gone[T]
}

func (f *feed[T]) snapshot() snapshot[T] {
	f.mu.Lock()
	defer f.mu.Unlock()
	return snapshot[T]{maps.Clone(f.now), maps.Clone(f.gone)}
}

// forget drops what has gone and is written.
func (f *feed[T]) forget(written map[string]gone[T]) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for k := range written { //sluice:sorted each for itself
		delete(f.gone, k)
	}
}

// named says what was asked, and what to do. Addresses of this side's own ports are left out: what is wrong would be new each time.
func (s *Source) named(verb, resource string, err error) error {
	what := verb + " " + resource
	var op *net.OpError
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%s: %w: this account needs list and watch of pods and nodes: bind it to the ClusterRole "+
			"of docs/forecast.md", what, err)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("%s: %w: the credentials are wrong or have expired: renew them, and start this again if they stand in the "+
			"kubeconfig", what, err)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s: %s does not answer in time", what, s.host)
	case errors.As(err, &op):
		return fmt.Errorf("%s: no connection to %s: %w", what, s.host, op.Err)
	}
	return fmt.Errorf("%s: %w", what, err)
}
