package protocol

import (
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// Acceptance is what the gate keeps of a job that it has accepted.
type Acceptance struct {
	// Zone that is its home.
	Zone job.ZoneID
	// Recalled: an archived job is taken back.
	Recalled bool
	// Request that it came with, and Digest of the submission.
	Request, Digest string
	Spec            *job.Spec
}

// Final is how a job ended.
type Final struct{ Verdict job.Verdict }

// Forgetting is the order to remove all of a job.
type Forgetting struct {
	// Zone that has its record.
	Zone job.ZoneID
	// Archived: the archive has it as well.
	Archived bool
}

// JobCancel is a job's owner cancelling it, with why.
type JobCancel struct{ Request, Text string }

// JobPause says whether a job gets no new windows.
type JobPause struct{ Paused bool }

// Sequel is another life of a job that was over. Without a Spec it is as it was.
type Sequel struct {
	Request string
	Spec    *job.Spec
}

// Archiving is a job that the archive has, with how many changes the archive has counted. In snapshots, without a job, Changes is how many
// jobs are kept by the archive alone; and if Most, the most changes that it has counted.
type Archiving struct {
	Most    bool
	Changes int64
}

// InZone is where a job belongs, or a zone that it is about.
type InZone struct{ Zone job.ZoneID }

// Departure is a job's old home.
type Departure struct {
	Zone job.ZoneID
	// Pending, in snapshots: it has not yet said that it has forgotten the job.
	Pending bool
}

// Taking is a job that is at home here from now on.
type Taking struct{ Spec *job.Spec }

// Sale is what of a job is sold, to whom and where.
type Sale struct {
	// Node of the slice, or of a gang's first member.
	Node job.NodeID
	Placement
	// Speed of the slice, in parts per thousand.
	Speed int64
	// Bid it was won with; nil where nobody bid.
	Bid *Bid
	// Members of a gang over several nodes, in order of node id; none where all is on one node. The claim's token, Node and Slice are those
	// of the first.
	Members []Member
}

// Extent is a new range and end for a subjob. Peak is its peak over the whole new range; zero: unchanged.
type Extent struct {
	Range job.Range
	End   quantity.Instant
	Peak  trp.Peak
}

// ClaimEnd is how a claim ended: what of it counts, and the result; nil if none came, with the reason in Text.
type ClaimEnd struct {
	Range  job.Range
	Text   string
	Result *job.Result
	// Skipped: the unit alone that keeps failing is skipped.
	Skipped bool
}

// HomeDrop is, of an archived job, what it had attained, in MiB-milliseconds: that counts for its queue no more.
type HomeDrop struct {
	Queue    string
	Attained int64
}

// Keeping is a job's whole state at its home.
type Keeping struct {
	// Recalled: an archived job is taken back.
	Recalled bool
	Record   *Record
}

// Terms are those of a lease.
type Terms struct {
	// Zone that is the job's home.
	Zone job.ZoneID
	Placement
	// Text is, in snapshots, why its end was moved closer.
	Text string
	// Rank is what it is worth beside others.
	Rank Rank
}

// Truncation is an end that was moved closer, and why.
type Truncation struct {
	End  quantity.Instant
	Text string
}

// SubjobEnd is how a subjob ended. Bare: nothing was given to the executor.
type SubjobEnd struct {
	Bare   bool
	Result *job.Result
}

// Body marks what facts say.
func (*Acceptance) Body()  {}
func (*Final) Body()       {}
func (*Forgetting) Body()  {}
func (*JobCancel) Body()   {}
func (*JobPause) Body()    {}
func (*Sequel) Body()      {}
func (*Archiving) Body()   {}
func (*InZone) Body()      {}
func (*Departure) Body()   {}
func (*Taking) Body()      {}
func (*Sale) Body()        {}
func (*Extent) Body()      {}
func (*ClaimEnd) Body()    {}
func (*Learned) Body()     {}
func (*HomeDrop) Body()    {}
func (*Keeping) Body()     {}
func (*Calibration) Body() {}
func (*Lesson) Body()      {}
func (*Reservation) Body() {}
func (*Terms) Body()       {}
func (*Truncation) Body()  {}
func (*SubjobEnd) Body()   {}
