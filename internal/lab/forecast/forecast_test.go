package forecast

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/history"
	histories "sluice.dev/sluice/internal/lab/history/all"
	"sluice.dev/sluice/internal/lab/hostwork"
	"sluice.dev/sluice/internal/lab/measure"
	planners "sluice.dev/sluice/internal/lab/planner/all"
	"sluice.dev/sluice/internal/lab/scenario/play"

	policies "sluice.dev/sluice/internal/core/policy/all"
)

const second = quantity.Instant(time.Second)

func mechanisms() play.Table {
	return play.Table{Policies: policies.Policies(), Policy: policies.ByName, Planners: planners.Kinds()}
}

// TestGapsAreExact: the free time of every device, its lengths and its hours of day are what a walk through all minutes finds.
func TestGapsAreExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const minutes = 3000
		l := &Log{To: minutes * 60 * second}
		free, hourly, closed := 0, [24]int{}, 0
		byLength := make([]int, len(lengths()))
		for d := range rapid.IntRange(1, 3).Draw(t, "devices") {
			dev := Device{Name: fmt.Sprint(d)}
			var busy [minutes]bool
			for at := rapid.IntRange(0, 900).Draw(t, "first"); at < minutes; {
				to := min(minutes, at+rapid.IntRange(1, 900).Draw(t, "long"))
				dev.Busy = append(dev.Busy, Span{From: quantity.Instant(at) * 60 * second, To: quantity.Instant(to) * 60 * second,
					Closed: rapid.Bool().Draw(t, "closed")})
				if dev.Busy[len(dev.Busy)-1].Closed {
					closed++
				}
				for m := at; m < to; m++ {
					busy[m] = true
				}
				at = to + rapid.IntRange(0, 900).Draw(t, "gap")
			}
			run := 0
			for m := range minutes + 1 {
				if m < minutes && !busy[m] {
					free, run = free+1, run+1
					hourly[m/60%24]++
					continue
				}
				if run > 0 {
					byLength[slices.IndexFunc(lengths(), func(x Length) bool {
						return x.Under == 0 || time.Duration(run)*time.Minute < x.Under
					})] += run
				}
				run = 0
			}
			l.Devices = append(l.Devices, dev)
		}
		g := l.Gaps()
		if got := g.total; got != time.Duration(free)*time.Minute {
			t.Fatalf("%v are free; a walk finds %d minutes", got, free)
		}
		for i, x := range g.Lengths {
			if x.time != time.Duration(byLength[i])*time.Minute {
				t.Fatalf("%s: %v; a walk finds %d minutes", x.Label, x.time, byLength[i])
			}
		}
		for i, x := range g.Hours {
			if x.time != time.Duration(hourly[i])*time.Minute {
				t.Fatalf("%s: %v; a walk finds %d minutes", x.Name, x.time, hourly[i])
			}
		}
	})
}

// TestARunIsBooked: by hours and devices, without what lies outside, and with how long the host waited for it.
func TestARunIsBooked(t *testing.T) {
	hour := quantity.Instant(time.Hour)
	host := hostwork.Log{{{From: 4 * hour, To: 5 * hour}}}
	l := newLedger(host, time.Minute, hour, 25*hour)
	l.Ended(0, &measure.Piece{Start: 0, End: 4*hour - 30*second, Useful: 2 * time.Hour, Overhead: time.Hour})
	whole := 4*time.Hour - 30*time.Second
	part := func(held time.Duration) time.Duration {
		return time.Duration(quantity.MulDiv(int64(2*time.Hour), int64(held), int64(whole)))
	}
	if l.byHour[0] != part(time.Hour) || l.byHour[2] != part(time.Hour-30*time.Second) || l.byHour[3] != 0 {
		t.Errorf("by hours %v", l.byHour[:4])
	}
	if l.byDevice[0] != part(3*time.Hour-30*time.Second) || l.useful != l.byDevice[0] {
		t.Errorf("useful %v, on the device %v", l.useful, l.byDevice[0])
	}
	if l.met != 1 || l.waited != 30*time.Second || l.longest != 30*time.Second {
		t.Errorf("%d starts waited for %v, at most %v", l.met, l.waited, l.longest)
	}
	// Two more within the same notice: one start waits, for the last of them, in whatever order they are told.
	l.Ended(0, &measure.Piece{Start: 4*hour - 20*second, End: 4*hour - 10*second})
	l.Ended(0, &measure.Piece{Start: 4*hour - 30*second, End: 4*hour - 20*second})
	if l.met != 1 || l.waited != 50*time.Second || l.longest != 50*time.Second {
		t.Errorf("with two more within its notice %d starts waited for %v, at most %v", l.met, l.waited, l.longest)
	}
	l.Ended(0, &measure.Piece{Start: 5 * hour, End: 6 * hour, Useful: time.Hour})
	if l.met != 1 || l.useful != l.byDevice[0] || l.lost < 0 {
		t.Errorf("%d starts waited, %v useful, %v lost", l.met, l.useful, l.lost)
	}
}

// TestAnIntervalIsOfWeeks: of stretches that are all alike it is a point; of stretches that differ it holds about four of five weeks, also
// where there are few; of too few there is none.
func TestAnIntervalIsOfWeeks(t *testing.T) {
	same := [][]day{{{3, 4}, {3, 4}, {3, 4}}, {{3, 4}, {3, 4}}, {{3, 4}}}
	if i := interval(same, 1); !i.Known || i.Value != .75 || i.Low != .75 || i.High != .75 {
		t.Errorf("%+v", i)
	}
	if i := interval(same[1:], 1); i.Known || i.Value != .75 || i.Low != .75 {
		t.Errorf("of two stretches: %+v", i)
	}
	r := rand.New(rand.NewPCG(1, 2))
	draw := func(n int) (out [][]day) {
		for range n {
			share := r.NormFloat64()
			out = append(out, []day{{share, 1}, {share, 1}, {share, 1}})
		}
		return out
	}
	for _, n := range []int{5, 8} {
		inside := 0
		for range 600 {
			i, week := interval(draw(n), 1), interval(draw(2), 1).Value
			if i.Low <= week && week <= i.High {
				inside++
			}
		}
		if math.Abs(float64(inside)/600-.8) > .07 {
			t.Errorf("%d of 600 weeks lie in their interval of 80%% from %d stretches", inside, n)
		}
	}
}

// made is a log of jobs: four GPUs whose jobs come every so often and hold two of them for long.
func made(days int, every, long time.Duration) (lines []string) {
	r := rand.New(rand.NewPCG(3, 4))
	for at, n := 0, 1; at < days*86400; n++ {
		wait := r.IntN(20)
		lines = append(lines, fmt.Sprintf("%d %d %d %d 2 -1 -1 2 7200 -1 1 1 1 -1 1 1 -1 -1", n, at, wait, int(long.Seconds())/2+
			r.IntN(int(long.Seconds()))))
		at += int(every.Seconds())/2 + r.IntN(int(every.Seconds()))
	}
	return lines
}

// logged is the log of rows in the Standard Workload Format, in several files, on four GPUs.
func logged(t *testing.T, files ...[]string) *Log {
	t.Helper()
	var paths []string
	for i, lines := range files {
		paths = append(paths, filepath.Join(t.TempDir(), fmt.Sprintf("log%d.swf", i)))
		if err := os.WriteFile(paths[i], []byte("; MaxProcs: 4\n"+strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	h, err := histories.Read(history.Options{}, paths...)
	if err != nil {
		t.Fatal(err)
	}
	return Recorded(h)
}

func told(t *testing.T, o Options, zone *time.Location, files ...[]string) *Answer {
	t.Helper()
	l := logged(t, files...)
	l.Zone, o.Table = zone, mechanisms()
	a, err := Forecast(t.Context(), l, o)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestTheOrderOfRowsIsNothing: the same rows in another order, in two files, with any number of workers give the same answer to the last
// digit; in another zone all but the hours of day is the same.
func TestTheOrderOfRowsIsNothing(t *testing.T) {
	lines := made(2, 40*time.Minute, 40*time.Minute)
	text := func(a *Answer) string {
		b, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	o := Options{Notice: Notice, Quick: true, Seed: 1, Workers: 2, Backlogs: Stated()[1:2]}
	want := told(t, o, nil, lines)
	mixed := slices.Clone(lines)
	rand.New(rand.NewPCG(5, 6)).Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
	o.Workers = 1
	for name, got := range map[string]*Answer{"shuffled": told(t, o, nil, mixed), "split": told(t, o, nil, mixed[20:], mixed[:20])} {
		if text(got) != text(want) {
			t.Errorf("%s: %s\nwant %s", name, text(got), text(want))
		}
	}
	east := told(t, o, time.FixedZone("", 3*3600), lines)
	if got := east.Gaps.Hours[3].GPUHours; got != want.Gaps.Hours[0].GPUHours {
		t.Errorf("%g GPU-hours at 3, and %g three hours west at 0", got, want.Gaps.Hours[0].GPUHours)
	}
	east.Gaps.Hours, want.Gaps.Hours = nil, nil
	if text(east) != text(want) {
		t.Errorf("in another zone: %s\nwant %s", text(east), text(want))
	}
}

// TestTheAnswerFollows from its own figures: beside gaps of minutes that nobody announces it pays to choose what runs in which, and it says
// install; beside long ones everybody keeps nearly all, and it says don't.
func TestTheAnswerFollows(t *testing.T) {
	for name, lines := range map[string][]string{"short gaps": made(4, 12*time.Minute, 8*time.Minute),
		"long gaps": made(4, 9*time.Hour, 3*time.Hour)} {
		a := told(t, Options{Seed: 1, Workers: 2, Quick: true}, nil, lines)
		gain := math.Inf(-1)
		for _, o := range a.Outcomes {
			gain = max(gain, o.Gain.Value)
			best := map[bool]float64{}
			for _, r := range o.Mechanisms {
				if r.Kept.Value < 0 || r.Kept.Value > 1 || r.Kept.Value+r.Lost+r.Overhead > 1.001 {
					t.Errorf("%s, %s: %+v", name, o.Name, r)
				}
				best[r.Own] = max(best[r.Own], r.Kept.Value)
			}
			if d := best[true] - best[false]; math.Abs(d-o.Gain.Value) > 1e-9 {
				t.Errorf("%s, %s: the gain is %g, the best differ by %g", name, o.Name, o.Gain.Value, d)
			}
		}
		if a.Install != (name == "short gaps") || a.Install != (gain >= Threshold) || strings.HasPrefix(a.Says, "Don't") == a.Install {
			t.Errorf("%s: the gain is %g, and it says: %s", name, gain, a.Says)
		}
	}
}

// TestWhatCantBeForecast says what is wrong and what to do.
func TestWhatCantBeForecast(t *testing.T) {
	l := logged(t, []string{"1 0 0 60 2 -1 -1 2 60 -1 1 1 1 -1 1 1 -1 -1", "2 600 0 60 2 -1 -1 2 60 -1 1 1 1 -1 1 1 -1 -1"})
	if _, err := Forecast(t.Context(), l, Options{Table: mechanisms()}); err == nil || !strings.Contains(err.Error(), "less than a day") {
		t.Error(err)
	}
	for text, says := range map[string]string{
		"- {at: 0s, name: a, rigid: {walltime: 5m}, memory: 1Gi}": "write items: {total: 1, perItem: 5m0s}",
		"- {at: 0s, name: a, items: {total: 5}}":                  "perItem",
	} {
		if _, err := Own("mine.yml", text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v; want %q", text, err, says)
		}
	}
	const good = "- {at: 0s, name: a, count: 2, items: {total: 5, perItem: 1s}, memory: 1Gi}\n"
	if b, err := Own("mine.yml", good); err != nil || b.Name != "yours" {
		t.Error(b, err)
	}
}

// TestALogWithoutPlaces: its devices are in no partition, since which job held which is an assumption, and what holds one at the log's end
// goes on behind it.
func TestALogWithoutPlaces(t *testing.T) {
	const hour = quantity.Instant(time.Hour)
	l := logged(t, []string{"1 0 0 3600 1 -1 -1 1 60 -1 1 1 1 -1 7 1 -1 -1", "2 3600 0 7200 1 -1 -1 1 60 -1 1 1 1 -1 7 1 -1 -1"})
	if l.From != 0 || l.To != hour || len(l.Devices) != 4 {
		t.Errorf("%+v", l)
	}
	want := Device{Name: "machine/processor/00000", Kind: "processor", Busy: []Span{{To: hour}, {From: hour, To: 3 * hour, Asked: hour}}}
	if got := l.Devices[0]; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	says := "The log names no devices: each job is taken to hold the lowest numbered ones that are free, of 4 devices, as the log's head says."
	if !slices.Contains(l.Said, says) || l.Said[0] != "The record: 2 runs on 4 GPUs over 0 whole days." {
		t.Errorf("%q", l.Said)
	}
}
