package forecast

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
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
		free, starts := 0.0, int64(0)
		var hourly [24]float64
		byLength := make([]float64, len(lengths()))
		for d := range rapid.IntRange(1, 3).Draw(t, "devices") {
			weight := rapid.SampledFrom([]int64{0, 1000, 500, 250}).Draw(t, "weight")
			dev, of := Device{Name: fmt.Sprint(d), Weight: weight}, float64(cmp.Or(weight, 1000))/1000
			var busy [minutes]bool
			for at := rapid.IntRange(0, 900).Draw(t, "first"); at < minutes; {
				to := min(minutes, at+rapid.IntRange(1, 900).Draw(t, "long"))
				dev.Busy = append(dev.Busy, Span{From: quantity.Instant(at) * 60 * second, To: quantity.Instant(to) * 60 * second,
					Why: Why(rapid.IntRange(0, 2).Draw(t, "why"))})
				if dev.Busy[len(dev.Busy)-1].Why == Job {
					starts++
				}
				for m := at; m < to; m++ {
					busy[m] = true
				}
				at = to + rapid.IntRange(0, 900).Draw(t, "gap")
			}
			run := 0
			for m := range minutes + 1 {
				if m < minutes && !busy[m] {
					free, run = free+of, run+1
					hourly[m/60%24] += of
					continue
				}
				if run > 0 {
					byLength[slices.IndexFunc(lengths(), func(x Length) bool {
						return x.Under == 0 || time.Duration(run)*time.Minute < x.Under
					})] += float64(run) * of
				}
				run = 0
			}
			l.Devices = append(l.Devices, dev)
		}
		g := l.Gaps()
		if float64(g.total) != 60*free || g.Starts != starts {
			t.Fatalf("%v s are free, %d starts; a walk finds %v minutes and %d", g.total, g.Starts, free, starts)
		}
		for i, x := range g.Lengths {
			if float64(x.time) != 60*byLength[i] {
				t.Fatalf("%s: %v s; a walk finds %v minutes", x.Label, x.time, byLength[i])
			}
		}
		for i, x := range g.Hours {
			if float64(x.time) != 60*hourly[i] {
				t.Fatalf("%s: %v s; a walk finds %v minutes", x.Name, x.time, hourly[i])
			}
		}
	})
}

// TestPartsOfALog: the parts of a log have the gaps and starts of the whole, and what held a device across the cut is no start.
func TestPartsOfALog(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		days := rapid.IntRange(2, 9).Draw(t, "days")
		l := &Log{To: quantity.Instant(time.Duration(days) * Day)}
		for d := range rapid.IntRange(1, 3).Draw(t, "devices") {
			dev := Device{Name: fmt.Sprint(d)}
			for at := quantity.Instant(0); at < l.To; {
				from := at.Add(time.Duration(rapid.Int64Range(0, int64(2*Day)).Draw(t, "gap")))
				at = from.Add(time.Duration(rapid.Int64Range(1, int64(3*Day)).Draw(t, "long")))
				dev.Busy = append(dev.Busy, Span{From: from, To: at})
			}
			l.Devices = append(l.Devices, dev)
		}
		cut := rapid.IntRange(1, days-1).Draw(t, "cut")
		all, first, rest := l.Gaps(), l.Between(0, cut).Gaps(), l.Between(cut, days).Gaps()
		if all.Starts != first.Starts+rest.Starts || math.Abs(all.GPUHours-first.GPUHours-rest.GPUHours) > 1e-6 {
			t.Fatalf("%d starts in %v h, and in parts %d and %d in %v and %v", all.Starts, all.GPUHours, first.Starts, rest.Starts,
				first.GPUHours, rest.GPUHours)
		}
		if last := l.last(days - cut); last.From != l.Between(cut, days).From || last.To != l.To || len(last.Said) != 1 {
			t.Fatalf("%+v", last)
		}
		if l.last(days) != l {
			t.Fatal("a log that is short enough was cut")
		}
	})
}

// TestManyGPUsForLong: a sum of times on devices may be longer than any Duration.
func TestManyGPUsForLong(t *testing.T) {
	l := &Log{To: quantity.Instant(1000 * Day), Devices: make([]Device, 10_000)}
	if g := l.Gaps(); g.GPUHours != 24*1000*10_000 || g.Idle != 1 || g.Hours[7].GPUHours != 1000*10_000 ||
		g.Lengths[5].GPUHours != g.GPUHours {
		t.Errorf("%v GPU-hours, %v idle, %v of them at 7, %v in gaps of over a day", g.GPUHours, g.Idle, g.Hours[7].GPUHours,
			g.Lengths[5].GPUHours)
	}
}

// TestARunIsBooked: by hours and devices, without what lies outside, and with how long the host waited for it.
func TestARunIsBooked(t *testing.T) {
	hour := quantity.Instant(time.Hour)
	host := hostwork.Log{{{From: 4 * hour, To: 5 * hour}}}
	l := newLedger(host, []int64{wholeGPU}, time.Minute, hour, 25*hour)
	l.Ended(0, &measure.Piece{Start: 0, End: 4*hour - 30*second, Useful: 2 * time.Hour, Overhead: time.Hour})
	whole := 4*time.Hour - 30*time.Second
	part := func(held time.Duration) time.Duration {
		return time.Duration(quantity.MulDiv(int64(2*time.Hour), int64(held), int64(whole)))
	}
	if l.ByHour[0] != part(time.Hour) || l.ByHour[2] != part(time.Hour-30*time.Second) || l.ByHour[3] != 0 {
		t.Errorf("by hours %v", l.ByHour[:4])
	}
	if l.ByDevice[0] != part(3*time.Hour-30*time.Second) || l.Useful != l.ByDevice[0] {
		t.Errorf("useful %v, on the device %v", l.Useful, l.ByDevice[0])
	}
	if l.Met != 1 || l.Waited != 30*time.Second || l.Longest != 30*time.Second {
		t.Errorf("%d starts waited for %v, at most %v", l.Met, l.Waited, l.Longest)
	}
	// Two more within the same notice: one start waits, for the last of them, in whatever order they are told.
	l.Ended(0, &measure.Piece{Start: 4*hour - 20*second, End: 4*hour - 10*second})
	l.Ended(0, &measure.Piece{Start: 4*hour - 30*second, End: 4*hour - 20*second})
	if l.Met != 1 || l.Waited != 50*time.Second || l.Longest != 50*time.Second {
		t.Errorf("with two more within its notice %d starts waited for %v, at most %v", l.Met, l.Waited, l.Longest)
	}
	l.Ended(0, &measure.Piece{Start: 5 * hour, End: 6 * hour, Useful: time.Hour})
	if l.Met != 1 || l.Useful != l.ByDevice[0] || l.Lost < 0 {
		t.Errorf("%d starts waited, %v useful, %v lost", l.Met, l.Useful, l.Lost)
	}
}

// TestASliceIsBookedByItsWeight, and who closes a device is no user who waits.
func TestASliceIsBookedByItsWeight(t *testing.T) {
	hour := quantity.Instant(time.Hour)
	host := hostwork.Log{{{From: 4 * hour, To: 5 * hour, Source: closed}}}
	l := newLedger(host, []int64{250}, time.Minute, hour, 25*hour)
	l.Ended(0, &measure.Piece{Start: 2 * hour, End: 4 * hour, Useful: time.Hour, Overhead: 30 * time.Minute})
	if l.Useful != 15*time.Minute || l.ByDevice[0] != l.Useful || l.ByHour[1]+l.ByHour[2] != l.Useful {
		t.Errorf("%v useful, on the device %v, by hours %v", l.Useful, l.ByDevice[0], l.ByHour[:4])
	}
	if l.Overhead != 7*time.Minute+30*time.Second || l.Lost != l.Overhead {
		t.Errorf("%v on starting and saving, %v lost", l.Overhead, l.Lost)
	}
	if l.Met != 0 || l.Waited != 0 {
		t.Errorf("%d starts waited for %v", l.Met, l.Waited)
	}
}

// TestAnIntervalIsOfWeeks: of stretches that are all alike it is a point; of stretches that differ it holds about four of five weeks, also
// where there are few; of too few there is none.
func TestAnIntervalIsOfWeeks(t *testing.T) {
	same := [][]day{{{3, 4}, {6, 8}}, {{3, 4}, {3, 4}}, {{0, 0}, {3, 4}}}
	if i := interval(same, 1); !i.Known || i.Value != .75 || i.Low != .75 || i.High != .75 {
		t.Errorf("%+v", i)
	}
	if i := interval(same[1:], 1); i.Known || i.Value != .75 || i.Low != .75 {
		t.Errorf("of two stretches: %+v", i)
	}
	r := rand.New(rand.NewPCG(1, 2))
	draw := func(n, days int) (out [][]day) {
		for range n {
			share := r.NormFloat64()
			out = append(out, slices.Repeat([]day{{share, 1}}, days))
		}
		return out
	}
	for _, c := range []struct{ stretches, days, week int }{{5, 3, 2}, {8, 3, 2}, {8, 2, 3}, {8, 1, 7}} {
		inside := 0
		for range 600 {
			i, week := interval(draw(c.stretches, c.days), 1), interval(draw(c.week, c.days), 1).Value
			if i.Low <= week && week <= i.High {
				inside++
			}
		}
		if math.Abs(float64(inside)/600-.8) > .07 {
			t.Errorf("%d of 600 weeks lie in their interval of 80%% from %d stretches of %d days", inside, c.stretches, c.days)
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
	o := Options{Notice: Notice, Quick: true, Seed: 1, Workers: 2, Backlogs: Stated(StatedMemory)[1:2]}
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
		"- {at: 0s, name: a, rigid: {walltime: 5m}, memory: 1Gi}":               "write items: {total: 1, perItem: 5m0s}",
		"- {at: 0s, name: a, items: {total: 5}, memory: 1Gi}":                   "needs its true time",
		"- {at: 0s, name: a, items: {total: 5}, memory: 1Gi, true: {time: 5m}}": "write perItem or perStep",
		"[]": "it holds no job",
		"# mine\n- {at: 0s, name: a, bananas: 1}":                                      "line 2, column 21",
		"- {at: 0s, name: a, items: {total: 5, perItem: 1s}, memory: 1Gi}\n- {at: 0s}": "line 2",
	} {
		if _, err := Own("mine.yml", text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v; want %q", text, err, says)
		}
	}
	own := func(text string) []Backlog {
		b, err := Own("mine.yml", text)
		if err != nil {
			t.Fatal(err)
		}
		return []Backlog{b}
	}
	l = &Log{To: quantity.Instant(9 * Day), Devices: []Device{{Name: "a", Memory: 5 << 30}, {Name: "b", Memory: 10 << 30}}}
	for text, says := range map[string]string{
		"- {at: 0s, name: wide, items: {total: 5, perItem: 1h}, memory: 20Gi}": "job wide needs 20Gi, and no device has more than 10Gi",
		"- {at: 0s, name: tiny, items: {total: 1, perItem: 1s}, memory: 1Gi}":  "are so short that more than 100000 of them",
	} {
		_, err := Forecast(t.Context(), l, Options{Table: mechanisms(), Backlogs: own(text), Quick: true})
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v; want %q", text, err, says)
		}
	}
	const good = "- {at: 0s, name: a, count: 2, items: {total: 5, perItem: 1s}, memory: 1Gi}\n"
	if b, err := Own("mine.yml", good); err != nil || b.Name != "yours" {
		t.Error(b, err)
	}
}

// TestShortJobsArePlayedOnLess: what is played gets smaller with the jobs until few enough fill it, and no smaller than it must; a run on
// it is filled by as many as were counted.
func TestShortJobsArePlayedOnLess(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		devices := rapid.IntRange(1, 24).Draw(t, "devices")
		mean := time.Duration(rapid.Int64Range(1, 4*3600).Draw(t, "mean")) * time.Second
		s := fitting(devices, mean, manyJobs)
		switch {
		case s.jobs(mean) > manyJobs:
			if s.days != 1 || s.devices != min(devices, fewestDevices) {
				t.Fatalf("%v: %d jobs of %s, and it could be smaller", s, s.jobs(mean), mean)
			}
		case s.days < stretchDays && (size{s.days + 1, devices}).jobs(mean) <= manyJobs,
			s.devices < devices && (s.days != 1 || (size{1, s.devices + 1}).jobs(mean) <= manyJobs):
			t.Fatalf("%v could be larger: jobs of %s", s, mean)
		}
	})
	for mean, want := range map[time.Duration]size{
		10 * time.Second: {1, fewestDevices}, time.Minute: {1, 10}, 2 * time.Minute: {1, 16}, 4 * time.Minute: {2, 16}, time.Hour: {3, 16},
	} {
		if got := fitting(16, mean, manyJobs); got != want {
			t.Errorf("%s: %v, want %v", mean, got, want)
		}
	}
	s := size{1, 3}
	empty := (&Log{To: quantity.Instant(2 * Day), Devices: make([]Device, 3)}).host([]int{0, 1, 2}, 0, quantity.Instant(Day)+lead, 0, false)
	own, err := Own("mine.yml", "- {at: 0s, name: a, items: {total: 1, perItem: 1m}, memory: 1Gi}")
	if err != nil {
		t.Fatal(err)
	}
	protos, err := own.protos()
	if err != nil {
		t.Fatal(err)
	}
	jobs, err := fill(protos, empty, quantity.Instant(Day)+lead+tail)
	if most := s.jobs(time.Minute); err != nil || int64(len(jobs)) > most || int64(len(jobs)) < most*9/10 {
		t.Errorf("%d jobs, counted as %d; %v", len(jobs), most, err)
	}
}

// TestSmallSlices: the jobs that are stated have room on the smallest slice, and a job that needs more runs where it fits alone.
func TestSmallSlices(t *testing.T) {
	l := &Log{To: quantity.Instant(9 * Day), Devices: []Device{{Name: "a", Kind: "small", Memory: 5 << 30, Weight: 142},
		{Name: "b", Kind: "large", Memory: 40 << 30}}}
	kept := func(o Options) (small, large float64) {
		o.Table, o.Quick, o.Seed = mechanisms(), true, 1
		a, err := Forecast(t.Context(), l, o)
		if err != nil {
			t.Fatal(err)
		}
		if a.Gaps.Kinds[0].Name != "large" || math.Abs(a.Gaps.GPUs-1.142) > 1e-9 {
			t.Fatalf("%+v", a.Gaps)
		}
		return a.Gaps.Kinds[1].Kept, a.Gaps.Kinds[0].Kept
	}
	if small, large := kept(Options{Notice: Notice}); small < .9 || large < .9 {
		t.Errorf("of the small slice %g are kept, of the large one %g", small, large)
	}
	b, err := Own("mine.yml", "- {at: 0s, name: wide, items: {total: 1000, perItem: 10s}, memory: 20Gi}")
	if err != nil {
		t.Fatal(err)
	}
	if small, large := kept(Options{Notice: Notice, Backlogs: []Backlog{b}}); small != 0 || large < .9 {
		t.Errorf("of the small slice %g are kept, of the large one %g", small, large)
	}
}

// TestWhatIsKnownBefore: a reservation is announced half a day ahead; that a node goes down or is drained nobody is told before.
func TestWhatIsKnownBefore(t *testing.T) {
	const hour = quantity.Instant(time.Hour)
	h := &history.History{To: 48 * hour, Kinds: []history.Kind{{Name: "gpu", Weight: wholeGPU}}, Devices: []history.Device{{}},
		Held: [][]history.Hold{{{From: 20 * hour, To: 21 * hour}}}, Runs: []history.Run{{Eligible: 19 * hour}},
		Nodes: []history.Node{{Name: "n", Count: 1, Away: []history.Away{
			{From: 2 * hour, To: 3 * hour, Why: history.Down}, {From: 18 * hour, To: 22 * hour, Why: history.Reserved},
			{From: 30 * hour, To: 33 * hour, Why: history.Drained}, {From: 31 * hour, To: 35 * hour, Why: history.Reserved},
			{From: 40 * hour, To: 41 * hour, Why: history.Reserved}}}},
		Names: []string{""}}
	l := Recorded(h)
	want := []Span{{2 * hour, 3 * hour, 2 * hour, Away}, {18 * hour, 20 * hour, 18 * hour, Reserved},
		{20 * hour, 21 * hour, 19 * hour, Job},
		{21 * hour, 22 * hour, 21 * hour, Reserved}, {30 * hour, 35 * hour, 30 * hour, Away}, {40 * hour, 41 * hour, 40 * hour, Reserved}}
	if got := l.Devices[0].Busy; !slices.Equal(got, want) {
		t.Fatalf("%v, want %v", got, want)
	}
	var told []quantity.Instant
	for _, s := range l.host([]int{0}, 0, l.To, time.Minute, false)[0] {
		told = append(told, s.From-s.Words[0].At)
	}
	notice := quantity.Instant(time.Minute)
	if want := []quantity.Instant{notice, 12 * hour, notice, 12 * hour, notice, 12 * hour, notice}; !slices.Equal(told, want) {
		t.Errorf("told %v before, want %v", told, want)
	}
}

// TestWhenAStayIsToldOf: a job's stay is told of a notice before it, or when its job was asked for where plans are foretold. A
// reservation's is told of half a day before it, or sooner by the same rules; and what is told of before the run begins is told of as it
// begins.
func TestWhenAStayIsToldOf(t *testing.T) {
	const hour, begins = quantity.Instant(time.Hour), 100 * quantity.Instant(time.Hour)
	for _, c := range []struct {
		why         Why
		from, asked quantity.Instant // behind the run's begin
		notice      time.Duration
		foretold    bool
		at          quantity.Instant
	}{
		{Job, 20 * hour, 5 * hour, time.Hour, false, 19 * hour},
		{Job, 20 * hour, 5 * hour, time.Hour, true, 5 * hour},
		{Job, 20 * hour, 20 * hour, time.Hour, true, 19 * hour},
		{Job, 20 * hour, -hour, time.Hour, true, 0},
		{Job, hour, hour, 2 * time.Hour, false, 0},
		{Away, 20 * hour, 20 * hour, time.Hour, false, 19 * hour},
		{Used, 20 * hour, 20 * hour, time.Hour, true, 19 * hour},
		{Reserved, 20 * hour, 20 * hour, time.Hour, false, 8 * hour},
		{Reserved, 20 * hour, 20 * hour, time.Hour, true, 8 * hour},
		{Reserved, 20 * hour, 5 * hour, time.Hour, false, 8 * hour},
		{Reserved, 20 * hour, 5 * hour, time.Hour, true, 5 * hour},
		{Reserved, 20 * hour, 20 * hour, 15 * time.Hour, false, 5 * hour},
		{Reserved, 10 * hour, 10 * hour, time.Hour, false, 0},
		{Reserved, -hour, -hour, time.Hour, false, 0}, // and is taken behind the notice, as the run can't begin within it
	} {
		l := &Log{To: begins + 40*hour, Devices: []Device{{Partition: "p", Busy: []Span{{begins + c.from, begins + c.from + 4*hour,
			begins + c.asked, c.why}}}}}
		stays := l.host([]int{0}, begins, 40*hour, c.notice, c.foretold)[0]
		from, source := max(c.from, quantity.Instant(c.notice)), closed
		if c.why == Job {
			source = "p/job"
		}
		want := hostwork.Stay{From: from, To: c.from + 4*hour, Source: source,
			Words: []hostwork.Word{{At: c.at, From: from, To: quantity.Never}}}
		if len(stays) != 2 || !reflect.DeepEqual(stays[0], want) {
			t.Errorf("%+v: %+v, want %+v", c, stays, want)
		}
	}
}

// TestOddRowsAreShownWithTheirPlaces, unless strangers are to see the answer.
func TestOddRowsAreShownWithTheirPlaces(t *testing.T) {
	l := &Log{To: quantity.Instant(9 * Day), Devices: []Device{{Partition: "secret"}},
		Odd: []Odd{{Says: "a row of nothing", Count: 5, Done: "left out", Places: []string{"a.txt:7", "job 12"}}}}
	a, err := Forecast(t.Context(), l, Options{Table: mechanisms(), Notice: Notice, Quick: true, Backlogs: Stated(StatedMemory)[:1]})
	if err != nil {
		t.Fatal(err)
	}
	text := func() string {
		var b strings.Builder
		if err := a.Text(&b); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	if says := "A row of nothing (5 times, at a.txt:7, job 12): left out."; !strings.Contains(text(), says) {
		t.Errorf("%s\nwant %s", text(), says)
	}
	a.Anonymize([]byte("key"))
	b, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	if all := text() + string(b); !strings.Contains(all, "A row of nothing (5 times): left out.") || strings.Contains(all, "a.txt") ||
		strings.Contains(all, "job 12") || strings.Contains(all, "secret") {
		t.Error(all)
	}
	if len(l.Odd[0].Places) != 2 {
		t.Errorf("the log has lost its places: %+v", l.Odd)
	}
}

// TestNoIdleTime: there is nothing to keep, and the answer says so.
func TestNoIdleTime(t *testing.T) {
	l := &Log{To: quantity.Instant(9 * Day), Devices: []Device{{Busy: []Span{{To: quantity.Instant(9 * Day)}}}}}
	a, err := Forecast(t.Context(), l, Options{Table: mechanisms(), Notice: Notice, Quick: true})
	if err != nil || a.Install || a.Says != "Don't install: no time of the 24 GPU-hours a day lies free." {
		t.Errorf("%v, %+v", err, a)
	}
	if err := a.Text(io.Discard); err != nil {
		t.Error(err)
	}
	if err := a.HTML(io.Discard); err != nil {
		t.Error(err)
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
	want := Device{Name: "machine/processor/00000", Kind: "processor", Weight: wholeGPU,
		Busy: []Span{{To: hour}, {From: hour, To: 3 * hour, Asked: hour}}}
	if got := l.Devices[0]; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	says := "The log names no devices: each job is taken to hold the lowest numbered ones that are free, of 4 devices, " +
		"as the log's head says."
	if !slices.Contains(l.Said, says) || l.Said[0] != "The record: 2 runs on 4 GPUs over 0 whole days." {
		t.Errorf("%q", l.Said)
	}
}
