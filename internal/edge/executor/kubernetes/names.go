//go:build kubernetes

package kubernetes

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/cluster"
	"sluice.dev/sluice/internal/edge/store"
)

// Names in the store:
//
//	work/OWNER/DIGEST                        a work directory that a job needs
//	jobs/OWNER/JOB/LIFE/SUBJOB               output and checkpoint of a subjob; after it is settled, its checkpoint if committed
//	outputs/OWNER/JOB/LIFE/FROM-TO.SUBJOB    the output of a committed range
//
// A Pod can write to its places pods/OWNER/SUBJOB/ROLE alone, which the store keeps below incoming/ until Adopt makes objects of them.
// OWNER is the operator and its journal, so that what another journal left, in this cluster or another one with the same store, is never
// taken for our own.

// Roles of what a subjob leaves, which also name its places.
const (
	outputRole     = "output"
	checkpointRole = "checkpoint"
	progressPlace  = "progress"
	workRole       = "work"
)

func (e *Executor) owner() string { return cluster.Owner(e.o.Operator, e.o.Journal) }

func (e *Executor) jobNames(j job.ID) string { return "jobs/" + e.owner() + "/" + store.Folder(j) }
func (e *Executor) outputNames(j job.ID) string {
	return "outputs/" + e.owner() + "/" + store.Folder(j)
}
func (e *Executor) workName(id string) string { return "work/" + e.owner() + "/" + id }

func life(g job.Generation) string { return strconv.FormatUint(uint64(g.Number()), 10) }

// lifeOf is the life in a name below jobs or outputs.
func lifeOf(name string) job.Generation {
	n, _ := strconv.ParseUint(path.Base(path.Dir(name)), 10, 32)
	return job.Generation(n)
}

// owner is OWNER for what the subjob leaves.
func (r *run) owner() string { return cluster.Owner(r.e.o.Operator, r.rec.Journal) }

func (r *run) resultName() string {
	return path.Join("jobs", r.owner(), store.Folder(r.rec.Job), life(r.rec.Generation), r.rec.Token.String())
}

func (r *run) outputName(committed job.Range) string {
	return path.Join(r.e.outputNames(r.rec.Job), life(r.rec.Generation), fmt.Sprintf("%012d-%012d.%s", committed.From, committed.To,
		r.rec.Token))
}

// parseOutput parses the last element of an output's name.
func parseOutput(name string) (r job.Range, t job.Token, ok bool) {
	span, token, _ := strings.Cut(path.Base(name), ".")
	from, to, _ := strings.Cut(span, "-")
	var err1, err2, err3 error
	r.From, err1 = strconv.ParseInt(from, 10, 64)
	r.To, err2 = strconv.ParseInt(to, 10, 64)
	t, err3 = job.ParseToken(token)
	return r, t, err1 == nil && err2 == nil && err3 == nil
}

// place is where a Pod writes one of the things it leaves.
func (r *run) place(role string) string {
	return path.Join("pods", r.owner(), r.rec.Token.String(), role)
}
