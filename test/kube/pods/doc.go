// Package pods runs subjobs as Pods through a real API server and a real scheduler, on machines whose kubelet is this test: it runs what a Pod's containers would run as
// processes. All of it but this file is behind the build tag kubernetes.
package pods
