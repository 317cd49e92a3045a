package prometheus

import (
	"strconv"
	"strings"

	"sluice.dev/sluice/internal/lab/history"
	"sluice.dev/sluice/internal/lab/history/kubernetes"
)

// record is all that the dumps say.
type record struct {
	book *history.Book
	// grid is when kube-state-metrics was sampled.
	grid grid
	// steps count the distances of samples, by series.
	steps map[int64]int
	pods  map[string]*pod
	nodes map[string]*node
	// phases: dumps have kube_pod_status_phase.
	phases bool
	// failure is the text of an answer that is an error.
	failure string
}

func newRecord(b *history.Book) *record {
	return &record{book: b, steps: map[int64]int{}, pods: map[string]*pod{}, nodes: map[string]*node{}}
}

// step is the most frequent distance of samples; a millisecond if no series has two.
func (r *record) step() int64 {
	best := int64(0)
	for step, n := range r.steps { //sluice:sorted of equal ones the least
		if n > r.steps[best] || n == r.steps[best] && step < best {
			best = step
		}
	}
	return max(best, 1)
}

// pod is one Pod. Where dumps lack uids it is all that had its name, one after another.
type pod struct {
	namespace, name string
	// unique: it has a uid.
	unique bool
	// on is when it was seen on a node, by node; over when it was seen in a phase from which no Pod comes back. lost: the phase was Failed.
	on   map[string]spans
	over spans
	lost bool
	// apps and inits are devices by container and resource, as requested and as limited; sidecars are init containers that go on.
	apps, inits map[part]want
	sidecars    map[string]bool
	claims      bool
	// fills: it is one of Sluice's, which runs in what others leave over.
	fills bool
	// stamps by metric.
	started, scheduled, created, completed stamps
}

// part is a resource of a container.
type part struct{ container, resource string }

// want is how many devices: limits stand for requests that are not given.
type want struct{ request, limit int64 }

func (w want) count() int64 {
	if w.request > 0 {
		return w.request
	}
	return w.limit
}

// stamp is an instant in seconds that a series told, and when it did.
type stamp struct {
	value float64
	seen  span
}

type stamps []stamp

func (s stamps) with(x *series) stamps {
	for i := 0; i < len(x.at); {
		k := i
		for k+1 < len(x.at) && x.values[k+1] == x.values[i] {
			k++
		}
		if x.values[i] > 0 && x.values[i] < 4102444800 {
			s = append(s, stamp{x.values[i], span{x.at[i], x.at[k]}})
		}
		i = k + 1
	}
	return s
}

// within is the latest value told in a stretch, in milliseconds, and when it was told last; false if there is none.
func (s stamps) within(x span) (value, seen int64, ok bool) {
	for _, t := range s {
		if t.seen.first > x.last || t.seen.last < x.first {
			continue
		}
		if v := int64(t.value * 1000); !ok || v > value {
			value, seen, ok = v, t.seen.last, true
		} else if v == value {
			seen = max(seen, t.seen.last)
		}
	}
	return value, seen, ok
}

// label of a series. What a scrape has called so before Prometheus put its own label there is called exported_, and is the one that is
// meant (honor_labels).
func (s *series) label(name string) string {
	if text := s.labels["exported_"+name]; text != "" {
		return text
	}
	return s.labels[name]
}

// pod that a series is of; nil if its labels don't say.
func (r *record) pod(s *series) *pod {
	namespace, name, uid := s.label("namespace"), s.label("pod"), s.label("uid")
	if name == "" {
		return nil
	}
	key := uid
	if uid == "" {
		key = namespace + "/" + name
	}
	p := r.pods[key]
	if p == nil {
		p = &pod{
			namespace: namespace, name: name, unique: uid != "", on: map[string]spans{}, apps: map[part]want{}, inits: map[part]want{},
			sidecars: map[string]bool{},
		}
		r.pods[key] = p
	}
	return p
}

// series takes what one says, and returns false if its labels are not those of its metric.
func (r *record) series(s *series) bool {
	metric := s.labels["__name__"]
	if !strings.HasPrefix(metric, "kube_") {
		return measure(r.book, metric, s)
	}
	r.grid = r.grid.with(s.at)
	if step := s.step(); step > 0 {
		r.steps[step]++
	}
	if strings.HasPrefix(metric, "kube_node_") {
		return r.ofNode(metric, s)
	}
	if !strings.HasPrefix(metric, "kube_pod_") {
		return true // of something else
	}
	p := r.pod(s)
	if p == nil {
		return false
	}
	p.take(r, metric, s)
	return true
}

// take takes what a series says of a Pod.
func (p *pod) take(r *record, metric string, s *series) {
	switch metric {
	case "kube_pod_container_resource_requests", "kube_pod_container_resource_limits":
		if cluster := s.labels["cluster"]; cluster != "" {
			r.book.Cluster([]byte(cluster))
		}
		p.seen(s)
		p.wants(p.apps, metric, s)
	case "kube_pod_init_container_resource_requests", "kube_pod_init_container_resource_limits":
		p.seen(s)
		p.wants(p.inits, metric, s)
	case "kube_pod_init_container_info":
		if s.label("restart_policy") == "Always" {
			p.sidecars[s.label("container")] = true
		}
	case "kube_pod_info":
		p.fills = p.fills || kubernetes.Fills(s.label("priority_class"))
		p.seen(s)
	case "kube_pod_start_time":
		p.started = p.started.with(s)
	case "kube_pod_status_scheduled_time":
		p.scheduled = p.scheduled.with(s)
	case "kube_pod_created":
		p.created = p.created.with(s)
	case "kube_pod_completion_time":
		p.completed = p.completed.with(s)
	case "kube_pod_resourceclaim_info":
		p.claims = true
	case "kube_pod_status_phase":
		r.phases = true
		if phase := s.label("phase"); phase == "Succeeded" || phase == "Failed" {
			for _, x := range s.held(isOne) {
				p.over, p.lost = p.over.with(x), p.lost || phase == "Failed"
			}
		}
	}
}

func isOne(x float64) bool  { return x == 1 }
func isZero(x float64) bool { return x == 0 }
func anything(float64) bool { return true }

// seen notes when a Pod was on a node: until it is scheduled its label is empty.
func (p *pod) seen(s *series) {
	at := s.label("node")
	if at == "" {
		return
	}
	for _, x := range s.held(anything) {
		p.on[at] = p.on[at].with(x)
	}
}

// wants notes the devices of a container.
func (p *pod) wants(of map[part]want, metric string, s *series) {
	resource := s.label("resource")
	if !kubernetes.Device(resource) {
		return
	}
	key, n := part{s.label("container"), resource}, int64(0)
	for _, v := range s.values {
		n = max(n, int64(min(v, kubernetes.Most)))
	}
	w := of[key]
	if strings.HasSuffix(metric, "_limits") {
		w.limit = max(w.limit, n)
	} else {
		w.request = max(w.request, n)
	}
	of[key] = w
}

// node is one node.
type node struct {
	kubernetes.Node
	// there is when it had devices, none when it had none of one resource.
	there            spans
	none             map[string]spans
	cordoned, closed spans
}

func (r *record) node(name string) *node {
	n := r.nodes[name]
	if n == nil {
		n = &node{Node: kubernetes.Node{Devices: map[string]int64{}}, none: map[string]spans{}}
		r.nodes[name] = n
	}
	return n
}

// ofNode takes what a series says of a node.
func (r *record) ofNode(metric string, s *series) bool {
	name := s.label("node")
	if name == "" {
		return false
	}
	n := r.node(name)
	switch metric {
	case "kube_node_status_allocatable", "kube_node_status_capacity":
		resource := s.label("resource")
		if !kubernetes.Device(resource) {
			return true
		}
		for _, x := range s.held(anything) {
			n.there = n.there.with(x)
		}
		if metric == "kube_node_status_allocatable" {
			for _, x := range s.held(isZero) {
				n.none[resource] = n.none[resource].with(x)
			}
		}
		for i, v := range s.values {
			n.Devices[resource] = max(n.Devices[resource], int64(min(v, kubernetes.Most)))
			n.Changed = n.Changed || i > 0 && v != s.values[i-1] && v > 0 && s.values[i-1] > 0
		}
	case "kube_node_labels":
		if product := s.labels["label_nvidia_com_gpu_product"]; product > n.Product {
			n.Product = product
		}
		if count, err := strconv.ParseInt(s.labels["label_nvidia_com_gpu_replicas"], 10, 32); err == nil {
			n.Replicas = max(n.Replicas, min(count, 1000))
		}
	case "kube_node_spec_unschedulable":
		for _, x := range s.held(isOne) {
			n.cordoned = n.cordoned.with(x)
		}
	case "kube_node_status_condition":
		if s.label("condition") != "Ready" {
			return true
		}
		is := isOne
		if s.label("status") == "true" {
			is = isZero
		}
		for _, x := range s.held(is) {
			n.closed = n.closed.with(x)
		}
	}
	return true
}
