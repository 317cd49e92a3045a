// Package kubernetes runs subjobs as Pods of a Kubernetes cluster, which its own scheduler binds. All of it but this file is behind the build tag kubernetes.
//
// A subjob is one Pod, named by its token, with a Secret and under DRA a ResourceClaim that go with it. Its first process (package shim/pod) does what the
// supervisor does on a machine. The executor keeps nothing of its own: what it must know after a restart stands in the Pods' annotations, what a subjob has
// left in the store. For each subjob one loop looks at what is wanted and what is, and makes the next call that brings them together, so that every call
// may fail, and be repeated, at any place.
//
// A subjob is gone when a kubelet has said so (a terminal phase), when its Pod was removed before any machine had it, or when its lease's end is past by
// what storing and the clocks may take. That somebody has deleted it says nothing.
package kubernetes
