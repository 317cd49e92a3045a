package head

import (
	"cmp"
	"strings"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/store"
)

// Operation is what a call does.
type Operation string

// The operations, one for each method of store.Store.
const (
	PutObject    Operation = "put an object"
	OpenObject   Operation = "read an object"
	StatObject   Operation = "look at an object"
	RenewObject  Operation = "renew an object"
	RemoveObject Operation = "remove an object"
	ListObjects  Operation = "list objects"
	SetName      Operation = "set a name"
	ReadName     Operation = "read a name"
	ListNames    Operation = "list names"
	RemoveName   Operation = "remove a name"
	SweepUploads Operation = "sweep uploads"
	ReadClock    Operation = "read the clock"
)

// Call is what a machine asks for, for those who decide whether it may. Digests and names are valid ones.
type Call struct {
	Operation Operation
	// Machine is who calls, as Caller said.
	Machine job.NodeID
	// Digest of the object, Size of the one to put.
	Digest store.Digest
	Size   int64
	// Name, or the folder of names to list; Refs that it is to have.
	Name string
	Refs store.Refs
}

// Machines decides about a call of a machine that runs subjobs for the jobs of one owner (the word behind jobs/ in names). own reports
// whether a subjob's token is of that machine. It may bring objects, read those whose digest it knows, name what its own subjobs left, and
// read such names of others, from whose checkpoints its subjobs resume. What is collected, and what others have named, is the head's.
func Machines(owner string, own func(job.Token) bool, c Call) error {
	switch c.Operation {
	case PutObject, OpenObject, StatObject, RenewObject, ReadClock:
		return nil
	case ReadName:
		if below(owner, c.Name) {
			return nil
		}
	case SetName, RemoveName:
		words := strings.Split(c.Name, "/")
		// jobs/OWNER/JOB/.../TOKEN
		if token, err := job.ParseToken(words[len(words)-1]); err == nil && len(words) > 3 && below(owner, c.Name) && own(token) {
			return nil
		}
	case RemoveObject, ListObjects, ListNames, SweepUploads:
	}
	what := strings.TrimSpace(string(c.Operation) + " " + cmp.Or(c.Name, string(c.Digest)))
	return errkind.Errorf(errkind.Denied, "machine %s may not %s: it may put and read objects, and name what its own subjobs left; do "+
		"this at the head", c.Machine, what)
}

// below reports whether a name is one below jobs/OWNER.
func below(owner, name string) bool {
	return owner != "" && store.CheckName(name) == nil && strings.HasPrefix(name, "jobs/"+owner+"/")
}
