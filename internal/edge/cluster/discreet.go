package cluster

import (
	"regexp"
	"strings"

	"sluice.dev/sluice/internal/core/job"
)

// Another stands for the name of a job of another namespace.
const Another = "a job of another namespace"

// somebody stands for whoever of another namespace has or wants something.
const somebody = "somebody of another namespace"

// whose is how nodes say that time is not to be had, or is taken back, and for whom: the one place where texts about a job name others.
var whose = regexp.MustCompile(`(taken \([a-z -]+\) (?:for|by) )([^;\n]+?)( from [0-9]|;|\n|$)`)

// Discreet is a text for people of one namespace: whoever of another one it says that time is taken for or by has no name there. What a program has said itself stays.
func Discreet(text, namespace string) string {
	if !strings.Contains(text, "taken (") {
		return text
	}
	return whose.ReplaceAllStringFunc(text, func(all string) string {
		part := whose.FindStringSubmatch(all)
		if ours(part[2], namespace) {
			return all
		}
		return part[1] + somebody + part[3]
	})
}

// ours says whether a namespace's people may know of somebody: of their own jobs, Pods and Workloads, and of what is the cluster's.
func ours(who, namespace string) bool {
	kind, name, _ := strings.Cut(who, " ")
	switch kind {
	case "job":
		return Within(job.ID(name), namespace)
	case "node", "annotation", "taint":
		return true
	case "pod", "workload":
	default:
		name = who
	}
	ns, _, object := strings.Cut(name, "/")
	return !object || ns == namespace
}

// Hide is a text with Another in place of names, wherever one stands as a whole word.
func Hide(text string, names map[string]bool) string {
	return words.ReplaceAllStringFunc(text, func(word string) string {
		if names[word] {
			return Another
		}
		return word
	})
}

// words are what names are made of. One does not end with a dot, which ends a sentence.
var words = regexp.MustCompile(`[A-Za-z0-9]([A-Za-z0-9._/-]*[A-Za-z0-9])?`)

// Within says whether a job is of an object of a namespace.
func Within(id job.ID, namespace string) bool {
	ns, _, ok := SplitJob(id)
	return ok && ns == namespace
}
