// Package kubernetes watches a Kubernetes cluster for a record (package live): its Pods that ask for devices, and its nodes that have some.
// It lists and watches these two, and calls nothing else. A build without the tag kubernetes has none of it, and says so.
package kubernetes

// Options say which cluster is watched.
type Options struct {
	// Kubeconfig is a file as kubectl reads it; empty: the Pod's own account, KUBECONFIG or ~/.kube/config. Context of that file; empty:
	// its current one.
	Kubeconfig, Context string
}
