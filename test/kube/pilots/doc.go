// Package pilots tests pilot Pods on a real API server with its scheduler and controllers: a head on this machine asks for them as a user
// with the rights that docs/kubernetes.md names, and no more. The kubelet is one of tests (podtest): containers are processes. What came of
// the work says package witness. Queue workers (package queue) run in the same kind of Pods, as the rival that pilots are measured beside.
package pilots
