package config

import (
	"sluice.dev/sluice/internal/core/protocol"
)

// QueueKind is the kind of a file of one queue.
const QueueKind = "Queue"

// maxNamespaces is how many namespaces a queue may name.
const maxNamespaces = 1000

// Queue is a queue of a Kubernetes cluster.
type Queue struct {
	protocol.Queue
	// Namespaces whose jobs may name it; none: all.
	Namespaces []string
}

// queueFile is everything a file of one queue may say.
func queueFile() form {
	return anObject(
		field{key: "apiVersion", need: true, form: aChoice(APIVersion), example: APIVersion, doc: "The version of this form."},
		field{key: "kind", need: true, form: aChoice(QueueKind), example: QueueKind, doc: "What the file describes."},
		field{key: "metadata", need: true, form: anObject(
			field{key: "name", need: true, form: form{kind: isName}, example: "research", doc: "The name of the queue, which jobs have under spec.queue."},
		), example: "{name: research}", doc: "What the queue is called."},
		field{key: "spec", need: true, form: anObject(
			field{key: "weight", form: aNumber(1, 1_000_000, 1), example: "3", doc: "Its share beside other queues."},
			field{key: "cap", form: aNumber(0, 1_000_000, 0), unset: "none", example: "4", doc: "How many slices its jobs may hold at once; 0: any number."},
			field{key: "maxJobs", form: aNumber(0, 1_000_000, 0), unset: "none", example: "100", doc: "How many of its jobs may be there that are not over; 0: any number."},
			field{key: "maxWindow", form: aLength(1e9, MaxTime, 0), unset: "none", example: "15m", doc: "How long one subjob of it may hold a slice."},
			field{key: "namespaces", form: aList("a list of namespaces such as [team-a]", form{kind: isName}, maxNamespaces), unset: "all", example: "[team-a, team-b]", doc: "The namespaces whose jobs may name it."},
		), example: "{weight: 3, cap: 4}", doc: "A queue, whose share and limits jobs are under that name it."},
	)
}

// ParseQueue reads a file of one queue of a Kubernetes cluster. It is as strict as ParseJob, and its error alike.
func ParseQueue(name string, data []byte) (q Queue, err error) {
	c := &collector{file: name}
	file := queueFile()
	for _, doc := range c.documents(data, 1) {
		top := value{c: c, node: doc, form: &file}.asObject()
		c.headed(top)
		q.Name = top.must("metadata").asObject().must("name").label("")
		o := top.must("spec").asObject()
		q.Weight, q.Cap, q.MaxJobs = o.get("weight").asNumber(), int(o.get("cap").asNumber()), int(o.get("maxJobs").asNumber())
		q.MaxWindow = o.get("maxWindow").asLength()
		for _, e := range o.get("namespaces").asList() {
			q.Namespaces = append(q.Namespaces, e.label(""))
		}
	}
	if err := c.err(); err != nil {
		return Queue{}, err
	}
	return q, nil
}
