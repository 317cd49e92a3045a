// Package kubernetes lists the slices of a Kubernetes cluster, and what others hold of them until when. It only reads. All of it but this
// file is behind the build tag kubernetes.
//
// Objects are cut down as they arrive (slim.go, to the types of model.go); a machine of which anything changed is assembled to a scene and
// evaluated anew (evaluate.go: devices that drivers publish in dra.go, extended resources in counted.go, what closes machines and pools in
// closed.go, ends of Pods in ends.go, and how long those ran that nobody states one of in lengths.go); the inventory says what came of it
// (inventory.go, with its informers in sources.go and what is known of their silence in silence.go).
//
// What is given back to Pods that wait is decided in giveback.go, by what a machine has room for (room.go) and what claims mean
// (selector.go). Places are kept ahead of time (ahead.go) for what Kueue says is to come (kueue.go, coming.go).
package kubernetes
