package cluster

import (
	"regexp"
	"slices"
	"strings"

	"sluice.dev/sluice/internal/core/job"
)

// words are what names are made of. One does not end with a dot, which ends a sentence.
var words = regexp.MustCompile(`[A-Za-z0-9]([A-Za-z0-9._/-]*[A-Za-z0-9])?`)

// Another stands for the name of a job of another namespace.
const Another = "a job of another namespace"

// Discreet is a text for people of one namespace: jobs, Pods and Workloads of others that it names ("job NS.NAME", "pod NS/NAME") are there without their names, and so is each of strangers, wherever
// it stands as a whole word.
func Discreet(text, namespace string, strangers ...string) string {
	var b strings.Builder
	var last string // the word before
	at := 0
	for _, w := range words.FindAllStringIndex(text, -1) {
		word := text[w[0]:w[1]]
		b.WriteString(text[at:w[0]])
		at = w[1]
		switch ns, _, slashed := strings.Cut(word, "/"); {
		case (strings.EqualFold(last, "pod") || last == "workload") && slashed && ns != namespace:
			b.WriteString("of another namespace")
		case strings.EqualFold(last, "job") && strings.Contains(word, ".") && !Within(job.ID(word), namespace):
			b.WriteString("of another namespace")
		case slices.Contains(strangers, word):
			b.WriteString(Another)
		default:
			b.WriteString(word)
		}
		last = word
	}
	return b.String() + text[at:]
}

// Within says whether a job is of an object of a namespace.
func Within(id job.ID, namespace string) bool {
	ns, _, ok := SplitJob(id)
	return ok && ns == namespace
}
