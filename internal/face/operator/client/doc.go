// Package client implements Sluice's API for one namespace of a Kubernetes cluster inside the process that calls it, by that namespace's
// objects and with the caller's own rights ([docs/adr/0053]). All of it but this file is behind the build tag kubernetes.
package client
