//go:build kubernetes

package plane

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Part is a program of the plane, called as its binary is.
type Part string

// The parts. Etcd and APIServer are always there; the others where With names them.
const (
	Etcd        Part = "etcd"
	APIServer   Part = "kube-apiserver"
	Scheduler   Part = "kube-scheduler"
	Controllers Part = "kube-controller-manager"
	// Kwok simulates the kubelets of nodes with the label type=kwok (see Machine): they are ready, their Pods run, and end as Run says.
	Kwok Part = "kwok"
	// Kueue admits Jobs of queues (see Queue), and preempts them.
	Kueue Part = "kueue"
	// kubectl belongs to no plane's processes; it is built with them.
	kubectl Part = "kubectl"
)

// order is how parts are started; they end the other way round.
var order = []Part{Etcd, APIServer, Controllers, Scheduler, Kwok, Kueue} //nolint:gochecknoglobals // read-only by use

type settings struct {
	parts    map[Part]bool
	features map[string]bool
	apis     []string
	leaves   string
	egress   string
}

// Option says what a plane has besides etcd and the API server.
type Option func(*settings)

// With adds parts.
func With(parts ...Part) Option {
	return func(s *settings) {
		for _, p := range parts {
			s.parts[p] = true
		}
	}
}

// Feature turns a feature gate of Kubernetes on or off, in all parts. What DRA's partitionable devices need is on by default in the
// version that is pinned.
func Feature(name string, on bool) Option {
	return func(s *settings) { s.features[name] = on }
}

// API serves a version of an API group that is off by default, such as resource.k8s.io/v1alpha3.
func API(groupVersion string) Option {
	return func(s *settings) { s.apis = append(s.apis, groupVersion+"=true") }
}

// Leaves has kwok leave Pods with a label alone: their kubelet is somebody else.
func Leaves(label string) Option {
	return func(s *settings) { s.leaves = label }
}

// ServiceIP is where Pods look for the API server: the first address of services. Nobody is there unless a test puts somebody there.
const ServiceIP = "10.96.0.1"

// Egress has the API server reach kubelets through a proxy (HTTP CONNECT) on a socket of this path, as clusters do whose machines lie in a
// network of their own.
func Egress(socket string) Option {
	return func(s *settings) { s.egress = socket }
}

// schedulerQPS is how many calls a second kube-scheduler may make: each Pod that it binds is one. Upstream's default is 50; here it is
// so many that a test sees the scheduler and not that limit.
const schedulerQPS = 5000

func chosen(options []Option) settings {
	s := settings{parts: map[Part]bool{Etcd: true, APIServer: true}, features: map[string]bool{}}
	for _, o := range options {
		o(&s)
	}
	return s
}

// gates is the flag --feature-gates, or nothing.
func (s *settings) gates() []string {
	if len(s.features) == 0 {
		return nil
	}
	var words []string
	for _, name := range slices.Sorted(maps.Keys(s.features)) {
		words = append(words, fmt.Sprintf("%s=%t", name, s.features[name]))
	}
	return []string{"--feature-gates=" + strings.Join(words, ",")}
}
