package atomizer_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

func kinds(all []protocol.Slice) *atomizer.Kinds {
	var k atomizer.Kinds
	for i := range all {
		k.Add(&all[i])
	}
	return &k
}

// TestKindsCountAsTheListDoes: however slices come and go, what is said of a job is what is said with the list of those that
// are there.
func TestKindsCountAsTheListDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var k atomizer.Kinds
		var all []protocol.Slice
		for range rapid.IntRange(1, 30).Draw(t, "changes") {
			if len(all) > 0 && rapid.Bool().Draw(t, "goes") {
				i := rapid.IntRange(0, len(all)-1).Draw(t, "which")
				k.Remove(&all[i])
				all = slices.Delete(all, i, i+1)
				continue
			}
			s := protocol.Slice{
				Profile:  rapid.SampledFrom([]string{"a", "b"}).Draw(t, "profile"),
				Capacity: trp.Vector{quantity.Amount(rapid.IntRange(1, 3).Draw(t, "memory") << 20)},
				Speed:    int64(rapid.IntRange(1, 2).Draw(t, "speed")) * 500,
			}
			k.Add(&s)
			all = append(all, s)
			q := draw(t, rapid.SampledFrom([]job.Kind{job.Items, job.Steps, job.Rigid}).Draw(t, "kind"))
			q.spec.Slices = rapid.IntRange(0, 5).Draw(t, "at once")
			why, nearest := atomizer.Impossible(q.spec, &k, time.Minute)
			want, fits := atomizer.Impossible(q.spec, kinds(all), time.Minute)
			if (why == "") != (want == "") || q.spec.Kind == job.Rigid && (why != want || nearest != fits) {
				t.Fatalf("%d slices: %q (%q), want %q (%q)", len(all), why, nearest, want, fits)
			}
			fitting := atomizer.Fitting(q.spec, &k, time.Minute)
			if n := atomizer.Fitting(q.spec, kinds(all), time.Minute); n != fitting || n > len(all) || n == 0 && want == "" {
				t.Fatalf("%d of %d slices fit, by the list %d: %q", fitting, len(all), n, want)
			}
			if q.spec.Kind == job.Rigid {
				fit := 0
				for i := range all {
					if all[i].Capacity[trp.Memory] >= q.spec.Safe.LeastOver(0, q.spec.Total, trp.Unscaled) {
						fit++
					}
				}
				if (why == "") != (fit >= max(1, q.spec.Slices)) || fitting != fit {
					t.Fatalf("%d of %d slices fit a job of %d: %q", fit, len(all), q.spec.Slices, why)
				}
			}
		}
	})
}

// TestWhatIsAcceptedCanFinish: a job that is not called impossible is cut to its end by slices that are idle, whichever of
// those that fit takes the next piece, and LeastWindow is a window that some piece fits.
func TestWhatIsAcceptedCanFinish(t *testing.T) {
	for _, kind := range []job.Kind{job.Items, job.Steps} {
		rapid.Check(t, func(t *rapid.T) {
			q := draw(t, kind)
			if kind == job.Items { // units go on from nothing, and no job file gives them a cost of it
				q.spec.Restore, q.spec.Checkpoint = 0, 0
			}
			q.view = atomizer.View{Spec: q.spec, Learned: &protocol.Learned{}}
			longest := time.Duration(rapid.Int64Range(1, 120).Draw(t, "longest")) * time.Second
			var all []protocol.Slice
			for range rapid.IntRange(1, 3).Draw(t, "slices") {
				all = append(all, protocol.Slice{
					Capacity: trp.Vector{quantity.Amount(rapid.Int64Range(40, 160).Draw(t, "memory"))},
					Speed:    rapid.Int64Range(300, 2000).Draw(t, "speed"),
				})
			}
			why, nearest := atomizer.Impossible(q.spec, kinds(all), longest)
			if why != "" {
				if nearest == "" {
					t.Fatalf("%q, and nothing said of what would fit", why)
				}
				var horizon time.Duration
				if _, after, says := strings.Cut(nearest, "of at least "); says {
					text, _, _ := strings.Cut(after, ";")
					var err error
					if horizon, err = time.ParseDuration(text); err != nil || horizon <= longest {
						t.Fatalf("%q names a horizon of %q where %v is too short", nearest, text, longest)
					}
				}
				if why, nearest := atomizer.Impossible(q.spec, kinds(all), horizon); horizon > 0 && why != "" {
					t.Fatalf("with the horizon of %v that was named it is refused: %s; %s", horizon, why, nearest)
				}
				return
			}
			pick := rapid.IntRange(0, 2).Draw(t, "first")
			for q.view.Committed.Len() < q.spec.Total {
				done := q.view.Committed.Len()
				for i := range all {
					s := all[(i+pick)%len(all)]
					p, r := atomizer.Fit(&q.view, atomizer.Window{Capacity: s.Capacity, Speed: s.Speed, End: quantity.Instant(longest)})
					if r.Why != atomizer.Interested {
						continue
					}
					least := atomizer.LeastWindow(&q.view, s.Speed)
					if kind == job.Steps && p.Length < least && p.Range.To < q.spec.Total {
						t.Fatalf("piece %+v is shorter than the least window %v", p, least)
					}
					if q.view.Committed = q.view.Committed.Add(p.Range); kind == job.Steps { // units leave no checkpoint to begin from
						q.view.Resume = job.Token{Epoch: 1}
					}
					break
				}
				if q.view.Committed.Len() == done {
					t.Fatalf("accepted, and stuck after %v on %v in windows of %v", q.view.Committed, all, longest)
				}
			}
		})
	}
}

// TestTheLastPiecesOfAPhaseAreLookedAt: from unit 30 the least useful piece is all that is left, and crosses into the last phase; the one
// slice that has the memory for it is too slow for windows of 4 s, though from the last unit before the phase it is not.
func TestTheLastPiecesOfAPhaseAreLookedAt(t *testing.T) {
	table, err := trp.Compile(trp.Profile{Form: trp.Phases, Phases: []trp.Phase{{UpTo: 7, Mean: 50}, {UpTo: 32, Mean: 50},
		{UpTo: 33, Mean: 51}}}, 33, 10_000)
	if err != nil {
		t.Fatal(err)
	}
	spec := &job.Spec{Kind: job.Items, Total: 33, PerUnit: 700 * time.Millisecond, Grid: 1, Parallelism: 1, Safe: table,
		TauMin: 3 * time.Second}
	var all []protocol.Slice
	for _, x := range [][2]int64{{50, 657}, {40, 300}, {51, 584}} {
		all = append(all, protocol.Slice{Capacity: trp.Vector{quantity.Amount(x[0])}, Speed: x[1]})
	}
	if why, nearest := atomizer.Impossible(spec, kinds(all), 4*time.Second); !strings.Contains(why, "unit 30") ||
		!strings.Contains(nearest, "4.495s") {
		t.Errorf("%q: %q", why, nearest)
	}
	if why, _ := atomizer.Impossible(spec, kinds(all), 5*time.Second); why != "" {
		t.Errorf("in longer windows: %q", why)
	}
}

func TestWhyAJobIsImpossible(t *testing.T) {
	slice := func(mib, speed int64) protocol.Slice {
		return protocol.Slice{ID: "s", Capacity: trp.Vector{quantity.Amount(mib << 20)}, Speed: speed}
	}
	make := func(kind job.Kind, n int, mib int64, change func(*job.Spec)) *job.Spec {
		total := int64(100)
		if kind == job.Rigid {
			total = 1
		}
		table, err := trp.Compile(trp.Profile{Form: trp.Phases, Phases: []trp.Phase{{UpTo: total, Mean: quantity.Amount(mib << 20)}}},
			total, 10_000)
		if err != nil {
			t.Fatal(err)
		}
		s := &job.Spec{Kind: kind, Total: total, Grid: 10, PerUnit: time.Second, Parallelism: 1, Slices: n, Safe: table}
		change(s)
		return s
	}
	same := func(*job.Spec) {}
	for _, c := range []struct {
		name   string
		spec   *job.Spec
		slices []protocol.Slice
		want   string
		fits   string
	}{
		{"without slices nothing is known", make(job.Items, 1, 500, same), nil, "", ""},
		{"too much memory", make(job.Items, 1, 500, same), []protocol.Slice{slice(400, 1000)}, "need 500 MiB", "at most 400 MiB"},
		{"too slow", make(job.Steps, 1, 100, same), []protocol.Slice{slice(400, 100)}, "longer than the longest window",
			"of at least 2m5s; or a smaller grid"},
		{"too slow on all of them", make(job.Steps, 1, 100, same), []protocol.Slice{slice(400, 50), slice(400, 100), slice(400, 25)},
			"takes 2m5s, longer than the longest window", "of at least 2m5s; or"},
		{"too slow where it is safe", make(job.Steps, 1, 100, same), []protocol.Slice{slice(50, 1000), slice(400, 100), slice(60, 1000)},
			"takes 2m5s, longer than the longest window", "of at least 2m5s; or"},
		{"fast enough on one of them", make(job.Steps, 1, 100, same), []protocol.Slice{slice(400, 100), slice(400, 1000)}, "", ""},
		{"tau_min beyond the window", make(job.Steps, 1, 100, func(s *job.Spec) { s.TauMin = 80 * time.Second }),
			[]protocol.Slice{slice(400, 1000)}, "longer than the longest", "tauMin"},
		{"its speeds bar all there is", make(job.Steps, 1, 100, func(s *job.Spec) { s.Speeds = []job.SpeedOn{{Profile: ""}} }),
			[]protocol.Slice{slice(400, 1000)}, "no kind of slice", "above 0"},
		{"its speed makes it too slow", make(job.Steps, 1, 100,
			func(s *job.Spec) { s.Speeds = []job.SpeedOn{{Profile: "", Permille: 100}} }), []protocol.Slice{slice(400, 1000)},
			"longer than the longest window", "a smaller grid"},
		{"an agent knows how long its pieces take",
			make(job.Steps, 1, 100, func(s *job.Spec) { s.External, s.TauMin = true, 80*time.Second }), []protocol.Slice{slice(400, 100)},
			"", ""},
		{"an agent's job that is too large", make(job.Items, 1, 500, func(s *job.Spec) { s.External = true }),
			[]protocol.Slice{slice(400, 1000)}, "need 500 MiB", "at most 400 MiB"},
		{"a rigid job that fits", make(job.Rigid, 1, 100, same), []protocol.Slice{slice(400, 1000)}, "", ""},
		{"a rigid job too large", make(job.Rigid, 1, 500, same), []protocol.Slice{slice(400, 1000)}, "needs 500 MiB", "at most 400 MiB"},
		{"too few slices", make(job.Rigid, 2, 300, same), []protocol.Slice{slice(400, 1000), slice(200, 1000)}, "2 slices", "slices: 1"},
	} {
		why, nearest := atomizer.Impossible(c.spec, kinds(c.slices), time.Minute)
		if !strings.Contains(why, c.want) || !strings.Contains(nearest, c.fits) || (why == "") != (c.want == "") {
			t.Errorf("%s: %q; %q", c.name, why, nearest)
		}
	}
}

// TestAFailingRangeIsCutSmaller: pieces do not cross the edge of a suspect range, and take at most its limit within it.
func TestAFailingRangeIsCutSmaller(t *testing.T) {
	table, err := trp.Compile(trp.Profile{Form: trp.Phases, Phases: []trp.Phase{{UpTo: 100, Mean: 1}}}, 100, 10_000)
	if err != nil {
		t.Fatal(err)
	}
	s := &job.Spec{Kind: job.Items, Total: 100, Grid: 10, PerUnit: time.Second, Parallelism: 1, Safe: table, TauMin: 30 * time.Second}
	v := atomizer.View{Spec: s, Learned: &protocol.Learned{Suspects: []protocol.Suspect{{Range: job.Range{From: 40, To: 60}, Limit: 7}}}}
	var got []job.Range
	for range 5 {
		p, r := atomizer.Fit(&v, atomizer.Window{Capacity: trp.Vector{1}, Speed: 1000, End: quantity.Instant(1e12)})
		if r.Why != atomizer.Interested {
			t.Fatalf("after %v: %+v", got, r)
		}
		got = append(got, p.Range)
		v.Committed = v.Committed.Add(p.Range)
	}
	want := []job.Range{{From: 0, To: 40}, {From: 40, To: 47}, {From: 47, To: 54}, {From: 54, To: 60}, {From: 60, To: 100}}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("got %v, want %v", got, want)
		}
	}
}
