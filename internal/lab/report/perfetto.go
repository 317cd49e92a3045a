package report

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/measure"
)

// Perfetto writes the histories of the study's rows as trace events in JSON, which ui.perfetto.dev and Chrome's tracing page
// open: a process for each row, a track for each slice, a counter of waiting jobs for each queue. Times are microseconds
// from the first thing that happened.
func (s *Study) Perfetto(w io.Writer) error {
	t := &tracer{out: bufio.NewWriter(w)}
	_, _ = t.out.WriteString(`{"displayTimeUnit":"ms","traceEvents":[`) // a buffered writer keeps its first error for Flush
	pid := 0
	for i := range s.Rows {
		if r := &s.Rows[i]; r.Spans != nil {
			pid++
			t.recording(pid, r)
		}
	}
	_, _ = t.out.WriteString("\n]}\n")
	if err := t.out.Flush(); err != nil {
		return fmt.Errorf("write the trace: %w", err)
	}
	return nil
}

type tracer struct {
	out   *bufio.Writer
	count int
}

// event writes one line; what follows its phase is given as JSON.
func (t *tracer) event(phase byte, pid int, format string, args ...any) {
	if t.count++; t.count > 1 {
		_ = t.out.WriteByte(',')
	}
	fmt.Fprintf(t.out, "\n"+`{"ph":"%c","pid":%d,`, phase, pid)
	fmt.Fprintf(t.out, format, args...)
	_ = t.out.WriteByte('}')
}

func (t *tracer) recording(pid int, r *Row) {
	rec := r.Spans
	origin := start(rec)
	us := func(at quantity.Instant) string { return micro(int64(at.Sub(origin))) }
	t.event('M', pid, `"name":"process_name","args":{"name":%s}`, quote(rowTitle(r)))
	class := classOf(rec)
	for i := range tracks(rec) {
		t.event('M', pid, `"tid":%d,"name":"thread_name","args":{"name":%s}`, i+1, quote(trackName(rec, class, i)))
		t.event('M', pid, `"tid":%d,"name":"thread_sort_index","args":{"sort_index":%d}`, i+1, i)
	}
	for i := range rec.Spans {
		p := &rec.Spans[i]
		name := fmt.Sprintf("job %d", p.Job)
		if !p.Units.Empty() {
			name += " " + p.Units.String()
		}
		for k := range max(p.Slices, 1) {
			t.event('X', pid,
				`"tid":%d,"name":%s,"cat":%s,"ts":%s,"dur":%s,"args":{"job":%d,"outcome":%s,"useful":%s,"overhead":%s,"excess":%t}`,
				p.First+k+1, quote(name), quote(queueName(rec, p.Queue)), us(p.Start), micro(int64(p.End.Sub(p.Start))), p.Job,
				quote(p.Outcome.String()),
				quote(figure(p.Useful.Seconds(), measure.Seconds)), quote(figure(p.Overhead.Seconds(), measure.Seconds)), p.Excess)
		}
	}
	for _, d := range rec.Depths {
		t.event('C', pid, `"name":%s,"ts":%s,"args":{"waiting":%d}`, quote("queue "+queueName(rec, d.Queue)), us(d.At), d.Jobs)
	}
}

// micro is nanoseconds as microseconds with all digits.
func micro(ns int64) string {
	return strconv.FormatInt(ns/1000, 10) + fmt.Sprintf(".%03d", ns%1000)
}

// quote is a text in JSON.
func quote(text string) string {
	b, err := json.Marshal(text)
	if err != nil {
		return `""` // a string always has a form
	}
	return string(b)
}

// start of a recording: the first thing that happened.
func start(rec *measure.Recording) quantity.Instant {
	first := quantity.Never
	for i := range rec.Spans {
		first = min(first, rec.Spans[i].Start)
	}
	for _, d := range rec.Depths {
		first = min(first, d.At)
	}
	if first == quantity.Never {
		return 0
	}
	return first
}

// tracks is how many slices there are.
func tracks(rec *measure.Recording) int {
	n := 0
	for _, c := range rec.Classes {
		n += c.Count
	}
	for i := range rec.Spans {
		n = max(n, int(rec.Spans[i].First+max(rec.Spans[i].Slices, 1)))
	}
	return n
}

// classOf each slice, as far as its runs tell; -1 of one on which nothing ran.
func classOf(rec *measure.Recording) []int {
	class := make([]int, tracks(rec))
	for i := range class {
		class[i] = -1
	}
	for i := range rec.Spans {
		p := &rec.Spans[i]
		for k := range max(p.Slices, 1) {
			class[p.First+k] = int(p.Class)
		}
	}
	return class
}

func trackName(rec *measure.Recording, class []int, i int) string {
	name := "slice " + strconv.Itoa(i)
	if c := class[i]; c >= 0 && c < len(rec.Classes) && rec.Classes[c].Name != "" {
		name += " " + rec.Classes[c].Name
	}
	return name
}

func queueName(rec *measure.Recording, q int32) string {
	if int(q) < len(rec.Queues) && rec.Queues[q] != "" {
		return rec.Queues[q]
	}
	return "default"
}

func rowTitle(r *Row) string { return fmt.Sprintf("%s, %s, seed %d", r.at(), r.Mechanism, r.Seed) }
