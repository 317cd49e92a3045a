package slurm

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"strconv"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/history"
)

// What is odd of rows, and what is done about it.
const (
	fewFields      = "a row with too few fields"
	manyFields     = "a row with more fields than the header"
	manyFieldsDone = "a name has the delimiter in it, so dump with --delimiter=$'\\x1f', as --help shows"
	inName         = "a delimiter in a name"
	inNameDone     = "put back together: dump with --delimiter=$'\\x1f' to be sure"
	feedInName     = "a line feed in a name"
	feedInNameDone = "put back together"
	badTime        = "a row with a time that is none"
	badID          = "a row with a job id that is none"
	badLength      = "a walltime that can't be read"
	badState       = "a state that is not known"
	asUnclear      = "taken as not known: the row counts by its times"
	badNodes       = "a list of nodes that can't be read"
	cutValue       = "a value that its column cut off (+)"
	cutValueDone   = "taken as not given: dump with -P"
	noUser         = "a run whose user is hidden or not given"
	noUserDone     = "kept without"
	clockBack      = "a run across the hour in which clocks are put back"
	clockBackDone  = "its end, or its start, is moved by that hour"
	suspended      = "a run that was suspended"
	suspendedDone  = "it held its devices all the time: Slurm does not give them to others"
	elapsedEnd     = "a run whose end is not given, only how long it ran"
	elapsedEndDone = "the end follows from both"
	neverRan       = "a job that ended before it ran"
	neverRanDone   = "its start, which is its end, is none"
)

// accounting is the output of sacct.
type accounting struct {
	*file
	*sheet
	rows    int64
	pending []byte // a row of which a part stood on lines before
	since   history.At
}

func newAccounting(f *file, s *sheet) part {
	f.book.Single("no job has two runs in the log: if it was dumped without -D, the earlier runs of requeued jobs are missing, and " +
		"their time counts as idle")
	return &accounting{file: f, sheet: s}
}

// titled says that the line that began this part has no row in it.
func (a *accounting) titled() {}

func (a *accounting) line(text []byte, at history.At) {
	if a.rows == 0 && a.spans == nil && a.dashes(text) {
		return
	}
	if string(text) == a.title {
		return
	}
	more, joined := a.split(text)
	if len(a.pending) > 0 {
		if more < 0 { // what a name has behind a line feed
			a.pending = append(append(a.pending, ' '), text...)
			if more, joined = a.split(a.pending); more < 0 && len(a.pending) < 1<<14 {
				return
			}
			text, at = a.pending, a.since
			a.book.Odd(feedInName, feedInNameDone, at)
		} else {
			a.book.Odd(fewFields, leftOut, a.since)
		}
		a.pending = a.pending[:0]
	}
	switch {
	case more < 0 && a.free >= 0 && a.delimiter != 0 && text[0] >= '0' && text[0] <= '9':
		a.pending, a.since = append(a.pending[:0], text...), at
		return
	case more < 0:
		a.book.Odd(fewFields, leftOut, at)
		return
	case more > 0:
		if bytes.IndexByte(a.field(colJobIDRaw), '.') < 0 {
			history.Lost(a.book, manyFields, manyFieldsDone, at)
		} else { // a step holds nothing of its own
			a.book.Odd(manyFields, manyFieldsDone, at)
		}
		return
	case joined:
		a.book.Odd(inName, inNameDone, at)
	}
	a.row(at)
}

// row reads the row that was split last.
func (a *accounting) row(at history.At) {
	a.rows++
	raw, id := a.field(colJobIDRaw), a.field(colJobID)
	if len(raw) == 0 {
		raw = id
	}
	if len(id) == 0 {
		id = raw
	}
	step := bytes.IndexByte(raw, '.')
	if step < 0 && a.delimiter == 0 && bytes.HasSuffix(raw, []byte("+")) && len(raw) > 1 {
		a.book.Odd(cutValue, cutValueDone, at)
	}
	number := raw
	if step >= 0 {
		number = raw[:step]
	}
	n, ok := jobNumber(number)
	if !ok {
		a.book.Odd(badID, leftOut, at)
		return
	}
	r := history.Row{Raw: n, Elapsed: history.Unknown, At: at}
	r.Submit, r.Eligible, r.Start, r.End = quantity.Never, quantity.Never, quantity.Never, quantity.Never
	for _, x := range [...]struct {
		column int
		to     *quantity.Instant
	}{{colSubmit, &r.Submit}, {colEligible, &r.Eligible}, {colStart, &r.Start}, {colEnd, &r.End}} {
		if *x.to, ok = a.clock.instant(a.field(x.column)); !ok {
			a.book.Odd(badTime, leftOut, at)
			return
		}
	}
	if step >= 0 {
		if string(raw[step+1:]) == "batch" && r.Start != quantity.Never {
			a.book.Batch(history.BatchRow{Raw: n, Start: r.Start, End: r.End})
		}
		return
	}
	r.ID = a.book.ID(id)
	r.User, r.Account, r.Partition = a.book.Name(a.field(colUser)), a.book.Name(a.field(colAccount)), a.book.Name(a.field(colPartition))
	r.QOS, r.Job = a.book.Name(a.field(colQOS)), a.book.Name(a.field(colJobName))
	r.Index, _ = strconv.ParseUint(string(a.field(colDBIndex)), 10, 64)
	if r.User == 0 && a.has(colUser) {
		a.book.Odd(noUser, noUserDone, at)
	}
	if name := a.field(colCluster); len(name) > 0 {
		a.book.Cluster(name)
	}
	a.lengths(&r, at)
	ran := a.where(&r, at)
	a.what(&r, at, ran)
	a.ends(&r, at, ran)
	a.book.Add(&r)
}

// jobNumber is the number of a job id: "17", "18_3", "41+0", "76_[1-5]"; of what is not only a number a hash.
func jobNumber(id []byte) (uint64, bool) {
	if len(id) == 0 || id[0] < '0' || id[0] > '9' || len(id) > 256 {
		return 0, false
	}
	if n, err := strconv.ParseUint(string(id), 10, 62); err == nil {
		return n, true
	}
	for _, c := range id {
		if (c < '0' || c > '9') && bytes.IndexByte([]byte("_+[]-,%."), c) < 0 {
			return 0, false
		}
	}
	h := fnv.New64a()
	_, _ = h.Write(id) // it has no errors
	return h.Sum64() | 1<<63, true
}

// lengths reads walltime, suspension and how long it ran.
func (a *accounting) lengths(r *history.Row, at history.At) {
	var ok, ok2, ok3 bool
	if text := a.field(colTimelimit); a.has(colTimelimit) && len(text) > 0 {
		r.Limit, ok = length(text)
	} else {
		r.Limit, ok = minutes(a.field(colTimelimitRaw))
	}
	r.Suspended, ok2 = length(a.field(colSuspended))
	ok3 = true
	if text := a.field(colElapsed); len(text) > 0 {
		r.Elapsed, ok3 = length(text)
	} else if text := a.field(colElapsedRaw); len(text) > 0 {
		n, err := strconv.ParseUint(string(text), 10, 32)
		r.Elapsed, ok3 = time.Duration(n)*time.Second, err == nil
	}
	if !ok || !ok2 || !ok3 {
		a.book.Odd(badLength, asNone, at)
	}
	if !ok3 {
		r.Elapsed = history.Unknown
	}
	if r.Suspended > 0 {
		a.book.Odd(suspended, suspendedDone, at)
	}
}

// where reads the nodes, and says whether there were any; it is true where the log does not say.
func (a *accounting) where(r *history.Row, at history.At) (ran bool) {
	ran = string(a.field(colAllocNodes)) != "0" || !a.has(colAllocNodes)
	list := a.field(colNodeList)
	switch {
	case !a.has(colNodeList):
	case len(list) == 0, string(list) == "None assigned", string(list) == "None assi+", string(list) == "(null)":
		ran = false
	case a.delimiter == 0 && list[len(list)-1] == '+':
		a.book.Odd(cutValue, cutValueDone, at)
	default:
		if nodes, ok := a.nodes(list); ok {
			r.Place = a.book.Place(append([]int32(nil), nodes...))
		} else {
			a.book.Odd(badNodes, asNone, at)
		}
	}
	return ran
}

// what reads state and devices.
func (a *accounting) what(r *history.Row, at history.At, ran bool) {
	var known bool
	if r.State, known = state(a.field(colState)); !known {
		a.book.Odd(badState, asUnclear, at)
	}
	order := [...]int{colAllocTRES, colAllocGRES, colReqTRES, colReqGRES}
	from, without := order[:], false
	if !ran {
		from = order[2:]
	}
	for _, column := range from {
		if without && (column == colReqTRES || column == colReqGRES) {
			return
		}
		text := a.field(column)
		if len(text) == 0 {
			continue
		}
		if a.delimiter == 0 && text[len(text)-1] == '+' {
			a.book.Odd(cutValue, cutValueDone, at)
			continue
		}
		l := a.read(column, text)
		if l.wrong {
			a.book.Odd(badDevices, asNone, at)
		}
		if l.shares {
			a.book.Odd(shares, sharesDone, at)
		}
		if l.number != 0 {
			r.Load = l.number
			return
		}
		// What was allocated has no device here: older sites have it in AllocGRES alone, and what was asked for does not count.
		without = without || column == colAllocTRES && !l.wrong
	}
}

func (a *accounting) read(column int, text []byte) load {
	if column == colAllocTRES || column == colReqTRES {
		return a.tres(text)
	}
	return a.cached(append([]byte("gres "), text...), func(text []byte) ([]gpu, bool, bool) { return gres(text[len("gres "):]) })
}

// ends mends a row's own start and end.
func (a *accounting) ends(r *history.Row, at history.At, ran bool) {
	if !ran && (r.State != history.Running && r.State != history.Suspended || r.Start == r.End) {
		if r.Start != quantity.Never && r.End == r.Start {
			a.book.Odd(neverRan, neverRanDone, at)
		}
		r.Start = quantity.Never
		return
	}
	if r.Start == quantity.Never {
		return
	}
	over := r.State != history.Running && r.State != history.Suspended && r.State != history.Pending
	if r.End == quantity.Never && over && !a.has(colEnd) && r.Elapsed >= 0 {
		a.book.Odd(elapsedEnd, elapsedEndDone, at)
		r.End = r.Start.Add(r.Elapsed + r.Suspended)
	}
	if r.End == quantity.Never {
		return
	}
	off := r.End.Sub(r.Start) - r.Elapsed - r.Suspended
	if r.Elapsed < 0 && r.End < r.Start && r.Start.Sub(r.End) <= time.Hour {
		off = -time.Hour
	}
	// More than elapsed may be a suspension that has no column.
	if off != -time.Hour && (off != time.Hour || r.Elapsed < 0 || !a.has(colSuspended)) {
		return
	}
	switch {
	case a.clock.twice(r.End):
		r.End = r.End.Add(-off)
	case a.clock.twice(r.Start):
		r.Start = r.Start.Add(off)
	default:
		return
	}
	a.book.Odd(clockBack, clockBackDone, at)
}

// state reads the first word of a state; words that a narrow column cut off count by their beginning.
func state(text []byte) (history.State, bool) {
	word, _, _ := bytes.Cut(text, []byte(" "))
	word = bytes.TrimRight(word, "+*")
	if len(word) < 2 {
		return history.Unclear, len(text) == 0
	}
	for _, x := range [...]struct {
		word string
		is   history.State
	}{
		{"COMPLETED", history.Completed}, {"CANCELLED", history.Cancelled}, {"FAILED", history.Failed}, {"RUNNING", history.Running},
		{"PENDING", history.Pending}, {"TIMEOUT", history.Timeout}, {"REQUEUED", history.Requeued}, {"PREEMPTED", history.Preempted},
		{"NODE_FAIL", history.NodeFailed}, {"OUT_OF_MEMORY", history.Failed}, {"BOOT_FAIL", history.NodeFailed},
		{"DEADLINE", history.Timeout}, {"SUSPENDED", history.Suspended}, {"RESIZING", history.Completed}, {"REVOKED", history.Cancelled},
		{"LAUNCH_FAILED", history.Failed}, {"RECONFIG_FAIL", history.Failed}, {"COMPLETING", history.Running},
		{"CONFIGURING", history.Running}, {"STOPPED", history.Suspended}, {"SPECIAL_EXIT", history.Failed},
	} {
		if x.word == string(word) || len(word) >= 4 && bytes.HasSuffix(text, []byte("+")) && bytes.HasPrefix([]byte(x.word), word) {
			return x.is, true
		}
	}
	return history.Unclear, false
}

// done says which columns are missing, and what that costs.
func (a *accounting) done() {
	if len(a.pending) > 0 {
		a.book.Odd(fewFields, leftOut, a.since)
	}
	if !a.has(colStart) || !a.has(colEnd) && !a.has(colElapsed) && !a.has(colElapsedRaw) {
		a.book.Problem("a dump of sacct has no columns Start and End: nothing can be said of when devices were held; dump it with the " +
			"line that --help shows")
	}
	for _, x := range [...]struct {
		columns []int
		name    string
		costs   string
	}{
		{[]int{colSubmit}, "Submit", "runs of one job are told apart by their starts, and nothing is known of waiting"},
		{[]int{colState}, "State", "lost runs and requeued ones are not told from others"},
		{[]int{colTimelimit, colTimelimitRaw}, "Timelimit", "lost runs can't be bounded, and no filler knows when a run ends"},
		{[]int{colAllocTRES, colReqTRES, colAllocGRES, colReqGRES}, "AllocTRES", "the log has no devices"},
		{[]int{colNodeList}, "NodeList", "jobs are placed on the first free devices"},
		{[]int{colDBIndex}, "DBIndex", "two jobs of one user with one id and one second of submission are taken as one"},
		{[]int{colSuspended}, "Suspended", "time in which runs are stopped counts as work"},
	} {
		there := false
		for _, c := range x.columns {
			there = there || a.has(c)
		}
		if !there && a.rows > 0 {
			a.book.OddMany(fmt.Sprintf("rows without the column %s", x.name), x.costs, a.rows)
		}
	}
}
