package config

import (
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/strict"
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
func queueFile() strict.Form {
	return strict.AnObject(
		strict.Field{Key: "apiVersion", Need: true, Form: strict.AChoice(APIVersion), Example: APIVersion,
			Doc: "The version of this form."},
		strict.Field{Key: "kind", Need: true, Form: strict.AChoice(QueueKind), Example: QueueKind, Doc: "What the file describes."},
		strict.Field{Key: "metadata", Need: true, Form: strict.AnObject(
			strict.Field{Key: "name", Need: true, Form: strict.Form{Kind: strict.IsName}, Example: "research",
				Doc: "The name of the queue, which jobs have under spec.queue."},
		), Example: "{name: research}", Doc: "What the queue is called."},
		strict.Field{Key: "spec", Need: true, Form: strict.AnObject(
			strict.Field{Key: "weight", Form: strict.ANumber(1, 1_000_000, 1), Example: "3", Doc: "Its share beside other queues."},
			strict.Field{Key: "cap", Form: strict.ANumber(0, 1_000_000, 0), Unset: "none", Example: "4",
				Doc: "How many slices its jobs may hold at once; 0: any number."},
			strict.Field{Key: "maxJobs", Form: strict.ANumber(0, 1_000_000, 0), Unset: "none", Example: "100",
				Doc: "How many of its jobs may be there that are not over; 0: any number."},
			strict.Field{Key: "maxWindow", Form: strict.ALength(1e9, MaxTime, 0), Unset: "none", Example: "15m",
				Doc: "How long one subjob of it may hold a slice."},
			strict.Field{Key: "namespaces", Form: strict.AList("a list of namespaces such as [team-a]", strict.Form{Kind: strict.IsName},
				maxNamespaces), Unset: "all", Example: "[team-a, team-b]", Doc: "The namespaces whose jobs may name it."},
		), Example: "{weight: 3, cap: 4}", Doc: "A queue, whose share and limits jobs are under that name it."},
	)
}

// ParseQueue reads a file of one queue of a Kubernetes cluster. It is as strict as ParseJob, and its error alike.
func ParseQueue(name string, data []byte) (q Queue, err error) {
	c := strict.New(name, false)
	file := queueFile()
	for _, doc := range c.Documents(data, 1) {
		top := c.Root(doc, &file).AsObject()
		headed(top)
		q.Name = top.Must("metadata").AsObject().Must("name").Label("")
		o := top.Must("spec").AsObject()
		q.Weight, q.Cap, q.MaxJobs = o.Get("weight").AsNumber(), int(o.Get("cap").AsNumber()), int(o.Get("maxJobs").AsNumber())
		q.MaxWindow = o.Get("maxWindow").AsLength()
		for _, e := range o.Get("namespaces").AsList() {
			q.Namespaces = append(q.Namespaces, e.Label(""))
		}
	}
	if err := c.Err(); err != nil {
		return Queue{}, err
	}
	return q, nil
}
