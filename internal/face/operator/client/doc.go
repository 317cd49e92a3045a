// Package client answers Sluice's API for one namespace of a Kubernetes cluster, within the process that asks: by the objects of that namespace, and under the rights
// of whoever asks ([docs/adr/0053]). All of it but this file is behind the build tag kubernetes.
package client
