// Package kubernetes lends Pods of a Kubernetes cluster as machines: pilot Pods of low priority, in one namespace, with no rights beyond
// it. What an API server does and what follows for this is in docs/kubernetes.md, section Pilot Pods. All of it but its options is behind
// the build tag kubernetes.
//
// A pilot's Pod is made first and the Secret with its token second, with the Pod as its owner, so that nothing is left when the Pod goes.
// No container of a Pod starts before its Secret is there. A Pod without one gets it while this process knows the token; after a restart
// nobody knows it, and the Pod is deleted.
//
// Who a pilot is says its label, which has the name that the caller drew; a Pod's name or UID is no identity. Lists are read as they are
// stored, never from a cache of some age: one from before a Submit would show a pilot missing, and one from before a Cancel a revenant.
package kubernetes
