// Package soak lets an operator and all around it fail at random on a real control plane: the operator, the API server, the scheduler and
// the store are killed, machines fall silent or are removed, Pods and Jobs are deleted. Then it asks an oracle that reads neither the
// journal nor anything else of the operator's whether the promises held: every unit of work is committed once and rightly, no slice was
// sold twice at a time, no subjob outlived its lease, nothing is left behind. What it knows it has from the store, from a watch of Pods of
// its own, and from what the jobs' programs have written to a folder that Sluice does not know. All of it but this file is behind the
// build tag kubernetes.
package soak
