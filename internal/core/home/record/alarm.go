package record

// Alarm is why a job is looked at again at some instant.
type Alarm int

// What there is to look at.
const (
	Deadline   Alarm = iota // its owner's deadline passes
	Leases                  // an answer is overdue, or a node has been silent for too long
	Continuing              // a running subjob bids for the window behind its own
	Publishing              // nodes are asked again about its output
	Resting                 // its pause after a failure is over
	Avoiding                // it avoids a slice no more
	alarms
)
