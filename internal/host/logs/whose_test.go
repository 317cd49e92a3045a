package logs

import (
	"context"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/status"
)

// files have logs of every subjob whatever job it is said to be of, as those that run have, and the outputs of whoever had the name.
type files struct{ outputs []status.Output }

type text struct{ *strings.Reader }

func (text) Close() error { return nil }

func (files) OpenLogs(job.ID, job.Token) ([]io.ReadSeekCloser, error) {
	return []io.ReadSeekCloser{text{strings.NewReader("said")}, text{strings.NewReader("")}}, nil
}
func (files) LogsSince() time.Time                      { return time.Time{} }
func (f files) Outputs(job.ID) ([]status.Output, error) { return slices.Clone(f.outputs), nil }

// book has one job, of which it shows the last two subjobs at once and two older ones at a time.
type book struct {
	past      []status.Subjob
	published job.Ranges
}

func (b book) Job(context.Context, job.ID) (status.Job, error) {
	dropped := max(0, len(b.past)-2)
	return status.Job{Name: "j", History: b.past[dropped:], HistoryDropped: dropped, Published: b.published}, nil
}

func (b book) Older(_ context.Context, _ job.ID, before int) ([]status.Subjob, error) {
	before = min(before, len(b.past))
	return b.past[max(0, before-2):before], nil
}

// TestLogsAreOfTheJobsOwnSubjobs: what runs lies under its token alone, and whoever may read one job may not read all.
func TestLogsAreOfTheJobsOwnSubjobs(t *testing.T) {
	at := func(seq int) job.Token { return job.Token{Epoch: 1, Seq: uint64(seq)} }
	for n := range 8 {
		var b book
		for i := range n {
			b.past = append(b.past, status.Subjob{Token: at(2*i + 1)})
		}
		r := New(files{}, nil, b, nil, nil)
		for seq := 1; seq <= 2*n+1; seq++ {
			told := ""
			err := r.Logs(t.Context(), "j", at(seq), func(p LogPiece) error { told += string(p.Data); return nil })
			own := seq%2 == 1 && seq < 2*n
			if own && (err != nil || told != "said") || !own && (errkind.Of(err) != errkind.NotFound || told != "") {
				t.Errorf("subjob %d of a job with %d: %q, %v", seq, n, told, err)
			}
		}
	}
}

// TestOutputsOfAnEarlierJob of the name are nobody's, while they lie there.
func TestOutputsOfAnEarlierJob(t *testing.T) {
	there := files{[]status.Output{{Range: job.Range{From: 0, To: 2}, Path: "p"}, {Range: job.Range{From: 2, To: 4}, Path: "q"}}}
	for _, c := range []struct {
		published job.Ranges
		want      []string
	}{{nil, nil}, {job.Ranges{{From: 0, To: 2}}, []string{"p"}}, {job.Ranges{{From: 0, To: 4}}, []string{"p", "q"}}} {
		list, err := New(there, nil, book{published: c.published}, nil, nil).Outputs(t.Context(), "j")
		var got []string
		for i := range list {
			got = append(got, list[i].Path)
		}
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("of what is published, %v, is listed %v, %v", c.published, got, err)
		}
	}
}
