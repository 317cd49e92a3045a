package zone

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/capture"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/explain"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
)

// Count is how often a job was not served for each reason, and when last.
func Count(z *Zone, id job.ID) (n [explain.Aside + 1]int64, last [explain.Aside + 1]quantity.Instant) {
	so := z.floor.Counts(&entryOf(z.home.Book().Job(id)).floor)
	for _, c := range so.All() {
		if c.Reason != explain.Eligible { // who is noted for having kept another from continuing is the one difference
			n[c.Reason], last[c.Reason] = c.N, c.Last
		}
	}
	return n, last
}

// Audit says what the zone's ledger and floor keep that is not so, and which slices with a rigid job's place are not known as such.
func Audit(z *Zone, now quantity.Instant) []string {
	wrong := append(auditLedger(z.home), z.floor.Audit(now)...)
	for s := range z.sites.All() {
		holds := slices.ContainsFunc(s.Reserved(), func(r protocol.Reservation) bool { return r.Kind == protocol.ForRigid })
		if holds != z.planner.Holds(s.Kept()) {
			wrong = append(wrong, fmt.Sprintf("slice %s: it holds a rigid job's place: %v", s.Name(), holds))
		}
	}
	return wrong
}

// Slices are those that the zone knows, offered or not.
func Slices(z *Zone) []job.SliceID {
	all := z.sites.IDs()
	for _, s := range z.floor.Slices() {
		if !slices.Contains(all, s.Name()) {
			all = append(all, s.Name())
		}
	}
	for _, n := range z.planner.Nodes() {
		for _, s := range n {
			if !slices.Contains(all, s.Name()) {
				all = append(all, s.Name())
			}
		}
	}
	return all
}

// Viewed is the version of the slice's view that the zone goes by.
func Viewed(z *Zone, id job.SliceID) uint64 { return z.sites.FindOffered(id).Version() }

// Doubted says whether nothing is asked of the slice now.
func Doubted(z *Zone, id job.SliceID, now quantity.Instant) bool {
	return z.sites.FindOffered(id).InDoubt(now)
}

// Woken is when the zone has last asked to be woken.
func Woken(z *Zone) quantity.Instant { return z.woken }

// KeptQueue is all that is durable of a queue.
type KeptQueue struct {
	protocol.Queue
	Calibration protocol.Calibration
	Templates   map[string]any
}

// Durable is all that is durable of a zone, as a capture says it, for comparison: an empty list is none.
func Durable(z *Zone) (all struct {
	Records []protocol.Record
	Queues  []KeptQueue
}) {
	queue := func(name string) *KeptQueue {
		i := slices.IndexFunc(all.Queues, func(q KeptQueue) bool { return q.Name == name })
		if i < 0 {
			i = len(all.Queues)
			all.Queues = append(all.Queues, KeptQueue{Queue: protocol.Queue{Name: name, Weight: 1}, Templates: map[string]any{}})
		}
		return &all.Queues[i]
	}
	for _, f := range capture.All(z) {
		switch b := f.Body.(type) {
		case *protocol.Taking:
			all.Records = append(all.Records, protocol.Record{Job: f.Job, Epoch: f.Epoch, Generation: f.Generation, Spec: b.Spec,
				Queue: b.Spec.Queue, Submitted: f.At})
		case *protocol.Keeping:
			r := *b.Record
			for _, list := range []*job.Ranges{&r.Committed, &r.Claimed, &r.Skipped} {
				*list = append(job.Ranges(nil), *list...)
			}
			r.Claims, r.Past = append([]protocol.Claim(nil), r.Claims...), append([]protocol.Past(nil), r.Past...)
			r.Unpublished = append([]protocol.Publication(nil), r.Unpublished...)
			r.Learned.Rates, r.Learned.Suspects = append([]time.Duration(nil), r.Learned.Rates...),
				append([]protocol.Suspect(nil), r.Learned.Suspects...)
			all.Records = append(all.Records, r)
		case *protocol.Queue:
			queue(b.Name).Queue = *b
		case *protocol.Calibration:
			queue(b.Queue).Calibration = *b
		case *protocol.Lesson:
			queue(b.Queue).Templates[b.Template] = b.Runs
		}
	}
	slices.SortFunc(all.Records, func(a, b protocol.Record) int { return cmp.Compare(a.Job, b.Job) })
	all.Queues = slices.DeleteFunc(all.Queues, func(q KeptQueue) bool { // others are as good as never heard of
		return q.Queue == (protocol.Queue{Name: q.Name, Weight: 1}) && q.Calibration == (protocol.Calibration{}) && len(q.Templates) == 0
	})
	return all
}

// Listed is a job as a list of jobs has to show it.
type Listed struct {
	status.JobKey
	Queue, Owner string
	State        job.State
}

// Everybody is all jobs of the zone in the order of lists, found without its rosters.
func Everybody(z *Zone, now quantity.Instant) (all []Listed) {
	for j := range z.home.Book().Jobs() {
		shown, _ := z.Brief(now, j.ID)
		all = append(all, Listed{j.ListKey(), j.Queue().Name, j.Spec.Owner, shown.State})
	}
	slices.SortFunc(all, func(a, b Listed) int { return a.Compare(b.JobKey) })
	return all
}

// Heard is what the zone has heard of a claim from its node: whether it has confirmed it, since when it runs, and the number of an
// extension that it has not answered.
func Heard(z *Zone, id job.ID, t job.Token) (known bool, running quantity.Instant, extension uint64) {
	st := z.home.Book().Job(id).ClaimSet().State(t)
	if st == nil {
		return false, 0, 0
	}
	return st.Known(), st.Running(), st.Extension()
}
