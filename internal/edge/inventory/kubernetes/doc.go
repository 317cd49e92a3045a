// Package kubernetes lists the slices of a Kubernetes cluster, and what others hold of them until when. It only reads. All of it but this
// file is behind the build tag kubernetes.
//
// Read it upwards from the objects: device.go, wants.go and model.go are the model, slim.go cuts objects down to it as they arrive
// (sources.go, kueue.go, faults.go; silence.go says which sources have failed). A machine that has changed is assembled to a scene and
// evaluated anew (evaluate.go: devices that drivers publish in dra.go, extended resources in counted.go by gpulabels, what closes machines
// and pools in pool.go, Pods that state no end by owner.go and lengths); inventory.go reports the result.
//
// core/reclaim decides for whom subjobs stop. objects.go, wishes.go and groups.go translate what machines have, what Pods wait for (claims
// by selector.go), and what Kueue admits; told.go passes on only what is new. stores.go finds stored objects; offered.go changes the pools;
// coming.go reads Kueue's Workloads; values.go and amount.go are small.
package kubernetes
