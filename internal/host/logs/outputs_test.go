package logs

import (
	"reflect"
	"slices"
	"testing"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/status"
)

// TestUnwrittenRangesAreListed: what is published and has no folder is listed by subjob, and beyond what the history knows as a range.
func TestUnwrittenRangesAreListed(t *testing.T) {
	at := func(seq uint64, from, to int64) status.Subjob {
		return status.Subjob{
			Token: job.Token{Epoch: 1, Seq: seq}, Range: job.Range{From: from, To: to + 1}, Committed: job.Range{From: from, To: to},
		}
	}
	none := func(seq uint64, from, to int64) status.Output {
		o := status.Output{Range: job.Range{From: from, To: to}}
		if seq > 0 {
			o.Token = job.Token{Epoch: 1, Seq: seq}
		}
		return o
	}
	folder := func(from, to int64) status.Output {
		return status.Output{Range: job.Range{From: from, To: to}, Path: "there"}
	}
	for _, c := range []struct {
		what      string
		published job.Ranges
		history   []status.Subjob
		folders   []status.Output
		want      []status.Output
	}{
		{"nothing is committed", nil, []status.Subjob{at(1, 0, 0)}, nil, nil},
		{"all have folders", job.Ranges{{From: 0, To: 9}}, []status.Subjob{at(1, 0, 4), at(2, 4, 9)},
			[]status.Output{folder(0, 4), folder(4, 9)}, nil},
		{"two in a row wrote nothing", job.Ranges{{From: 0, To: 9}}, []status.Subjob{at(1, 0, 2), at(2, 2, 4), at(3, 4, 9)},
			[]status.Output{folder(4, 9)}, []status.Output{none(1, 0, 2), none(2, 2, 4)}},
		{"the history is shorter", job.Ranges{{From: 0, To: 9}}, []status.Subjob{at(3, 5, 9)}, []status.Output{folder(2, 3)},
			[]status.Output{none(3, 5, 9), none(0, 0, 2), none(0, 3, 5)}},
		{"one is not published, one was given up", job.Ranges{{From: 0, To: 2}}, []status.Subjob{at(1, 0, 2), at(2, 2, 3), at(3, 4, 5)},
			nil, []status.Output{none(1, 0, 2)}},
		{"a folder came after the job was looked at", job.Ranges{{From: 0, To: 2}}, []status.Subjob{at(1, 0, 2)},
			[]status.Output{folder(0, 2), folder(2, 9)}, nil},
		{"the first member of a gang wrote nothing", job.Ranges{{From: 0, To: 1}}, []status.Subjob{at(1, 0, 1)},
			[]status.Output{{Member: 1, Range: job.Range{From: 0, To: 1}, Path: "there"}}, []status.Output{none(1, 0, 1)}},
	} {
		j := status.Job{Published: slices.Clone(c.published), History: c.history}
		if got := unwrittenOf(&j, c.folders); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", c.what, got, c.want)
		}
		if !slices.Equal(j.Published, c.published) {
			t.Errorf("%s: what is published was changed to %v", c.what, j.Published)
		}
	}
}
