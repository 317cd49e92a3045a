// Package health says what is to be done about a GPU that fails: which slices are closed, which subjobs end for it, and when a slice is
// sold again. It is pure; who sees the GPUs only translates into Events and States.
package health

import (
	"fmt"
	"time"

	"sluice.dev/sluice/internal/core/digest"
	"sluice.dev/sluice/internal/core/quantity"
)

// Cause is what is wrong.
type Cause uint8

const (
	// ByXid: the driver has told of an error, by its number.
	ByXid Cause = iota + 1
	// Lost: the GPU does not answer: it has fallen off the bus.
	Lost
	// NeedsReset: the driver says that the GPU, or its machine, must be reset before it can be used.
	NeedsReset
	// NeedsDrain: the driver says that the GPU is to get no new work until it was reset, or until its links are quiet.
	NeedsDrain
	// RowsPending: memory rows that failed are replaced at the next reset.
	RowsPending
	// RowsFailed: a memory row that failed could not be replaced.
	RowsFailed
	// Closed: its cluster keeps new work from it.
	Closed
	// Evicted: its cluster ends what uses it.
	Evicted

	// Causes is how many there are, with none.
	Causes = iota + 1
)

var causes = [Causes]string{ //nolint:gochecknoglobals // a table, written to by nobody
	"", "xid", "lost", "needs-reset", "needs-drain", "rows-pending", "rows-failed", "closed", "evicted",
}

// String is the cause's name in metrics.
func (c Cause) String() string {
	if int(c) < len(causes) {
		return causes[c]
	}
	return "unknown"
}

// ends reports whether a subjob on a GPU can't go on with this cause. Other causes only keep new work away.
func (c Cause) ends() bool { return c == Lost || c == NeedsReset || c == Evicted }

// State is a fault of a GPU that lasts for as long as it is reported.
type State struct {
	Cause Cause
	Text  string
}

// Look is all that is wrong with a GPU now. Told: its driver reports what it needs, so no State means that it needs nothing.
type Look struct {
	States []State
	Told   bool
}

// Fault is why a slice is not sold. A state's is over when it is reported no more; for an Xid's see Over.
type Fault struct {
	Cause Cause
	// Xid, and the life of the machine in which it came: a name for the time since its start, empty if that is not known. Of a state they
	// are zero.
	Xid  uint32
	Life string
	// Since is when it was first said, Text what it is.
	Since quantity.Instant
	Text  string
	// Ends: what runs there has lost its GPU. Brief: nothing but what ran there is lost, and the GPU goes on.
	Ends, Brief bool
}

// Body marks it as what a fact says of a slice.
func (*Fault) Body() {}

// Mix mixes a fault into a digest.
func (f *Fault) Mix(h digest.Hash) digest.Hash {
	return h.Int(int64(f.Cause), int64(f.Xid), int64(f.Since)).Text(f.Life).Text(f.Text).Bool(f.Ends, f.Brief)
}

// Name is the fault's cause in metrics: "xid-79", "lost".
func (f *Fault) Name() string {
	if f.Cause == ByXid {
		return Label(f.Xid)
	}
	return f.Cause.String()
}

// Label is an Xid's name in metrics. NVIDIA's list ends long before 256: what is beyond makes no series of its own.
func Label(xid uint32) string {
	if xid > 255 {
		return "xid-other"
	}
	return fmt.Sprintf("xid-%d", xid)
}

// Of is the fault that an Xid is for a slice; false: none. here: the driver named the slice's instance, or the whole GPU that it is.
func Of(now quantity.Instant, xid uint32, here bool, life string) (Fault, bool) {
	m, known := meanings[xid]
	f := Fault{Cause: ByXid, Xid: xid, Life: life, Since: now, Text: Describe(xid), Ends: m.ends == card || m.ends == instance && here,
		Brief: m.closes == instance}
	return f, known && (m.closes == card || m.closes == instance && here)
}

// Describe is an Xid for people.
func Describe(xid uint32) string {
	m, known := meanings[xid]
	if !known {
		return fmt.Sprintf("Xid %d", xid)
	}
	return fmt.Sprintf("Xid %d (%s)", xid, m.name)
}

// Worst is the state that decides: the first of those that end what runs, else the first.
func Worst(now quantity.Instant, states []State) (f Fault, bad bool) {
	for i := range states {
		if s := &states[i]; !bad || s.Cause.ends() && !f.Ends {
			f, bad = Fault{Cause: s.Cause, Since: now, Text: s.Text, Ends: s.Cause.ends()}, true
		}
	}
	return f, bad
}

// Merge is what a slice has that had the fault before and now has f as well; false: nothing new.
func Merge(before *Fault, f Fault) (Fault, bool) {
	switch {
	case before == nil || before.Cause != ByXid && f.Cause == ByXid:
		return f, true
	case before.Cause != ByXid:
		return f, f.Text != before.Text || f.Ends != before.Ends
	case f.Cause == ByXid:
		more := f.Ends && !before.Ends || before.Brief && !f.Brief
		f.Ends, f.Brief = f.Ends || before.Ends, f.Brief && before.Brief
		return f, more
	default: // the error stays, whatever state it has led to
		sum := *before
		sum.Ends, sum.Text = true, before.Text+"; "+f.Text
		return sum, f.Ends && !before.Ends
	}
}

const (
	// settle is how long a slice is not sold after an Xid, whatever follows: drivers report one failure in several Xids. It doubles with
	// every relapse.
	settle = time.Minute
	// mostRelapses bounds that doubling, at about an hour.
	mostRelapses = 6
)

// Over says why a fault is over, by a look at now in this life of the machine; empty: it is not. relapses is how often the slice was sold
// again before although nothing shows that its GPU was reset since; so it would be again if reset is false.
func (f *Fault) Over(now quantity.Instant, look *Look, life string, relapses int) (why string, reset bool) {
	switch {
	case len(look.States) > 0:
		return "", false
	case f.Cause != ByXid:
		return "it is said no more", true
	case f.Life != "" && life != "" && f.Life != life:
		return "the machine was started again", true
	case now < f.Since.Add(settle<<min(relapses, mostRelapses)):
		return "", false
	case f.Brief:
		return "the GPU goes on", false
	case look.Told:
		return "the driver says that the GPU needs nothing", false
	}
	return "", false
}
