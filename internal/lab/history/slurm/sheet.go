package slurm

import (
	"bytes"
	"strings"
)

// Columns that are read; others are left out.
const (
	colJobIDRaw = iota
	colJobID
	colJobName
	colUser
	colAccount
	colPartition
	colQOS
	colState
	colSubmit
	colEligible
	colStart
	colEnd
	colTimelimit
	colTimelimitRaw
	colAllocNodes
	colAllocTRES
	colReqTRES
	colAllocGRES
	colReqGRES
	colNodeList
	colSuspended
	colDBIndex
	colElapsed
	colElapsedRaw
	colCluster
	// Of tables of nodes and of events.
	colNodes
	colGres
	colNodeState
	colReason
	colTimestamp
	colNodeName
	colTimeStart
	colTimeEnd
	columns
)

// titles of columns in lower case without blanks and underscores, as the commands and their versions print them. What stands here as -1 is
// known and not read: it tells a header from a row.
func titles() map[string]int {
	return map[string]int{
		"jobidraw": colJobIDRaw, "jobid": colJobID, "jobname": colJobName, "user": colUser, "account": colAccount,
		"partition": colPartition, "qos": colQOS, "state": colState, "submit": colSubmit, "eligible": colEligible, "start": colStart,
		"end": colEnd, "timelimit": colTimelimit, "timelimitraw": colTimelimitRaw, "allocnodes": colAllocNodes, "nnodes": colAllocNodes,
		"alloctres": colAllocTRES, "reqtres": colReqTRES, "allocgres": colAllocGRES, "reqgres": colReqGRES, "reqgre": colReqGRES,
		"nodelist": colNodeList, "suspended": colSuspended, "dbindex": colDBIndex, "elapsed": colElapsed, "elapsedraw": colElapsedRaw,
		"cluster": colCluster, "hostnames": colNodes, "gres": colGres, "reason": colReason, "timestamp": colTimestamp,
		"nodename": colNodeName, "timestart": colTimeStart, "timeend": colTimeEnd,
		"exitcode": -1, "derivedexitcode": -1, "priority": -1, "alloccpus": -1, "ncpus": -1, "reqcpus": -1, "reqmem": -1, "maxrss": -1,
		"group": -1, "uid": -1, "nodes": -1, "avail": -1, "gresused": -1, "cpus": -1, "memory": -1, "features": -1, "duration": -1,
	}
}

// sheet is a table's header: where its columns are.
type sheet struct {
	// at is the field of each column, -1 for one that is not there. title is the header's line.
	at    [columns]int
	title string
	width int
	// delimiter between fields; 0: columns of a fixed width, or of blanks where spans is nil. quoted: fields may stand in quotes.
	delimiter byte
	quoted    bool
	// trailing: each row ends with a delimiter (-p).
	trailing bool
	// spans of columns of a fixed width.
	spans []span
	// free is a field of free text, which may have a delimiter or a line feed in it: names of jobs have them most often. -1: none, or
	// several that are no names.
	free   int
	fields [][]byte
}

type span struct{ from, to int }

func (s *sheet) has(column int) bool { return s.at[column] >= 0 }

// header reads a header; nil if the line is none: it has a column that is known under every delimiter, and no row has two.
func header(line []byte) *sheet {
	known := titles()
	for _, delimiter := range []byte{0x1f, '|', '\t', ';', '^', ',', 0} {
		s := &sheet{delimiter: delimiter, quoted: delimiter == ',' || delimiter == ';' || delimiter == '\t', title: string(line), free: -1}
		if delimiter != 0 && bytes.IndexByte(line, delimiter) < 0 {
			continue
		}
		for i := range s.at {
			s.at[i] = -1
		}
		s.cut(line)
		s.trailing = delimiter != 0 && len(s.fields) > 1 && len(bytes.TrimSpace(s.fields[len(s.fields)-1])) == 0
		found, free := 0, []int{}
		for i, f := range s.fields {
			name := strings.ToLower(strings.NewReplacer("_", "", " ", "", "%", "").Replace(string(f)))
			column, ok := known[strings.TrimRight(name, "0123456789")]
			if !ok {
				switch name {
				case "comment", "admincomment", "systemcomment", "workdir", "submitline", "extra", "wckey":
					free = append(free, i)
				}
				continue
			}
			found++
			if column == colJobName || column == colReason {
				free = append(free, i)
			}
			if column >= 0 && s.at[column] < 0 {
				s.at[column] = i
			}
		}
		s.width = len(s.fields)
		if s.trailing {
			s.width--
		}
		switch {
		case s.has(colJobName):
			s.free = s.at[colJobName]
		case len(free) == 1:
			s.free = free[0]
		}
		if found >= 2 || found == 1 && s.width == 1 {
			s.ofNodes()
			return s
		}
	}
	return nil
}

// ofNodes tells sinfo's columns from sacct's, which have some names in common.
func (s *sheet) ofNodes() {
	if s.has(colJobID) || s.has(colJobIDRaw) || s.has(colNodeName) {
		return
	}
	if s.has(colNodeList) && !s.has(colNodes) {
		s.at[colNodes] = s.at[colNodeList]
	}
	s.at[colNodeState] = s.at[colState]
}

// cut cuts a row into fields.
func (s *sheet) cut(line []byte) {
	s.fields = s.fields[:0]
	switch {
	case s.spans != nil:
		for i, x := range s.spans {
			to := x.to
			if i == len(s.spans)-1 {
				to = len(line)
			}
			s.fields = append(s.fields, bytes.TrimSpace(line[min(x.from, len(line)):min(to, len(line))]))
		}
	case s.delimiter == 0:
		s.fields = append(s.fields, bytes.Fields(line)...)
	default:
		for {
			n := 0
			if s.quoted && len(line) > 0 && line[0] == '"' {
				if end := bytes.IndexByte(line[1:], '"'); end >= 0 {
					n = end + 2
				}
			}
			end := bytes.IndexByte(line[n:], s.delimiter)
			if end < 0 {
				s.fields = append(s.fields, unquoted(line, n))
				return
			}
			s.fields = append(s.fields, unquoted(line[:n+end], n))
			line = line[n+end+1:]
		}
	}
}

func unquoted(field []byte, quoted int) []byte {
	if quoted >= 2 && quoted == len(field) {
		return field[1 : quoted-1]
	}
	return field
}

// dashes makes columns of a fixed width of the line below a header, and says whether it is one.
func (s *sheet) dashes(line []byte) bool {
	if s.delimiter != 0 || len(bytes.Trim(line, "- ")) > 0 {
		return false
	}
	var spans []span
	for i := 0; i < len(line); i++ {
		if line[i] == '-' && (i == 0 || line[i-1] != '-') {
			spans = append(spans, span{i, i})
		}
		if line[i] == '-' {
			spans[len(spans)-1].to = i + 1
		}
	}
	if len(spans) != s.width {
		return false
	}
	s.spans = spans
	return true
}

// split cuts a row, and puts back together a free text that has delimiters in it. more is how many fields there are too many, or, below 0,
// too few.
func (s *sheet) split(line []byte) (more int, joined bool) {
	s.cut(line)
	n := len(s.fields)
	if s.trailing && n == s.width+1 && len(s.fields[n-1]) == 0 {
		s.fields, n = s.fields[:n-1], n-1
	}
	surplus := n - s.width
	if s.trailing && surplus > 0 && len(s.fields[n-1]) == 0 {
		surplus--
	}
	if surplus > 0 && s.free >= 0 && !s.quoted && s.delimiter != 0 {
		copy(s.fields[s.free+1:], s.fields[s.free+1+surplus:])
		s.fields = s.fields[:s.width]
		return 0, true
	}
	return surplus, false
}

// field is a column's text, nil if the table has none.
func (s *sheet) field(column int) []byte {
	if at := s.at[column]; at >= 0 && at < len(s.fields) {
		return s.fields[at]
	}
	return nil
}
