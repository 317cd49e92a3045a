package record

import (
	"time"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/history"
	"sluice.dev/sluice/internal/lab/history/kubernetes"
)

// latest is the last instant in seconds that a line may have: 2100.
const latest = 4102444800

func instant(seconds int64) quantity.Instant {
	return quantity.Instant(seconds) * quantity.Instant(time.Second)
}

const leftOut = "left out"

const badPod = "a Pod or a node of Kubernetes that can't be read"

// cluster is what the files of a record say of Kubernetes: in which order they are read is of no influence.
type cluster struct {
	book  *history.Book
	pods  map[string]*pod
	hosts map[string]*host
	// looks that are whole, in no order, and how far apart they are due at most.
	looks []quantity.Instant
	every time.Duration
	// tails are what nodes were when a file ended: the next look may stand in another.
	tails []tail
}

// tail is what a node was from some time on, up to the last look of a file, and for how long that counts at most.
type tail struct {
	since
	seen, until quantity.Instant
}

// pod is all that lines say of one. Instants are Never where there is none.
type pod struct {
	Pod
	// told is when its last line was written, bound that of the first in which it has a node, over of the first in which it is over.
	told, bound, over quantity.Instant
	// seen is the last whole look at which it was there; 0 before the first.
	seen quantity.Instant
	// left is when it was heard to have gone, and in which look that was told.
	left, leftIn quantity.Instant
}

// host is all that lines say of a node. least are the fewest devices by resource that it ever had, but for none.
type host struct {
	kubernetes.Node
	least                   map[string]int64
	there, cordoned, closed history.Spans
	none                    map[string]history.Spans
}

// since is what a node is, from then on.
type since struct {
	Host
	from quantity.Instant
}

// present is what one file says of Kubernetes while it is read.
type present struct {
	book *history.Book
	// cluster is nil where the file has said nothing of one.
	cluster *cluster
	// seen is the last whole look, 0 before the first.
	seen quantity.Instant
	// pods by uid are there now and not over; hosts by name are as they are.
	pods  map[string]bool
	hosts map[string]since
}

// take takes what a line says of Pods and nodes.
func (x *present) take(l *Line, now quantity.Instant, at history.At) {
	if x.cluster == nil {
		if l.Begin != "kubernetes" && len(l.Pods)+len(l.Left)+len(l.Hosts) == 0 {
			return
		}
		x.cluster = x.book.Samples().Collect("record", func() history.Collector {
			return &cluster{book: x.book, pods: map[string]*pod{}, hosts: map[string]*host{}}
		}).(*cluster)
	}
	for _, p := range l.Pods {
		if !p.sound() {
			x.book.Odd(badPod, leftOut, at)
			continue
		}
		x.cluster.tell(p, now)
		if x.pods[p.UID] = true; p.Over() {
			x.podEnds(p.UID)
		}
	}
	for _, name := range l.Gone {
		x.hostEnds(name, now)
	}
	for _, gone := range l.Left {
		p := x.cluster.pods[gone.UID]
		if gone.UID == "" || gone.At <= 0 || gone.At > l.At {
			x.book.Odd(badPod, leftOut, at)
			continue
		}
		if p == nil { // the file that has its row is read later
			p = x.cluster.pod(gone.UID)
		}
		x.podEnds(gone.UID)
		if p.leftIn > now {
			p.left, p.leftIn = instant(gone.At), now
		}
	}
	for _, h := range l.Hosts {
		if h.Name == "" || h.Replicas < 0 || h.Replicas > 1000 || !soundDevices(h.Devices) {
			x.book.Odd(badPod, leftOut, at)
			continue
		}
		x.hostEnds(h.Name, now)
		x.hosts[h.Name] = since{h, now}
	}
}

// sound says whether all of a Pod can be read.
func (p *Pod) sound() bool {
	for _, t := range []int64{p.Created, p.Scheduled, p.Ended} {
		if t < 0 || t > latest {
			return false
		}
	}
	return p.UID != "" && soundDevices(p.Devices)
}

func soundDevices(of map[string]int64) bool {
	for _, n := range of { //sluice:sorted any that is not
		if n < 0 || n > kubernetes.Most {
			return false
		}
	}
	return true
}

// podEnds notes when a Pod that is there was seen last.
func (x *present) podEnds(uid string) {
	if x.pods[uid] {
		p := x.cluster.pods[uid]
		p.seen = max(p.seen, x.seen)
		delete(x.pods, uid)
	}
}

// hostEnds ends what a node was until now.
func (x *present) hostEnds(name string, until quantity.Instant) {
	if s, is := x.hosts[name]; is {
		x.cluster.was(&s.Host, s.from, until)
		delete(x.hosts, name)
	}
}

// looked notes a whole look.
func (x *present) looked(now quantity.Instant, every time.Duration) {
	if x.seen = now; x.cluster != nil {
		x.cluster.looked(now, every)
	}
}

// forget ends all that is so now.
func (x *present) forget(until quantity.Instant) {
	for uid := range x.pods { //sluice:sorted each for itself
		x.podEnds(uid)
	}
	for name := range x.hosts { //sluice:sorted each for itself
		x.hostEnds(name, until)
	}
}

// done is called at the end of a file, of which the last look counts until then at most.
func (x *present) done(until quantity.Instant) {
	for _, s := range x.hosts { //sluice:sorted each for itself
		x.cluster.tails = append(x.cluster.tails, tail{s, x.seen, max(until, s.from)})
	}
	clear(x.hosts)
	x.forget(x.seen)
}

func (c *cluster) pod(uid string) *pod {
	p := c.pods[uid]
	if p == nil {
		p = &pod{Pod: Pod{UID: uid}, bound: quantity.Never, over: quantity.Never, left: quantity.Never, leftIn: quantity.Never}
		c.pods[uid] = p
	}
	return p
}

// tell takes a Pod's line.
func (c *cluster) tell(said Pod, now quantity.Instant) {
	p := c.pod(said.UID)
	if said.Node != "" {
		p.bound = min(p.bound, now)
	}
	if said.Over() {
		p.over = min(p.over, now)
	}
	if now >= p.told {
		p.Pod, p.told = said, now
	}
}

// was takes what a node was in [from, until).
func (c *cluster) was(h *Host, from, until quantity.Instant) {
	n := c.hosts[h.Name]
	if n == nil {
		n = &host{Node: kubernetes.Node{Devices: map[string]int64{}}, least: map[string]int64{}, none: map[string]history.Spans{}}
		c.hosts[h.Name] = n
	}
	n.there = n.there.With(from, until)
	if h.Unschedulable {
		n.cordoned = n.cordoned.With(from, until)
	}
	if h.NotReady {
		n.closed = n.closed.With(from, until)
	}
	n.Product, n.Replicas = max(n.Product, h.Product), max(n.Replicas, h.Replicas)
	for resource, count := range h.Devices { //sluice:sorted each for itself
		if !kubernetes.Device(resource) {
			continue
		}
		if count == 0 {
			n.none[resource] = n.none[resource].With(from, until)
		} else if least := n.least[resource]; least == 0 || count < least {
			n.least[resource] = count
		}
		n.Devices[resource] = max(n.Devices[resource], count)
		n.Changed = n.Changed || n.least[resource] > 0 && n.least[resource] < n.Devices[resource]
	}
}

func (c *cluster) looked(now quantity.Instant, every time.Duration) {
	c.looks, c.every = append(c.looks, now), max(c.every, every)
}
