// Package traces reads the published traces of clusters (package trace) as histories: jobs with their starts and lengths, nodes where a
// trace lists them, and minute-by-minute counts of devices that are held. What a trace does not give is assumed, and said.
package traces

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/history"
	"sluice.dev/sluice/internal/lab/trace"
	"sluice.dev/sluice/internal/lab/trace/batsim"
	"sluice.dev/sluice/internal/lab/trace/helios"
	"sluice.dev/sluice/internal/lab/trace/openb"
	"sluice.dev/sluice/internal/lab/trace/philly"
	"sluice.dev/sluice/internal/lab/trace/swf"
)

// Formats lists the traces that say when devices were held.
func Formats() []history.Format {
	return []history.Format{
		of(swf.Format(), "processor", isSWF),
		of(philly.Format(), "gpu", columns("timestamp", "duration", "num_gpus", "gpu_time")),
		of(helios.Format(), "gpu", func(head []byte, file string) bool {
			return columns("job_id", "gpu_num", "start_time", "duration")(head, file) ||
				columns("time", "total_gpu_num", "idle_gpu_num", "running_gpu_num")(head, file)
		}),
		of(openb.Format(), "gpu", func(head []byte, file string) bool {
			return columns("sn", "cpu_milli", "gpu", "model")(head, file) ||
				columns("name", "num_gpu", "gpu_milli", "creation_time", "deletion_time")(head, file)
		}),
		of(batsim.Format(), "processor", columns("job_id", "submission_time", "starting_time", "execution_time")),
	}
}

// columns says whether the first line names all of these, with commas between.
func columns(names ...string) func([]byte, string) bool {
	return func(head []byte, _ string) bool {
		line, _, _ := bytes.Cut(head, []byte("\n"))
		found := strings.Split(strings.TrimSuffix(strings.TrimPrefix(string(line), "\ufeff"), "\r"), ",")
		for _, name := range names {
			there := false
			for _, f := range found {
				there = there || f == name
			}
			if !there {
				return false
			}
		}
		return true
	}
}

// isSWF looks for a line of at least eighteen numbers behind comments.
func isSWF(head []byte, _ string) bool {
	for line := range bytes.Lines(head) {
		line = bytes.TrimSpace(line)
		if len(line) == 0 || line[0] == ';' {
			continue
		}
		fields := bytes.Fields(line)
		for _, f := range fields {
			if _, err := strconv.ParseFloat(string(f), 64); err != nil {
				return false
			}
		}
		return len(fields) >= 18
	}
	return len(head) > 0 && head[0] == ';' && bytes.Contains(head, []byte("\n; MaxProcs:")) // comments for longer than the head
}

// of makes a format of a trace's; its devices are of this kind where it names none.
func of(f trace.Format, device string, is func([]byte, string) bool) history.Format {
	return history.Format{
		Name: f.Name, Doc: f.Doc, Is: is,
		Read: func(b *history.Book, r io.Reader, file string) error {
			x := reading{
				Book: b, file: b.File(file), kind: b.Kind([]byte(device)), states: map[string][]state{}, has: map[string]int64{},
			}
			b.Whole(x.file)
			return x.all(f.Open(r, file))
		},
	}
}

// reading is one file while it is read.
type reading struct {
	*history.Book
	file uint32
	kind int32
	// begin is the instant of the trace's own 0.
	begin  quantity.Instant
	states map[string][]state
	// has is how many devices a cluster was told to have last.
	has map[string]int64
}

// state is how many devices of a cluster are held from an instant on.
type state struct {
	at   quantity.Instant
	held int64
}

func (x *reading) all(reader trace.Reader) error {
	var r trace.Record
	for {
		err := reader.Next(&r)
		switch {
		case errors.Is(err, io.EOF):
			for _, t := range reader.Treated() {
				name, done, _ := strings.Cut(t.Name, ": ")
				x.OddMany(name, done, t.Count)
			}
			x.levels()
			return nil
		case errkind.Of(err) == errkind.Invalid:
			x.Problem("%v", err)
			return nil
		case err != nil:
			return err
		}
		switch r.Kind { //nolint:exhaustive // the formats that are listed have no others
		case trace.Job:
			x.job(&r)
		case trace.Node:
			x.node(r.Node.ID, r.Node.Model, r.Node.GPUs)
		case trace.Header:
			x.header(r.Header)
		case trace.State:
			s := &r.State
			const most = 1 << 20
			if s.GPUs > most {
				x.Problem("%s has %d GPUs, more than %d", s.Cluster, s.GPUs, most)
				return nil
			}
			x.states[s.Cluster] = append(x.states[s.Cluster], state{x.instant(r.At), s.GPUs - s.Idle})
			if told, ok := x.has[s.Cluster]; !ok || told != s.GPUs { // once, and not each minute
				x.has[s.Cluster] = s.GPUs
				x.node(s.Cluster, "", s.GPUs)
			}
		}
	}
}

// node tells of a node with devices of a model.
func (x *reading) node(name, model string, count int64) {
	devices := []history.Part{}
	if count > 0 {
		kind := x.kind
		if model != "" {
			kind = x.Kind([]byte(model))
		}
		devices = append(devices, history.Part{Kind: kind, Count: int32(min(count, 1<<20)), Milli: 1000})
	}
	x.Tell(history.NodeRow{Name: name, Devices: devices})
}

// header reads what an archive's log says of its machine.
func (x *reading) header(h trace.HeaderRecord) {
	word, _, _ := strings.Cut(strings.TrimSpace(h.Value), " ")
	n, err := strconv.ParseInt(word, 10, 64)
	if err != nil || n <= 0 {
		return
	}
	switch h.Key {
	case "MaxProcs":
		x.Machine(int(min(n, 1<<30)))
	case "UnixStartTime":
		if n < 4102444800 {
			x.begin = quantity.Instant(n) * quantity.Instant(time.Second)
		}
	}
}

// instant is a trace's instant on the clock of histories.
func (x *reading) instant(t time.Duration) quantity.Instant {
	if t == trace.Unknown {
		return quantity.Never
	}
	return x.begin.Add(t)
}

func (x *reading) job(r *trace.Record) {
	j := &r.Job
	row := history.Row{Elapsed: history.Unknown, At: history.At{File: x.file, Line: uint32(r.Line)}}
	row.Submit, row.Eligible, row.Start, row.End = x.instant(r.At), quantity.Never, x.instant(j.Start), quantity.Never
	row.Limit = max(0, j.Requested)
	row.User, row.Partition = x.Name([]byte(j.User)), x.Name([]byte(j.Queue))
	row.State = states(j.Status)
	if j.Start == trace.Unknown && j.Duration > 0 && r.At != trace.Unknown {
		row.NoStart, row.Elapsed = true, j.Duration
	} else if j.Start == trace.Unknown && j.GPUs > 0 {
		x.Odd("a job that never ran", "it held nothing", row.At)
	}
	if row.Start != quantity.Never && j.Duration != trace.Unknown {
		row.End = row.Start.Add(j.Duration)
	}
	if row.Start != quantity.Never && row.End == quantity.Never {
		x.Odd("a job whose length is not given", "left out", row.At)
		return
	}
	if j.GPUs > 0 {
		part := history.Part{Kind: x.kind, Count: int32(min(j.GPUs, 1<<20)), Milli: int32(min(max(j.Milli, 1), 1000))}
		if len(j.Models) == 1 {
			part.Kind = x.Kind([]byte(j.Models[0]))
		}
		row.Load = x.Load([]history.Part{part})
	}
	sum := fnv.New64a()
	if j.ID != "" {
		_, _ = io.WriteString(sum, j.ID) // it has no errors
		row.Raw, row.ID = sum.Sum64(), x.ID([]byte(j.ID))
	} else {
		key := binary.LittleEndian.AppendUint64(nil, uint64(r.At))
		key = binary.LittleEndian.AppendUint64(key, uint64(j.Duration))
		key = binary.LittleEndian.AppendUint64(key, uint64(j.GPUs))
		_, _ = sum.Write(append(key, j.Queue...))
		row.Raw = sum.Sum64()
		row.Index = x.Nth(row.Raw)
		row.ID = x.ID(fmt.Appendf(nil, "%016x-%d", row.Raw, row.Index))
	}
	x.Add(&row)
}

// states are the words and numbers of the traces.
func states(status string) history.State {
	switch strings.ToLower(status) {
	case "1", "completed", "succeeded":
		return history.Completed
	case "0", "failed", "node_fail", "out_of_memory":
		return history.Failed
	case "5", "cancelled":
		return history.Cancelled
	case "timeout":
		return history.Timeout
	}
	return history.Completed // it has an end, and nothing says that the end is not its own
}

// levels makes runs of counts of held devices: the first device is held while any is, and so on, so that gaps are as few and as long as
// the counts allow.
func (x *reading) levels() {
	for cluster, states := range x.states {
		x.Assume("of some clusters only how many devices were held is known, minute by minute: the same devices are taken as held as " +
			"long as the count allows, so that gaps are as few and long as they can be")
		node := x.Place([]int32{x.Node([]byte(cluster))})
		load := x.Load([]history.Part{{Kind: x.kind, Count: 1, Milli: 1000}})
		// of one instant the one with the most held last
		slices.SortFunc(states, func(x, y state) int { return cmp.Or(cmp.Compare(x.at, y.at), cmp.Compare(x.held, y.held)) })
		var since []quantity.Instant // by device, of those that are held
		end := func(at quantity.Instant) {
			n := len(since) - 1
			sum := fnv.New64a()
			_, _ = fmt.Fprintf(sum, "%s/%d/%d", cluster, n, since[n])
			row := history.Row{Raw: sum.Sum64(), Elapsed: history.Unknown, At: history.At{File: x.file, Line: 1}}
			row.ID = x.ID(fmt.Appendf(nil, "%s/%d", cluster, n))
			row.Submit, row.Eligible, row.Start, row.End = since[n], since[n], since[n], at
			row.Load, row.Place, row.State = load, node, history.Completed
			x.Add(&row)
			since = since[:n]
		}
		for _, s := range states {
			for int64(len(since)) > s.held {
				end(s.at)
			}
			for int64(len(since)) < s.held {
				since = append(since, s.at)
			}
		}
		for len(since) > 0 {
			end(states[len(states)-1].at)
		}
	}
}
