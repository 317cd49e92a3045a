// Package podtest is what tests of Pods need and a unit test has not: an API server in memory that deletes as a real one does, and a
// kubelet that runs Pods as processes of this machine, over any API server. All of it but this file is behind the build tag kubernetes.
package podtest
