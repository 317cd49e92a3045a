package cluster

import (
	"regexp"
	"strings"

	"sluice.dev/sluice/internal/core/job"
)

// Another replaces the name of another namespace's job.
const Another = "a job of another namespace"

// somebody replaces the name of another namespace's job, Pod, Workload or other owner for or by whom time is taken.
const somebody = "somebody of another namespace"

// whose matches nodes' phrases for or by whom time is taken. The other texts that name jobs, an explanation's, go through Hide.
var whose = regexp.MustCompile(`(taken \([a-z -]+\) (?:for|by) )([^;\n]+?)( from [0-9]|;|\n|$)`)

// Discreet makes a text fit for one namespace: it hides the names of those of other namespaces for or by whom time is taken. A program's
// own words stay.
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

// Whose is who waits for devices as one namespace may read it.
func Whose(who, namespace string) string {
	if ours(who, namespace) {
		return who
	}
	return somebody
}

// ours reports whether a namespace may see a name: that of its own jobs, Pods and Workloads, or of something cluster-wide.
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

// Hide replaces each of names by Another, where it is a whole word.
func Hide(text string, names map[string]bool) string {
	return words.ReplaceAllStringFunc(text, func(word string) string {
		if names[word] {
			return Another
		}
		return word
	})
}

// words match names. A name does not end with a dot, which would end a sentence.
var words = regexp.MustCompile(`[A-Za-z0-9]([A-Za-z0-9._/-]*[A-Za-z0-9])?`)

// Within reports whether a job belongs to an object of a namespace.
func Within(id job.ID, namespace string) bool {
	ns, _, ok := SplitJob(id)
	return ok && ns == namespace
}
