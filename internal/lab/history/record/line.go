// Package record is what `sluice forecast --live` keeps of a cluster that it watches: a file a day. A file has one JSON object a
// line (Line), which only ever get more, so that one that a crash cut off is the last before a new start. It knows the form and reads it;
// it watches nothing.
package record

// Line is one line of a file. At is always there; the others are there where something is new.
type Line struct {
	// At is when this was so, in seconds since 1970.
	At int64 `json:"at"`
	// Begin names what is watched ("slurm", "kubernetes") and forgets nodes, reservations and the queue as they were before: they follow
	// anew. A file begins with it.
	// Every is after how many seconds the next look is due, After when the last look before was, which stands in the file before or above.
	Begin string `json:"begin,omitempty"`
	Every int64  `json:"every,omitempty"`
	After int64  `json:"after,omitempty"`
	// Jobs are rows of sacct below their header, as it printed them.
	Jobs []string `json:"jobs,omitempty"`
	// Running are jobs that hold devices from now on, as the queue has them, Ended those that it no longer has.
	Running []Job `json:"running,omitempty"`
	Ended   []Job `json:"ended,omitempty"`
	// Nodes are those that are new or have changed, as `scontrol show node -o` prints them, cut to what is read; Gone those that are no
	// longer there, by name.
	Nodes []string `json:"nodes,omitempty"`
	Gone  []string `json:"gone,omitempty"`
	// Reservations are all there are now, as `scontrol show reservation -o` prints them; nil if they are as before.
	Reservations *[]string `json:"reservations,omitempty"`
	// Pods are those that are new or have changed, Left those that are no longer there. Hosts are Kubernetes' nodes that are new or have
	// changed; Gone has names of these too.
	Pods  []Pod  `json:"pods,omitempty"`
	Left  []Left `json:"left,omitempty"`
	Hosts []Host `json:"hosts,omitempty"`
	// Seen: all that is new at this time stands on the lines before. Waiting is how many jobs wait then.
	Seen    bool `json:"seen,omitempty"`
	Waiting int  `json:"waiting,omitempty"`
}

// Job of a queue.
type Job struct {
	ID string `json:"id"`
	// Start in seconds since 1970.
	Start int64 `json:"start"`
}

// Pod of Kubernetes, cut to what is read. Instants are seconds since 1970, 0 where they are not known or have not come.
type Pod struct {
	UID       string `json:"uid"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Node that it is bound to; empty while it waits.
	Node string `json:"node,omitempty"`
	// Created, bound to its node (Scheduled), and when its last container ended, once none goes on or will.
	Created   int64 `json:"created,omitempty"`
	Scheduled int64 `json:"scheduled,omitempty"`
	Ended     int64 `json:"ended,omitempty"`
	// Phase Succeeded or Failed, from which no Pod comes back; otherwise empty.
	Phase         string `json:"phase,omitempty"`
	PriorityClass string `json:"priorityClass,omitempty"`
	// Devices that it asks for, by resource. Claims: it has claims of DRA, too.
	Devices map[string]int64 `json:"devices,omitempty"`
	Claims  bool             `json:"claims,omitempty"`
}

// Over says whether nothing of the Pod runs any more or ever will.
func (p *Pod) Over() bool { return p.Phase != "" || p.Ended != 0 }

// Left is a Pod that is no longer there, and when that was heard.
type Left struct {
	UID string `json:"uid"`
	At  int64  `json:"at"`
}

// Host is a node of Kubernetes with devices.
type Host struct {
	Name string `json:"name"`
	// Devices that Pods could have, by resource.
	Devices map[string]int64 `json:"devices"`
	// Product of its GPUs and into how many shares each is cut, by its labels.
	Product  string `json:"product,omitempty"`
	Replicas int64  `json:"replicas,omitempty"`
	// Unschedulable: it is cordoned. NotReady: its kubelet says so, or nothing.
	Unschedulable bool `json:"unschedulable,omitempty"`
	NotReady      bool `json:"notReady,omitempty"`
}

// Missed is after how many times Every without a look it counts as not observed what happened in between.
const Missed = 3
