package measure_test

import (
	"reflect"
	"testing"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/lab/measure"
)

// story is two jobs of two queues on one slice, one after the other; the second runs twice.
func story(o measure.Observer) {
	o.Arrived(0, 0, plain(7, "a", 20))
	o.Began(0, 0, 0, 1)
	o.Arrived(sec(3), 1, plain(8, "b", 20))
	o.Ended(sec(10), piece(0, 0, 10))
	o.Done(sec(10), 0, job.Finished)
	o.Began(sec(10), 1, 0, 1)
	o.Ended(sec(15), piece(1, 10, 15))
	o.Began(sec(18), 1, 0, 1)
	o.Ended(sec(30), piece(1, 18, 30))
	o.Done(sec(30), 1, job.Finished)
	o.Sent(3)
}

func TestRecorder(t *testing.T) {
	classes := []measure.Class{{Name: "gpu", Count: 1, Weight: 1000}}
	r := measure.NewRecorder(classes, 100)
	story(r)
	want := measure.Recording{
		Classes: classes, Queues: []string{"a", "b"},
		Spans: []measure.Span{
			{Job: 7, Queue: 0, Piece: *piece(0, 0, 10)}, {Job: 8, Queue: 1, Piece: *piece(1, 10, 15)},
			{Job: 8, Queue: 1, Piece: *piece(1, 18, 30)},
		},
		// What changes several times in an instant is kept once.
		Depths: []measure.Depth{
			{At: 0, Queue: 0, Jobs: 0}, {At: sec(3), Queue: 1, Jobs: 1}, {At: sec(10), Queue: 0, Jobs: 0}, {At: sec(10), Queue: 1, Jobs: 0},
			{At: sec(15), Queue: 1, Jobs: 1}, {At: sec(18), Queue: 1, Jobs: 0}, {At: sec(30), Queue: 1, Jobs: 0},
		},
	}
	if got := *r.Recording(); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestRecorderCountsWhatItDrops(t *testing.T) {
	r := measure.NewRecorder(nil, 2)
	story(r)
	if got := r.Recording(); len(got.Spans) != 2 || got.DroppedSpans != 1 || len(got.Depths) != 2 || got.DroppedDepths < 5 {
		t.Errorf("kept %d and %d, dropped %d and %d", len(got.Spans), len(got.Depths), got.DroppedSpans, got.DroppedDepths)
	}
}

func TestObserversHearTheSame(t *testing.T) {
	classes := []measure.Class{{Count: 1, Weight: 1000, Memory: gb}}
	a, b := collector(t, classes, measure.Window{}), collector(t, classes, measure.Window{})
	r := measure.NewRecorder(classes, 100)
	story(measure.Observers{a, r, b})
	x, y := a.Finish(sec(30)), b.Finish(sec(30))
	if !same(measure.Run{Metrics: x}, measure.Run{Metrics: y}) || x.Get(measure.MessagesPerTask) != 1.5 || len(r.Recording().Spans) != 3 {
		t.Errorf("one measured %v, the other %v, %d spans kept", x, y, len(r.Recording().Spans))
	}
}
