// Package operator is Sluice in a Kubernetes cluster: the daemon with the kinds kubernetes of executor and inventory, and custom resources besides the API. All of
// it but this file is behind the build tag kubernetes.
package operator
