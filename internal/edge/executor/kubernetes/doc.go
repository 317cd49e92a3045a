// Package kubernetes runs subjobs as Pods of a Kubernetes cluster, which its own scheduler binds. All of it but this file is behind the build tag kubernetes.
package kubernetes
