// Package kubernetes lists the slices of a Kubernetes cluster, and what others hold of them until when. It only reads. All of it but this
// file is behind the build tag kubernetes.
//
// Read it upwards from the objects: device.go, wants.go and model.go are what is kept, slim.go cuts objects down to that as they arrive
// (sources.go, kueue.go, faults.go; silence.go says which sources have failed). A machine that has changed is assembled to a scene
// and evaluated anew (evaluate.go: devices that drivers publish in dra.go, extended resources in counted.go by what gpulabels says of them,
// what closes machines and pools in pool.go, Pods that state no end by owner.go and lengths); inventory.go says what came of it.
//
// For whom subjobs stop is decided in core/reclaim. objects.go, wishes.go and groups.go put into its words what machines have, what Pods
// wait for (claims by selector.go), and what Kueue lets come; told.go says only what is new. stores.go finds
// what is kept; offered.go changes the pools; coming.go reads Kueue's Workloads; values.go and amount.go are small.
package kubernetes
