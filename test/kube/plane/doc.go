// Package plane starts a Kubernetes control plane on loopback for a test: etcd and kube-apiserver, and on demand kube-scheduler,
// kube-controller-manager, kwok (machines whose kubelet is simulated), Kueue. All are the programs themselves, as `make kube-assets`
// builds them; nothing is faked but machines. It knows nothing of Sluice. All of it but this file is behind the build tag kubernetes, and
// for Linux.
package plane
