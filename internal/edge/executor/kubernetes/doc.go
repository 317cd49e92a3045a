// Package kubernetes runs subjobs as Pods of a Kubernetes cluster; the cluster's own scheduler binds them. All of it but this file is
// behind the build tag kubernetes.
//
// A subjob is one Pod, named by its token, and under DRA a ResourceClaim that the Pod owns. Its first process (package shim/pod) does what
// the supervisor does on a machine. The executor stores nothing of its own: what it must know after a restart is in the Pods' annotations,
// and what a subjob left is in the store. For each subjob one loop compares what is wanted with what is there and makes the next call
// towards it, so that any call may fail, or be repeated, at any point.
//
// A subjob is gone when a kubelet has said so (a terminal phase), when its Pod was removed before it was bound, or when its lease has
// ended by more than storing and clock skew may take. A deletion by itself proves nothing, except for a lease without an end, some time
// after its Pod was removed.
package kubernetes
