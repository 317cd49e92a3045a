// Package measure holds what is measured on a real control plane with simulated machines: how long the hosts' own Pods wait for a device
// when something fills what they leave, how much of that becomes work that is kept, and what a subjob costs the API server. Small, each
// measurement is a test of `make kube`; `make kube-bench` runs them large and writes their figures into docs/kubernetes.md. All of it but
// this file is behind the build tag kubernetes.
package measure
