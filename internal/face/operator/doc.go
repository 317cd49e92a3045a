// Package operator is Sluice in a Kubernetes cluster: the daemon with the Kubernetes executor and inventory, and custom resources beside
// the API. All of it but this file is behind the build tag kubernetes.
package operator
