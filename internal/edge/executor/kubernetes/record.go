//go:build kubernetes

package kubernetes

import (
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/cluster"
	"sluice.dev/sluice/internal/edge/executor/shim/pod"
	"sluice.dev/sluice/internal/edge/journal"
)

// record is what an operator that comes back has to know of a subjob: an annotation of its Pod. It holds nothing that is secret.
type record struct {
	Token job.Token
	// Journal that the token is of.
	Journal    string `json:",omitempty"`
	Job        job.ID
	Generation job.Generation
	Slice      job.SliceID
	Range      job.Range
	Start, End quantity.Instant
	Grace      time.Duration
	// Resume is the subjob whose checkpoint it starts from; zero: none.
	Resume  job.Token `json:",omitzero"`
	Witness journal.Position
	// Node and Executor are who asked and who was asked: answers go the other way.
	Node, Executor protocol.Address
}

// recordOf reads the record of a Pod, if it is sealed: one that is believed is a witness against the journal, and has its Pod's end taken for a subjob's. Errors are of kind
// Corrupt. Those of another journal were sealed with its key, and nothing is believed of them.
func (e *Executor) recordOf(p *corev1.Pod) (rec record, err error) {
	if rec, err = recordOf(p); err != nil || rec.Journal != e.o.Journal {
		return rec, err
	}
	if name := cluster.PodName(e.o.Operator, rec.Journal, rec.Token); p.Name != name || p.Namespace != e.namespace(&rec) {
		return rec, errkind.Errorf(errkind.Corrupt, "Pod %s/%s has the record of Pod %s/%s", p.Namespace, p.Name, e.namespace(&rec), name)
	}
	if !cluster.Sealed(e.o.Key, e.o.Made, p.CreationTimestamp.Time, p.Namespace, p.Name, p.Annotations) {
		return rec, errkind.Errorf(errkind.Corrupt, "Pod %s/%s: annotation %s is not what this operator has written: somebody else has made or changed it", p.Namespace, p.Name, cluster.AnnotationRun)
	}
	return rec, nil
}

func recordOf(p *corev1.Pod) (rec record, err error) {
	if err = json.Unmarshal([]byte(p.Annotations[cluster.AnnotationRun]), &rec); err == nil && (rec.Token.String() != p.Labels[cluster.LabelToken] || rec.Journal != p.Labels[cluster.LabelJournal]) {
		err = errkind.Errorf(errkind.Corrupt, "it is of subjob %v of journal %q", rec.Token, rec.Journal)
	}
	if err != nil {
		return rec, errkind.Errorf(errkind.Corrupt, "annotation %s of Pod %s/%s: %w", cluster.AnnotationRun, p.Namespace, p.Name, err)
	}
	return rec, nil
}

// orderOf is what a Pod was told so far; none: all there is is the lease.
func orderOf(p *corev1.Pod, rec *record) pod.Order {
	o := pod.Order{End: rec.End}
	if text := p.Annotations[cluster.AnnotationNotice]; text != "" {
		_ = json.Unmarshal([]byte(text), &o) // what can't be read is written again
	}
	return o
}

// newRecord is the record of a subjob that is to be started.
func newRecord(m *protocol.Message, witness journal.Position, of string) record {
	w := m.Body.(*protocol.Work)
	return record{
		Token: m.Token, Journal: of, Job: m.Job, Generation: m.Generation.Number(), Slice: w.Slice, Range: w.Range, Start: w.Start, End: w.End,
		Grace: w.Spec.Launch.Grace, Resume: w.Plan.Resume, Witness: witness, Node: m.From, Executor: m.To,
	}
}

// same says whether two records are of one subjob.
func (rec *record) same(other *record) bool {
	return rec.Job == other.Job && rec.Generation == other.Generation && rec.Range == other.Range && rec.Slice == other.Slice
}
