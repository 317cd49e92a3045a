package slurm

import (
	"bytes"
	"strings"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/history"
)

const (
	badRecord     = "what scontrol says of a node or reservation, and can't be read"
	badTable      = "a row of sinfo or of events that can't be read"
	downSince     = "a node that is down or drained, since when is not said"
	downSinceDone = "taken as gone since the last run there ended"
)

// nodeTable is the output of sinfo: with -N a row for each node and partition, else for each partition and state; -R has reasons.
type nodeTable struct {
	*file
	*sheet
}

func (t *nodeTable) titled() {}
func (t *nodeTable) done()   {}

func (t *nodeTable) line(text []byte, at history.At) {
	if string(text) == t.title || t.dashes(text) {
		return
	}
	if t.delimiter == 0 && t.has(colReason) && t.has(colTimestamp) {
		text = t.reasons(text)
	}
	if more, _ := t.split(text); more != 0 {
		t.book.Odd(badTable, leftOut, at)
		return
	}
	list := t.field(colNodes)
	if len(list) == 0 || string(list) == "N/A" { // a partition without nodes
		return
	}
	names, ok := Hosts(list)
	if !ok || t.delimiter == 0 && list[len(list)-1] == '+' {
		t.book.Odd(badTable, leftOut, at)
		return
	}
	var devices []history.Part
	if text := t.field(colGres); len(text) > 0 {
		gpus, hasShares, known := gres(text)
		if !known || text[len(text)-1] == '+' {
			t.book.Odd(badDevices, asNone, at)
		} else if devices = t.parts(gpus); devices == nil {
			devices = []history.Part{}
		}
		if hasShares {
			t.book.Odd(shares, sharesDone, at)
		}
	}
	var partitions []string
	if p := strings.TrimSuffix(string(t.field(colPartition)), "*"); p != "" {
		partitions = []string{p}
	}
	why := away(string(t.field(colNodeState)))
	since, ok := t.clock.instant(t.field(colTimestamp))
	if !ok {
		since = quantity.Never
	}
	if t.has(colReason) && t.has(colTimestamp) && why == 0 {
		why = history.Drained
	}
	for _, name := range names {
		t.book.Tell(history.NodeRow{Name: name, Partitions: partitions, Devices: devices})
	}
	t.absent(names, why, since, at)
}

// absent notes that nodes are away now, since then or since a time that is not known.
func (f *file) absent(names []string, why history.Why, since quantity.Instant, at history.At) {
	if why == 0 {
		return
	}
	if f.until != 0 {
		f.book.Absent(history.AwayRow{Nodes: names, Away: history.Away{From: f.from, To: f.until, Why: why}})
		return
	}
	if since == quantity.Never {
		for range names {
			f.book.Odd(downSince, downSinceDone, at)
		}
	}
	f.book.Absent(history.AwayRow{Nodes: names, Away: history.Away{From: since, To: quantity.Never, Why: why}})
}

// reasons makes one field of the reason in a row of sinfo -R: the other columns behind it have no blanks.
func (t *nodeTable) reasons(line []byte) []byte {
	fields := bytes.Fields(line)
	behind := t.width - 1 - t.at[colReason]
	if len(fields) <= t.width || t.at[colReason] != 0 || behind < 1 {
		return line
	}
	first := len(fields) - behind
	return append([]byte("- "), bytes.Join(fields[first:], []byte(" "))...)
}

// away is what a node's state says of its free devices. "+" stands between a state and what is added to it, "*" and other marks behind.
func away(state string) history.Why {
	why := history.Why(0)
	for word := range strings.SplitSeq(strings.ToLower(state), "+") {
		word = strings.TrimRight(word, "*~#!%$@^-")
		switch {
		case strings.HasPrefix(word, "down"), strings.HasPrefix(word, "fail"), strings.HasPrefix(word, "not_resp"), word == "error",
			strings.HasPrefix(word, "unk"), strings.HasPrefix(word, "futr"), strings.HasPrefix(word, "future"):
			return history.Down
		case strings.HasPrefix(word, "drain"), strings.HasPrefix(word, "drng"), strings.HasPrefix(word, "inval"):
			why = history.Drained
		case strings.HasPrefix(word, "maint"), strings.HasPrefix(word, "reboot"), word == "boot":
			why = max(why, history.Down)
		}
	}
	return why
}

// records is the output of scontrol show node or show reservation: key=value, over several lines or on one.
type records struct {
	*file
	// finish takes a whole record.
	finish func(*records)
	first  string
	keys   map[string]string
	at     history.At
}

func nodeRecords(f *file) part {
	return &records{file: f, first: "NodeName", keys: map[string]string{}, finish: (*records).node}
}

func reservations(f *file) part {
	return &records{file: f, first: "ReservationName", keys: map[string]string{}, finish: (*records).reservation}
}

func (r *records) line(text []byte, at history.At) {
	if bytes.HasPrefix(text, []byte(r.first+"=")) {
		r.done()
		r.at = at
	}
	key := ""
	for word := range bytes.FieldsSeq(text) {
		name, value, has := bytes.Cut(word, []byte("="))
		if has && len(name) > 0 && name[0] >= 'A' && name[0] <= 'Z' {
			key = string(name)
			r.keys[key] = string(value)
		} else if key != "" {
			r.keys[key] += " " + string(word)
		}
	}
}

func (r *records) done() {
	if len(r.keys) > 0 {
		r.finish(r)
	}
	clear(r.keys)
}

// node reads what scontrol says of a node.
func (r *records) node() {
	names, ok := Hosts([]byte(r.keys["NodeName"]))
	text, told := r.keys["Gres"]
	gpus, hasShares, ok2 := gres([]byte(text))
	if !ok || !ok2 {
		r.book.Odd(badRecord, leftOut, r.at)
		return
	}
	if hasShares {
		r.book.Odd(shares, sharesDone, r.at)
	}
	var devices []history.Part
	if told {
		if devices = r.parts(gpus); devices == nil {
			devices = []history.Part{}
		}
	}
	var partitions []string
	if p := r.keys["Partitions"]; p != "" {
		partitions = strings.Split(strings.TrimSpace(p), ",")
	}
	for _, name := range names {
		r.book.Tell(history.NodeRow{Name: name, Partitions: partitions, Devices: devices})
	}
	since := quantity.Never
	if mark := strings.TrimRight(r.keys["Reason"], "] "); strings.Contains(mark, "[") { // text [user@2026-11-28T00:45:34]
		if t, ok := r.clock.instant([]byte(mark[strings.LastIndex(mark, "@")+1:])); ok {
			since = t
		}
	}
	r.absent(names, away(r.keys["State"]), since, r.at)
}

// reservation reads what scontrol says of a reservation.
func (r *records) reservation() {
	from, ok := r.clock.instant([]byte(r.keys["StartTime"]))
	to, ok2 := r.clock.instant([]byte(r.keys["EndTime"]))
	list := r.keys["Nodes"]
	if !ok || !ok2 || from == quantity.Never {
		r.book.Odd(badRecord, leftOut, r.at)
		return
	}
	if r.until != 0 {
		if to = min(to, r.until); from >= to {
			return
		}
	}
	row := history.AwayRow{Away: history.Away{From: from, To: to, Why: history.Reserved}}
	switch names, ok := Hosts([]byte(list)); {
	case list == "ALL":
		row.All = true
	case list == "(null)" || list == "": // of licences alone
		return
	case !ok:
		r.book.Odd(badRecord, leftOut, r.at)
		return
	default:
		row.Nodes = names
	}
	r.book.Absent(row)
}

// events is the output of sacctmgr show event: when nodes were down or drained.
type events struct {
	*file
	*sheet
}

func (e *events) titled() {}
func (e *events) done()   {}

func (e *events) line(text []byte, at history.At) {
	if string(text) == e.title || e.dashes(text) {
		return
	}
	more, _ := e.split(text)
	list := e.field(colNodeName)
	if len(list) == 0 && more == 0 { // of the cluster as a whole: its size
		return
	}
	from, ok := e.clock.instant(e.field(colTimeStart))
	to, ok2 := e.clock.instant(e.field(colTimeEnd))
	names, ok3 := Hosts(list)
	if more != 0 || !ok || !ok2 || !ok3 || from == quantity.Never || to < from {
		e.book.Odd(badTable, leftOut, at)
		return
	}
	why := away(string(e.field(colState)))
	if why == 0 {
		why = history.Down
	}
	e.book.Absent(history.AwayRow{Nodes: names, Away: history.Away{From: from, To: to, Why: why}})
}
