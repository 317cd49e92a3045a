package cluster

import (
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

// UserRole is the ClusterRole of the chart that lets somebody have jobs in the namespaces that it is bound in.
const UserRole = "sluice-user"

// Container is the one of our Pods that runs the subjob.
const Container = "subjob"

// Labels and annotations of our objects. A Pod with LabelOperator is one of ours: an operator looks only at those with its own name.
const (
	LabelOperator = "sluice.dev/operator"
	LabelJob      = "sluice.dev/job"
	LabelToken    = "sluice.dev/subjob"
	// LabelJournal is the journal that the subjob's token is of.
	LabelJournal = "sluice.dev/journal"
	// AnnotationCancel on a Job, "true", has it cancelled: it ends, and what it has committed stays for as long as the Job does.
	AnnotationCancel = "sluice.dev/cancel"
	// AnnotationRequest on a Job is the call that made it: the same call again finds what it has made.
	AnnotationRequest = "sluice.dev/request"
	// AnnotationSlice is the full name of the slice that a Pod was sold.
	AnnotationSlice = "sluice.dev/slice"
	// AnnotationRun is the subjob as its operator finds it again, AnnotationNotice what was done to it since.
	AnnotationRun    = "sluice.dev/run"
	AnnotationNotice = "sluice.dev/notice"
	// AnnotationSeal is by what an operator knows AnnotationRun for its own word, and about that Pod.
	AnnotationSeal = "sluice.dev/seal"
	// AnnotationOwner of a Job is the operator that has taken it: no other one touches it.
	AnnotationOwner = LabelOperator
	// Finalizer keeps a Pod until its operator has read how it ended, whoever deletes it.
	Finalizer = "sluice.dev/subjob"
)

// LongestName is how long an operator's name may be, and LongestJournal a journal's, in characters: Pods have both in theirs, before a token.
const (
	LongestName    = 16
	LongestJournal = 6
)

// PodName is what the Pod of a subjob is called: the same for the same token of the same operator and journal, so that it can't be made twice. It is a DNS label.
func PodName(operator, journal string, t job.Token) string {
	if journal != "" {
		operator += "-" + journal
	}
	return "sluice-" + operator + "-" + t.String()
}

// Owner is whose something in a store is, as a word of its name: tokens are unique in one journal alone. No name of an operator has a dot.
func Owner(operator, journal string) string {
	if journal == "" {
		return operator
	}
	return operator + "." + journal
}

// KeysName is what the Secret with an operator's keys is called, in each namespace. No Pod's name ends like that.
func KeysName(operator string) string { return "sluice-" + operator + "-keys" }

// JobID is the job of a custom resource, as the rest of Sluice calls it: names are unique in a namespace alone. SplitJob takes it apart.
func JobID(namespace, name string) job.ID { return job.ID(namespace + "." + name) }

// SplitJob is the namespace and the name of a job of a custom resource; false: it is none. A namespace has no dots.
func SplitJob(id job.ID) (namespace, name string, ok bool) {
	namespace, name, ok = strings.Cut(string(id), ".")
	return namespace, name, ok && namespace != "" && name != ""
}

// JobLabel is a job's name as LabelJob has it on Pods: cut, and without what may not stand there, so that two long names may have the same one. The whole name is in
// AnnotationRun.
func JobLabel(id job.ID) string {
	text := strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("-_.", c) {
			return c
		}
		return '_'
	}, string(id))
	return strings.Trim(text[:min(len(text), 63)], "-_.")
}
