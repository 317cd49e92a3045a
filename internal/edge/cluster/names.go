package cluster

import (
	"fmt"
	"strings"

	"sluice.dev/sluice/internal/core/job"
)

// Group and Version of our custom resources.
const (
	Group   = "sluice.dev"
	Version = "v1alpha1"
)

// Leftover is the PriorityClass of our Pods: below everything, and it preempts nothing.
const Leftover = "sluice-leftover"

// Labels and annotations of our objects. A Pod with LabelOperator is one of ours: an operator looks only at those with its own name.
const (
	LabelOperator = "sluice.dev/operator"
	LabelJob      = "sluice.dev/job"
	LabelToken    = "sluice.dev/subjob"
	// AnnotationSlice is the full name of the slice that a Pod was sold.
	AnnotationSlice = "sluice.dev/slice"
	// AnnotationRun is the subjob as its operator finds it again, AnnotationNotice what was done to it since.
	AnnotationRun    = "sluice.dev/run"
	AnnotationNotice = "sluice.dev/notice"
	// Finalizer keeps a Pod until its operator has read how it ended, whoever deletes it.
	Finalizer = "sluice.dev/subjob"
)

// PodName is what the Pod of a subjob is called: the same for the same token of the same operator, so that it can't be made twice. It is a DNS label.
func PodName(operator string, t job.Token) string {
	return fmt.Sprintf("sluice-%s-%s", operator, strings.ReplaceAll(t.String(), ".", "-"))
}

// JobID is the job of a custom resource, as the rest of Sluice calls it: names are unique in a namespace alone. SplitJob takes it apart.
func JobID(namespace, name string) job.ID { return job.ID(namespace + "." + name) }

// SplitJob is the namespace and the name of a job of a custom resource; false: it is none. A namespace has no dots.
func SplitJob(id job.ID) (namespace, name string, ok bool) {
	namespace, name, ok = strings.Cut(string(id), ".")
	return namespace, name, ok && namespace != "" && name != ""
}
