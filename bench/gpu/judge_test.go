package main

import (
	"math"
	"testing"
	"time"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
)

func TestPlausible(t *testing.T) {
	const size = 4 << 30
	for _, c := range []struct {
		peak, most int64
		ok         bool
	}{
		{size, size, true}, {size + 1<<30, size + 1<<30, true}, {0, size, false}, {size - 1, size, false}, {size, size - 1, false},
		{size + 3<<30, size, false}, {size, size + 3<<30, false},
	} {
		if err := plausible(size, c.peak, c.most); (err == nil) != c.ok {
			t.Errorf("a peak of %s, %s more in use: %v", mebibytes(c.peak), mebibytes(c.most), err)
		}
	}
}

func processes(n int) *int { return &n }

// seen is a witness of looks 10 ms apart from the first second on: busy for so many of them, then idle.
func seen(busy, idle int) *witness {
	w := &witness{idle: 100 << 20}
	for i := range busy + idle {
		at := 1 + float64(i)/100
		l := look{Before: at, After: at + 0.001, Used: w.idle, Processes: processes(0)}
		if i < busy {
			l.Used, l.Processes = w.idle+1<<30, processes(1)
		}
		w.looks = append(w.looks, l)
	}
	return w
}

func TestJudgeEmpty(t *testing.T) {
	killed := &pb.Job{History: []*pb.Subjob{{Outcome: pb.Subjob_DEADLINE}}}
	nobody := look{Used: 100 << 20, Processes: processes(0)}
	for _, c := range []struct {
		what       string
		busy, idle int
		started    float64
		own        look
		ok         bool
	}{
		{"gone before", 10, 10, 1.15, nobody, true},
		{"gone within one look", 10, 10, 1.095, nobody, true},
		{"still there", 10, 10, 1.05, nobody, false},
		{"its memory still there", 10, 10, 1.15, look{Used: 1 << 30, Processes: processes(0)}, false},
		{"its process still there", 10, 10, 1.15, look{Used: 100 << 20, Processes: processes(1)}, false},
		{"a driver that lists nobody", 10, 10, 1.15, look{Used: 100 << 20}, true},
		{"never full", 0, 10, 1.15, nobody, false},
		{"never empty", 10, 0, 1.15, nobody, false},
	} {
		_, err := judgeEmpty(seen(c.busy, c.idle), time.Unix(0, 0), killed, moment(c.started), c.own)
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", c.what, err)
		}
	}
}

func TestShare(t *testing.T) {
	w := seen(30, 71)
	if got := share(w.after(time.Unix(0, 0)), func(l look) bool { return !w.empty(l) }); math.Abs(got-0.3) > 0.001 {
		t.Errorf("busy for %.3f of the time, want 0.3", got)
	}
	if got := share(nil, w.empty); got != 0 {
		t.Errorf("a share of nothing is %v", got)
	}
	if n := len(w.between(moment(1.095), moment(1.205))); n != 11 {
		t.Errorf("%d looks between, want 11", n)
	}
}

func TestWhatThePowerIsOf(t *testing.T) {
	w := seen(2, 2)
	if _, err := power(t.Context(), &world{shared: &shared{eye: w}}); err != nil {
		t.Errorf("a driver that does not say its power is no failure: %v", err)
	}
	watts := 300.0
	w.looks[1].Power = &watts
	figures, err := power(t.Context(), &world{shared: &shared{eye: w, spans: map[string][]span{"training": {{moment(1), moment(1.02)}}}}})
	if err != nil || len(figures) != 2 || figures[1].Value != "300 W in the mean, 300 W at most" {
		t.Errorf("%+v, %v", figures, err)
	}
	if _, err := power(t.Context(), &world{shared: &shared{eye: &witness{}}}); err == nil {
		t.Error("a witness that saw nothing is one")
	}
}

func TestSteps(t *testing.T) {
	for _, c := range []struct {
		step  time.Duration
		total int64
	}{{10 * time.Millisecond, 1500}, {time.Second, 100}, {time.Microsecond, 100_000}} {
		if total, every := (stepping{c.step}).steps(15 * time.Second); total != c.total || total != 20*every {
			t.Errorf("steps of %v: %d, a checkpoint each %d; want %d", c.step, total, every, c.total)
		}
	}
}
