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
	jobs  []slot
	free  []int32
	slots map[job.ID]int32 // of the names of the jobs in use
	live  int
	dry   bool
	next  workload.Job
	spec  *job.Spec // of next

	// unheard is by slice, enrolled how many runs there were. freed are the slices to be looked at by catchUp.
	unheard  []unheard
	enrolled uint64
	freed    []int32
}

// slot is a job of the source from its submission to the end of its last run.
type slot struct {
	workload.Job
	spec *job.Spec
	// runs were begun, untold are those whose end the observer has not heard of. final is the job's last word, if it has one.
	runs   int64
	untold int
	final  job.State
}

// none is the slot of what the source did not give.
const none = int32(-1)

// submitter is who submits the jobs of the source.
func submitter() protocol.Address { return protocol.Address{Role: protocol.Person, ID: "source"} }

// pull asks the source for the next job. There is one future arrival at a time.
func (s *Sim) pull() error {
	a := &s.arrivals
	a.dry = true
	if s.o.Source == nil {
		return nil
	}
	more, err := s.o.Source.Next(&a.next)
	if err != nil {
		return errkind.Errorf(errkind.Of(err), "simulation: the source of jobs: %w", err)
	}
	if !more {
		return nil
	}
	if a.spec, err = s.o.Spec(&a.next); err != nil {
		return errkind.Errorf(errkind.Of(err), "simulation: job %d of the source: %w", a.next.Number, err)
	}
	if _, twice := a.slots[a.spec.Name]; twice {
		return errkind.Errorf(errkind.Invalid, "simulation: job %d of the source is named %q like one that is not over; give each a "+
			"name of its own", a.next.Number, a.spec.Name)
	}
	a.dry = false
	s.events.Put(max(s.now, a.next.Submit), event{kind: submits})
	return nil
}

// submit hands the next job to the gate, as often as it takes if that is down.
func (s *Sim) submit() error {
	a := &s.arrivals
	var i int32
	if n := len(a.free); n > 0 {
		i, a.free = a.free[n-1], a.free[:n-1]
	} else {
		i = int32(len(a.jobs))
		a.jobs = append(a.jobs, slot{})
	}
	a.jobs[i] = slot{Job: a.next, spec: a.spec}
	a.slots[a.spec.Name] = i
	a.live++
	if s.o.Observer != nil {
		s.o.Observer.Arrived(s.now, measure.Slot(i), &a.jobs[i].Job)
	}
	name := string(a.spec.Name) // stands for its content too: names are unique
	s.arrive(s.mail.post(&protocol.Message{
		Kind: protocol.Submit, From: submitter(), To: s.gates.Of(a.spec.Name), Body: &protocol.Submission{Request: name, Spec: a.spec,
			Digest: name}, Job: a.spec.Name,
	}))
	return s.pull()
}

// answered hears the gate's answer to a submission: a job that is refused can never run.
func (s *Sim) answered(m *protocol.Message) {
	if m.To != submitter() || m.Body.(*protocol.Receipt).Err == nil {
		return
	}
	if i, ok := s.slots[job.ID(m.Body.(*protocol.Receipt).Request)]; ok {
		s.close(i, job.Impossible)
	}
}

// close gives a job its final state.
func (s *Sim) close(i int32, state job.State) {
	j := &s.jobs[i]
	if j.final.Final() {
		return
	}
	j.final = state
	s.live--
	s.release(i)
}

// release frees the slot of a job of which nothing more is to be told.
func (s *Sim) release(i int32) {
	j := &s.jobs[i]
	if !j.final.Final() || j.untold > 0 {
		return
	}
	if s.o.Observer != nil {
		s.o.Observer.Done(s.now, measure.Slot(i), j.final)
	}
	delete(s.slots, j.spec.Name)
	*j = slot{}
	s.free = append(s.free, i)
}
