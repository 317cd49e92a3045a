// Package prometheus reads what a Prometheus has kept of a Kubernetes cluster, as ranges of samples: of kube-state-metrics which Pods held
// devices and which nodes there were, of NVIDIA's DCGM exporter how busy the devices were. A Pod is a run on one node. Samples say of what
// time something is known: where there are none at all nothing is, and nothing ends there.
package prometheus

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/lab/history"
	"sluice.dev/sluice/internal/lab/trace"
)

// Format of the dumps.
func Format() history.Format {
	return history.Format{
		Name: "prometheus",
		Doc: "ranges of samples of a Prometheus (the JSON of /api/v1/query_range) of kube-state-metrics, and of NVIDIA's DCGM " +
			"exporter if there is one",
		Is:     func(head []byte, _ string) bool { return is(head) },
		Read:   Read,
		Beside: true,
	}
}

// is looks for what an answer, or promtool's list, begins with.
func is(head []byte) bool {
	head = bytes.TrimLeft(head, " \t\r\n")
	if list, ok := bytes.CutPrefix(head, []byte("[")); ok {
		head = bytes.TrimLeft(list, " \t\r\n")
	}
	object, ok := bytes.CutPrefix(head, []byte("{"))
	if !ok {
		return false
	}
	key, ok := bytes.CutPrefix(bytes.TrimLeft(object, " \t\r\n"), []byte(`"`))
	if !ok {
		return false
	}
	key, _, _ = bytes.Cut(key, []byte(`"`))
	switch string(key) {
	case "status", "data", "metric", "errorType":
		return true
	}
	return false
}

// What is odd of a dump, and what is done about it.
const (
	cutShort    = "a dump that is cut or damaged"
	cutDone     = "the series before it were read, and the one that is cut left out: fetch it again"
	noForm      = "a dump that is no JSON from some place on"
	noFormDone  = "the series before it were read"
	failed      = "an answer of Prometheus that is an error"
	failedDone  = "left out: ask again, for less time or with a longer step"
	warned      = "a warning of Prometheus beside an answer"
	warnedDone  = "the answer was read; parts of it may be missing"
	strange     = "an answer that is no range of samples"
	strangeDone = "left out: ask /api/v1/query_range"
	nameless    = "a series without the labels that say what it is of"
)

// Read puts a dump into the book.
func Read(b *history.Book, r io.Reader, name string) error {
	at, err := Put(b, r, name)
	switch {
	case err == nil:
	case trace.Damaged(err):
		b.Odd(cutShort, cutDone, at)
	case errors.Is(err, errForm):
		b.Odd(noForm, noFormDone, at)
	default:
		return &errkind.Error{Kind: errkind.Unavailable, Err: fmt.Errorf("%s:%d: read: %w", name, at.Line, err)}
	}
	return nil
}

// recordOf is the record of a book.
func recordOf(b *history.Book) *record {
	return b.Samples().Collect("prometheus", func() history.Collector { return newRecord(b) }).(*record)
}

// Put puts what can be read of a dump into the book. If it can't be read to its end the error says why, and the place where that was.
func Put(b *history.Book, r io.Reader, name string) (history.At, error) {
	f := &file{book: b, number: b.File(name), into: recordOf(b)}
	text, err := trace.Text(r)
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return f.at(1), err
	}
	s := newScanner(text)
	for err == nil {
		err = s.document(f)
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return f.at(s.at()), err
}

// file is one dump while it is read.
type file struct {
	book   *history.Book
	number uint32
	into   *record
}

func (f *file) at(line uint32) history.At { return history.At{File: f.number, Line: line} }

func (f *file) failed(text string, line uint32) {
	f.book.Odd(failed, failedDone, f.at(line))
	if f.into.failure == "" || text < f.into.failure {
		f.into.failure = text
	}
}

func (f *file) warned(_ string, line uint32)  { f.book.Odd(warned, warnedDone, f.at(line)) }
func (f *file) strange(_ string, line uint32) { f.book.Odd(strange, strangeDone, f.at(line)) }

// series puts one into the record.
func (f *file) series(s *series, line uint32) {
	if len(s.at) == 0 {
		return
	}
	if !f.into.series(s) {
		f.book.Odd(nameless, leftOut, f.at(line))
	}
}
