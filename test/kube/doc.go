// Package kube tests Sluice on the real parts of Kubernetes, and the facts about Kubernetes that its design stands on. All of it but this
// file is behind the build tag kubernetes: `make kube` builds the parts and runs it.
package kube
