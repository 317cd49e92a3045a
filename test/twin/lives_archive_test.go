package twin_test

import (
	"sluice.dev/sluice/internal/core/gate"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
)

// vault is the village's archive: what was filed, and which lives were purged. Its mail is lost, doubled and delayed as that of actors.
type vault struct {
	parts  map[shelf]protocol.Message
	purged map[job.ID]job.Generation
	// left and back count the jobs that actors let go of and took back.
	left, back int
}

type shelf struct {
	role protocol.Role
	job  job.ID
}

func newVault() *vault {
	return &vault{parts: map[shelf]protocol.Message{}, purged: map[job.ID]job.Generation{}}
}

// recall hands a message on with what the archive has of a job that an actor does not.
func (v *village) recall(i int, m *protocol.Message) {
	if a, ok := v.parties[i].Actor.(protocol.Archivist); ok && v.vault != nil {
		if name, ok := a.Recalls(m); ok {
			m.Filed = v.vault.parts[shelf{v.parties[i].Address.Role, name}].Filed
		}
	}
}

// keep plays the archive.
func (v *village) keep(m protocol.Message) {
	a := v.vault
	answer := protocol.Message{Kind: protocol.Archived, From: m.To, To: m.From, Job: m.Job, Generation: m.Generation,
		Body: &protocol.Archival{}}
	switch m.Kind {
	case protocol.File:
		s := shelf{m.From.Role, m.Job}
		if a.parts[s].Generation <= m.Generation && a.purged[m.Job] <= m.Generation {
			a.parts[s] = m
		}
	case protocol.Purge:
		answer.Kind = protocol.Purged
		a.purged[m.Job] = max(a.purged[m.Job], m.Generation)
		for _, role := range []protocol.Role{protocol.Gate, protocol.Zone} {
			if s := (shelf{role, m.Job}); a.parts[s].Generation < m.Generation {
				delete(a.parts, s)
			}
		}
	}
	v.post(-1, answer)
}

// outdate asks the gate to forget a job that it has archived.
func (v *village) outdate(name job.ID) {
	if p, ok := v.vault.parts[shelf{protocol.Gate, name}]; ok {
		v.post(-1, protocol.Message{Kind: protocol.Outdated, From: p.To, To: p.From, Job: name, Generation: p.Generation})
	}
}

// archived is the record of a job that the zone has let go of.
func (v *village) archived(name job.ID) (*protocol.Record, bool) {
	if v.vault == nil {
		return nil, false
	}
	p, ok := v.vault.parts[shelf{protocol.Zone, name}]
	if !ok {
		return nil, false
	}
	return protocol.Kept(p.Filed), true
}

// emptied insists that nothing is left of jobs that are gone, and that the gate counts what is only in the archive.
func (v *village) emptied(jobs int) {
	only := int64(0)
	for s := range v.vault.parts {
		if v.present[s.job] == "" {
			v.t.Fatalf("job %s is gone, and the archive has a part of it", s.job)
		}
		if s.role == protocol.Gate && v.gate().Life(s.job) == 0 {
			only++
		}
	}
	if n, _ := v.gate().Archived(); n != only || jobs == 0 && only != int64(len(v.present)) {
		v.t.Fatalf("the gate counts %d archived jobs, the archive alone has %d of %d", n, only, len(v.present))
	}
}

// recalled says whether a fact takes an archived job back.
func recalled(f *protocol.Fact) bool {
	switch b := f.Body.(type) {
	case *protocol.Acceptance:
		return b.Recalled
	case *protocol.Keeping:
		return b.Recalled
	}
	return false
}

// counted are jobs that leave and come back.
func (v *village) counted(f *protocol.Fact) {
	switch {
	case v.vault == nil:
	case f.Kind == protocol.JobArchived || f.Kind == protocol.HomeArchived:
		v.vault.left++
	case recalled(f):
		v.vault.back++
	}
}

func (v *village) gate() *gate.Gate { return v.parties[0].Actor.(*gate.Gate) }
