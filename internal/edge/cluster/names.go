package cluster

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/job"
)

// Group and Version of our custom resources.
const (
	Group   = "sluice.dev"
	Version = "v1alpha1"
)

// Leftover is the PriorityClass of our Pods: below everything, never preempting.
const Leftover = "sluice-leftover"

// UserRole is the chart's ClusterRole that lets people have jobs in namespaces where it is bound.
const UserRole = "sluice-user"

// Container is the name of the container that runs the subjob.
const Container = "subjob"

// Labels and annotations of our objects. LabelOperator marks our Pods; an operator handles only those with its own name.
const (
	LabelOperator = "sluice.dev/operator"
	LabelJob      = "sluice.dev/job"
	LabelToken    = "sluice.dev/subjob"
	// LabelJournal is the journal that made the subjob's token.
	LabelJournal = "sluice.dev/journal"
	// AnnotationCancel "true" on a Job cancels it; what it has committed stays as long as the Job object.
	AnnotationCancel = "sluice.dev/cancel"
	// AnnotationRequest on a Job identifies the call that made it, so that its repetition is recognized.
	AnnotationRequest = "sluice.dev/request"
	// AnnotationSlice is the full ID of the slice that a Pod was sold.
	AnnotationSlice = "sluice.dev/slice"
	// AnnotationRun is the subjob's record for a restarted operator, AnnotationNotice its latest order.
	AnnotationRun    = "sluice.dev/run"
	AnnotationNotice = "sluice.dev/notice"
	// AnnotationSeal proves that AnnotationRun is the operator's own and about that Pod.
	AnnotationSeal = "sluice.dev/seal"
	// AnnotationOwner of a Job is the operator that took it; no other touches it.
	AnnotationOwner = LabelOperator
	// Finalizer keeps a deleted Pod until its operator has read how it ended.
	Finalizer = "sluice.dev/subjob"
)

// LongestName and LongestJournal bound the names of operators and journals, in characters: both are part of a Pod's name, before the token.
const (
	LongestName    = 16
	LongestJournal = 6
)

// PodName is the name of a subjob's Pod, a DNS label: a function of operator, journal and token, so that the Pod can't be made twice.
func PodName(operator, journal string, t job.Token) string {
	if journal != "" {
		operator += "-" + journal
	}
	return "sluice-" + operator + "-" + t.String()
}

// Owner is the element of store names that tells owners apart: operator and journal, since tokens are unique within a journal only.
// Operators' names have no dot.
func Owner(operator, journal string) string {
	if journal == "" {
		return operator
	}
	return operator + "." + journal
}

// KeysName is the name of the Secret with an operator's keys, in each namespace. No Pod's name ends like that.
func KeysName(operator string) string { return "sluice-" + operator + "-keys" }

// JobID is the ID of a custom resource's job. It has the namespace in it, since names are unique within one only.
func JobID(namespace, name string) job.ID { return job.ID(namespace + "." + name) }

// SplitJob is JobID's inverse; false: not a custom resource's job. Namespaces have no dots.
func SplitJob(id job.ID) (namespace, name string, ok bool) {
	namespace, name, ok = strings.Cut(string(id), ".")
	return namespace, name, ok && namespace != "" && name != ""
}

// JobLabel is a job's name as a label value: cut and with illegal characters replaced, so that long names may collide. The full name is in
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

// Seal authenticates a Pod's record (AnnotationRun) and binds it to the Pod, since whoever may write Pods may write labels and
// annotations. Empty without a key.
func Seal(key []byte, namespace, name, record string) string {
	if len(key) == 0 {
		return ""
	}
	h := hmac.New(sha256.New, key)
	h.Write([]byte(namespace + "/" + name + "\n" + record))
	return hex.EncodeToString(h.Sum(nil))
}

// Sealed reports whether a Pod's record was written by a holder of the key. Without a key every record passes; one without a seal passes
// if the API server created its Pod before the key was made.
func Sealed(key []byte, made, created time.Time, namespace, name string, annotations map[string]string) bool {
	want, has := Seal(key, namespace, name, annotations[AnnotationRun]), annotations[AnnotationSeal]
	return want == "" || has == "" && created.Before(made) || hmac.Equal([]byte(want), []byte(has))
}
