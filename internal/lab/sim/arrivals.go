package sim

import (
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/lab/measure"
	"sluice.dev/sluice/internal/lab/workload"
)

// arrivals are the jobs of the source: the one that comes next and those that are alive.
type arrivals struct {
	*ground
	list  []slot
	free  []int32
	slots map[job.ID]int32 // of the names of the jobs in use
	live  int
	dry   bool
	next  workload.Job
	spec  *job.Spec // of next
}

// slot is a job of the source from its submission to the end of its last run.
type slot struct {
	job  workload.Job
	spec *job.Spec
	// runs were begun, untold are those whose end the observer has not heard of. final is the job's last word, if it has one.
	runs   int64
	untold int
	final  job.State
}

// submitter is who submits the jobs of the source.
func submitter() protocol.Address { return protocol.Address{Role: protocol.Person, ID: "source"} }

// pull asks the source for the next job. There is one future arrival at a time.
func (a *arrivals) pull() error {
	a.dry = true
	if a.o.Source == nil {
		return nil
	}
	more, err := a.o.Source.Next(&a.next)
	if err != nil {
		return errkind.Errorf(errkind.Of(err), "simulation: the source of jobs: %w", err)
	}
	if !more {
		return nil
	}
	if a.spec, err = a.o.Spec(&a.next); err != nil {
		return errkind.Errorf(errkind.Of(err), "simulation: job %d of the source: %w", a.next.Number, err)
	}
	if _, twice := a.slots[a.spec.Name]; twice {
		return errkind.Errorf(errkind.Invalid, "simulation: job %d of the source is named %q like one that is not over; give each a "+
			"name of its own", a.next.Number, a.spec.Name)
	}
	a.dry = false
	a.events.Put(max(a.now, a.next.Submit), event{kind: submits})
	return nil
}

// submit hands the next job to the gate, as often as it takes if that is down.
func (a *arrivals) submit() error {
	var i int32
	if n := len(a.free); n > 0 {
		i, a.free = a.free[n-1], a.free[:n-1]
	} else {
		i = int32(len(a.list))
		a.list = append(a.list, slot{})
	}
	a.list[i] = slot{job: a.next, spec: a.spec}
	a.slots[a.spec.Name] = i
	a.live++
	if a.o.Observer != nil {
		a.o.Observer.Arrived(a.now, measure.Slot(i), &a.list[i].job)
	}
	name := string(a.spec.Name) // stands for its content too: names are unique
	a.arrive(a.mail.post(&protocol.Message{
		Kind: protocol.Submit, From: submitter(), To: a.gates.Of(a.spec.Name), Body: &protocol.Submission{Request: name, Spec: a.spec,
			Digest: name}, Job: a.spec.Name,
	}))
	return a.pull()
}

// answered hears the gate's answer to a submission: a job that is refused can never run.
func (a *arrivals) answered(m *protocol.Message) {
	if m.To != submitter() || m.Body.(*protocol.Receipt).Err == nil {
		return
	}
	if i, ok := a.slots[job.ID(m.Body.(*protocol.Receipt).Request)]; ok {
		a.close(i, job.Impossible)
	}
}

// close gives a job its final state.
func (a *arrivals) close(i int32, state job.State) {
	j := &a.list[i]
	if j.final.Final() {
		return
	}
	j.final = state
	a.live--
	a.release(i)
}

// release frees the slot of a job that has no reports left.
func (a *arrivals) release(i int32) {
	j := &a.list[i]
	if !j.final.Final() || j.untold > 0 {
		return
	}
	if a.o.Observer != nil {
		a.o.Observer.Done(a.now, measure.Slot(i), j.final)
	}
	delete(a.slots, j.spec.Name)
	*j = slot{}
	a.free = append(a.free, i)
}
