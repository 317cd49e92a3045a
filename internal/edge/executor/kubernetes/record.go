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
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/executor/shim/pod"
	"sluice.dev/sluice/internal/edge/journal"
)

// record is what a restarted operator must know of a subjob, kept as an annotation of its Pod. It holds no secret.
type record struct {
	Token job.Token
	// Journal that made the token.
	Journal    string `json:",omitempty"`
	Job        job.ID
	Generation job.Generation
	Slice      job.SliceID
	Range      job.Range
	Start, End quantity.Instant
	Grace      time.Duration
	// Resume is the subjob whose checkpoint it starts from; zero for none.
	Resume job.Token `json:",omitzero"`
	executor.Origin
}

// recordOf reads a Pod's record and verifies its seal, since its witness counts against the journal, and a forged one could pass a Pod's
// end off as a subjob's. Errors are of kind Corrupt. A record of another journal is sealed with that one's key; it is returned, and
// nothing in it is trusted.
func (o *Options) recordOf(p *corev1.Pod) (rec record, err error) {
	if rec, err = recordOf(p); err != nil || rec.Journal != o.Journal {
		return rec, err
	}
	if name := o.podName(&rec); p.Name != name || p.Namespace != o.namespace(&rec) {
		return rec, errkind.Errorf(errkind.Corrupt, "Pod %s/%s has the record of Pod %s/%s", p.Namespace, p.Name, o.namespace(&rec), name)
	}
	if !cluster.Sealed(o.Key, o.Made, p.CreationTimestamp.Time, p.Namespace, p.Name, p.Annotations) {
		return rec, errkind.Errorf(errkind.Corrupt, "Pod %s/%s: annotation %s is not what this operator has written: somebody else has "+
			"made or changed it", p.Namespace, p.Name, cluster.AnnotationRun)
	}
	return rec, nil
}

func recordOf(p *corev1.Pod) (rec record, err error) {
	if err = json.Unmarshal([]byte(p.Annotations[cluster.AnnotationRun]), &rec); err == nil &&
		(rec.Token.String() != p.Labels[cluster.LabelToken] || rec.Journal != p.Labels[cluster.LabelJournal]) {
		err = errkind.Errorf(errkind.Corrupt, "it is of subjob %v of journal %q", rec.Token, rec.Journal)
	}
	if err != nil {
		return rec, errkind.Errorf(errkind.Corrupt, "annotation %s of Pod %s/%s: %w", cluster.AnnotationRun, p.Namespace, p.Name, err)
	}
	return rec, nil
}

// orderOf is the order that a Pod has; without one its lease's end alone counts.
func orderOf(p *corev1.Pod, rec *record) pod.Order {
	o := pod.Order{End: rec.End}
	if text := p.Annotations[cluster.AnnotationNotice]; text != "" {
		_ = json.Unmarshal([]byte(text), &o) // an unreadable one is written anew
	}
	return o
}

// newRecord makes the record of a subjob to start.
func newRecord(m *protocol.Message, witness journal.Position, of string) record {
	w := m.Body.(*protocol.Work)
	return record{
		Token: m.Token, Journal: of, Job: m.Job, Generation: m.Generation.Number(), Slice: w.Slice, Range: w.Range, Start: w.Start,
		End:   w.End,
		Grace: w.Spec.Launch.Grace, Resume: w.Plan.Resume, Origin: executor.Origin{Witness: witness, Node: m.From, Executor: m.To},
	}
}

// same reports whether two records are of one subjob.
func (rec *record) same(other *record) bool {
	return rec.Job == other.Job && rec.Generation == other.Generation && rec.Range == other.Range && rec.Slice == other.Slice
}

// namespace of a subjob's Pod.
func (o *Options) namespace(rec *record) string {
	if ns, _, ok := cluster.SplitJob(rec.Job); ok {
		return ns
	}
	return o.Namespace
}

// podName is the name of a subjob's Pod and claim.
func (o *Options) podName(rec *record) string {
	return cluster.PodName(o.Operator, rec.Journal, rec.Token)
}
