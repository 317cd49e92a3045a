package protocol

import "sluice.dev/sluice/internal/core/job"

// Archive keeps jobs that are over, so that actors need not: a part of the world, as the executor is. An actor's part of a job is the
// very facts with which its snapshot says it (the gate: JobAccepted and what follows; the zone: HomeKept). A driver that steps
// an actor asks it first whether the message is about a job that it has archived (Archivist), and hands the part on with the
// message, so that a step still sees its input and its state alone (docs/adr/0022-archive.md).
const Archive Role = Bidder + 1

// Gate and zone <-> archive, each for its own part. Purge and Purged (gate <-> archive) are as between gate and executor: parts
// of lives before Generation are to go, and a File of such a life that comes late is not taken.
const (
	// File asks the archive to keep a part of a job that is over: Job, Generation, Filed. Repeated until Archived. It replaces
	// the part of an earlier life, never that of a later one.
	File Kind = iota + 128
	// Archived: the part is durable: Job, Generation, Archival.
	Archived
	// Outdated: the gate's part of this life has been kept long enough, or there are too many: Job, Generation, and Filed as with
	// every message about an archived job. Archive -> gate, oldest end first, repeated until Purge.
	Outdated
)

// Archival is how many changes the archive has counted, the one that it confirms among them.
type Archival struct{ Count uint64 }

// Body marks what Archived carries.
func (*Archival) Body() {}

// Archivist is an actor that leaves jobs that are over to the archive. Recalls names the job whose archived part it needs to
// take m in: it does not have that job itself. A driver looks it up and sets Filed; nil where the archive has none. A part
// that can't be read must not pass for one that is not there.
type Archivist interface {
	Recalls(m *Message) (name job.ID, ok bool)
}

// Kept is the record of a job that its home has filed; nil: the facts are none, or another actor's.
func Kept(filed []Fact) *Record {
	if len(filed) > 0 {
		if kept, ok := filed[0].Body.(*Keeping); ok {
			return kept.Record
		}
	}
	return nil
}
