// Package kubernetes finds the slices of a Kubernetes cluster, and what others hold of them. All of it but this file is behind the build tag kubernetes.
package kubernetes
