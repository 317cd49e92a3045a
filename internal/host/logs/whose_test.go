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
	"sluice.dev/sluice/internal/core/quantity"
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

// away is another machine that each subjob of an even number was on, whose files can't be had now.
type away struct{}

func (away) Machine(t job.Token) job.NodeID {
	if t.Seq%2 == 0 {
		return "m2"
	}
	return ""
}
func (away) Outputs(context.Context, *status.Job) ([]status.Output, error) { return nil, nil }
func (away) Logs(context.Context, *status.Job, job.Token) (bool, error) {
	return false, errkind.Errorf(errkind.Unavailable, "the store is away")
}

// none has no logs of any subjob.
type none struct{ files }

func (none) OpenLogs(job.ID, job.Token) ([]io.ReadSeekCloser, error) {
	return nil, errkind.Errorf(errkind.NotFound, "nothing is kept")
}

// TestLogsOfASilentSubjob are empty at once, on whichever machine it was, and however old it is, where its result says that there are none.
func TestLogsOfASilentSubjob(t *testing.T) {
	for _, c := range []struct {
		s    status.Subjob
		want errkind.Kind
	}{
		{status.Subjob{Token: job.Token{Epoch: 1, Seq: 1}, Start: 1, End: quantity.Never}, errkind.Unknown},
		{status.Subjob{Token: job.Token{Epoch: 1, Seq: 1}}, errkind.NotFound},
		{status.Subjob{Token: job.Token{Epoch: 1, Seq: 2}, Start: 1, End: quantity.Never}, errkind.Unavailable},
		{status.Subjob{Token: job.Token{Epoch: 1, Seq: 2}, Start: 1, End: quantity.Never, LeftNothing: true}, errkind.Unknown},
	} {
		for older := range 4 {
			b := book{past: append([]status.Subjob{c.s}, make([]status.Subjob, older)...)}
			err := New(none{}, away{}, b, nil, nil).Logs(t.Context(), "j", c.s.Token, func(LogPiece) error {
				t.Error("it has told something")
				return nil
			})
			if errkind.Of(err) != c.want || (err == nil) != (c.want == errkind.Unknown) {
				t.Errorf("%+v, %d older than the last: %v, want %v", c.s, older, err, c.want)
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
