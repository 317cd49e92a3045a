package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// drawSpec draws any spec that a job file can say.
func drawSpec(t *rapid.T) *job.Spec {
	label := rapid.StringMatching(`[a-z0-9]([-a-z0-9]{0,20}[a-z0-9])?`)
	text := rapid.StringOf(rapid.Rune()).Filter(func(s string) bool { return !strings.ContainsRune(s, 0) && utf8.ValidString(s) })
	dur := func(least, most time.Duration, name string) time.Duration {
		return time.Duration(rapid.Int64Range(int64(least), int64(most)).Draw(t, name))
	}
	s := &job.Spec{
		Name: job.ID(label.Draw(t, "name")), Queue: label.Draw(t, "queue"), Priority: rapid.Int32Range(-MaxPriority, MaxPriority).Draw(t,
			"priority"),
		Kind:  rapid.SampledFrom([]job.Kind{job.Items, job.Steps, job.Rigid}).Draw(t, "kind"),
		Total: 1, Unit: "job", Grid: 1, Parallelism: 1, Slices: 1,
		MaxFailures: rapid.IntRange(1, 1000).Draw(t, "failures"), Theta: rapid.Int64Range(1, 500_000).Draw(t, "theta"),
		OverheadMax: rapid.IntRange(1, 1000).Draw(t, "overhead"), TauMin: dur(0, MaxTime, "tau"), Deadline: quantity.Never,
	}
	if s.Kind == job.Rigid {
		s.Slices = rapid.IntRange(1, MaxParallelism).Draw(t, "slices")
		if s.Slices > 1 {
			s.Topology = job.Level(rapid.IntRange(0, int(job.SameZone)).Draw(t, "topology"))
		}
		if s.Walltime = dur(0, MaxTime, "walltime"); s.Walltime < time.Second {
			s.Walltime = 0
		} else if s.Topology == job.SameNode {
			s.OnOverrun = job.Overrun(rapid.IntRange(0, 1).Draw(t, "overrun"))
		}
		if s.Walltime > 0 && s.OnOverrun == job.OverrunKills && rapid.Bool().Draw(t, "saves") {
			s.Saves, s.Unit, s.Total = true, "step", rapid.Int64Range(1, MaxTotal).Draw(t, "steps")
			s.Grid = rapid.Int64Range(1, s.Total).Draw(t, "every")
		}
	} else {
		s.Total = rapid.Int64Range(1, MaxTotal).Draw(t, "total")
		s.Unit = rapid.StringMatching(`[a-z0-9]{1,9}`).Draw(t, "unit")
		s.PerUnit = dur(1, MaxTime/time.Duration(s.Total), "per")
		s.Grid = rapid.Int64Range(1, s.Total).Draw(t, "grid")
		s.Continue = rapid.Bool().Draw(t, "continue")
	}
	s.External = s.Kind != job.Rigid && rapid.Bool().Draw(t, "external")
	s.Worth = job.Worth{Progress: rapid.Int64Range(0, 1000).Draw(t, "progress")}
	s.Worth.Laxity = rapid.Int64Range(0, 1000-s.Worth.Progress).Draw(t, "laxity")
	s.Worth.Overhead = 1000 - s.Worth.Progress - s.Worth.Laxity
	s.Template = rapid.SampledFrom([]string{"", "resnet"}).Draw(t, "template")
	if s.Kind != job.Rigid {
		s.Options = drawOptions(t, label, text)
	}
	switch s.Kind {
	case job.Items:
		s.Parallelism = rapid.IntRange(1, MaxParallelism).Draw(t, "parallelism")
		s.OnBadItem = job.OnBadItem(rapid.IntRange(0, 1).Draw(t, "bad"))
	case job.Steps:
		s.Restore, s.Checkpoint = dur(0, MaxTime/4, "restore"), dur(0, MaxTime/4, "checkpoint")
	case job.Rigid: // all read above
	}
	if rapid.Bool().Draw(t, "deadline") {
		s.Deadline = quantity.Instant(rapid.Int64Range(946684800_000000000, 4_000_000_000_000_000_000).Draw(t, "at"))
	}
	for _, p := range rapid.SliceOfNDistinct(rapid.StringMatching(`[1-7a-z:+.#~!&*{-]{1,12}`), 0, 5, rapid.ID[string]).Draw(t, "profiles") {
		s.Speeds = append(s.Speeds, job.SpeedOn{Profile: p, Permille: rapid.Int64Range(0, MaxSpeed).Draw(t, "speed")})
	}
	slices.SortFunc(s.Speeds, func(a, b job.SpeedOn) int { return strings.Compare(a.Profile, b.Profile) })
	s.Profile = drawProfile(t, s.Total)
	s.Launch = job.Launch{Command: rapid.SliceOfN(text, 1, 4).Filter(func(c []string) bool { return c[0] != "" }).Draw(t, "command"),
		Grace: dur(0, time.Hour, "grace")}
	for _, k := range rapid.SliceOfNDistinct(rapid.StringMatching(`[A-Z_a-z][A-Za-z0-9]{0,5}`), 0, 4, rapid.ID[string]).Draw(t, "env") {
		s.Launch.Env = append(s.Launch.Env, k+"="+text.Draw(t, "value"))
	}
	slices.Sort(s.Launch.Env)
	if s.Kind == job.Items && rapid.Bool().Draw(t, "adapter") {
		file := rapid.StringMatching(`/?[a-z: #"]{1,9}(/[a-z]{1,3})?`)
		s.Launch.Adapter.Lines = job.Lines{Input: file.Draw(t, "input"), Format: job.LineFormat(rapid.IntRange(0, 1).Draw(t, "format")),
			Header: rapid.Bool().Draw(t, "header"), AnswersHeader: rapid.Bool().Draw(t, "header of answers")}
		if rapid.Bool().Draw(t, "index is given") {
			s.Launch.Adapter.Lines.Index = file.Draw(t, "index")
		}
	}
	if s.Kind == job.Items && s.Grid == 1 && rapid.Bool().Draw(t, "tasks") {
		text := rapid.StringMatching(`[a-z #"é]{1,9}`)
		a := job.Adapter{Keep: s.OnBadItem == job.BadItemSkips}
		if a.Trials.Table = text.Draw(t, "table"); rapid.Bool().Draw(t, "array") && s.Total <= 1000 {
			a.Trials = job.Trials{}
			a.Array = job.Array{Indices: fmt.Sprintf("1-%d%%7", s.Total), Name: text.Draw(t, "name"), Output: text.Draw(t, "output") + "%a",
				Limit: dur(time.Second, time.Hour, "limit")}
		}
		s.Launch.Adapter = a
	}
	if s.Kind == job.Steps && rapid.Bool().Draw(t, "adapter") {
		s.Grid = 1
		s.Launch.Adapter.Directory = job.Directory{Path: rapid.StringMatching(`[a-z: #"]{1,9}(/[a-z]{1,3})?`).Draw(t, "path"),
			Progress: rapid.SampledFrom([]string{"", `step (\d+)`, `"#: '\d`}).Draw(t, "progress")}
	}
	if rapid.Bool().Draw(t, "umask is named") {
		s.Launch.Umask = job.Umask{Named: true, Bits: uint16(rapid.IntRange(0, 0o777).Draw(t, "umask"))}
	}
	s.Launch.Image = rapid.StringMatching(`([!-~]{1,40})?`).Draw(t, "image")
	if rapid.Bool().Draw(t, "warn") {
		s.Launch.WarnSignal, s.Launch.WarnBefore = 10, s.Launch.Grace+dur(time.Millisecond, 23*time.Hour, "before")
	}
	s.Launch.LogLimit, s.Launch.OutputLimit = rapid.Int64Range(0, 1<<50).Draw(t, "log"), rapid.Int64Range(0, 1<<50).Draw(t, "output")
	return s
}

func drawOptions(t *rapid.T, label, text *rapid.Generator[string]) (out []job.Option) {
	share := func(name string) int64 { return rapid.Int64Range(LeastShare, MostShare).Draw(t, name) }
	for _, name := range rapid.SliceOfNDistinct(label, 0, 3, rapid.ID[string]).Draw(t, "options") {
		o := job.Option{Name: name, Speed: share("speed of the option"), Memory: share("memory of the option")}
		for _, k := range []string{"A", "B"}[:rapid.IntRange(0, 2).Draw(t, "variables")] {
			o.Env = append(o.Env, k+"="+text.Draw(t, "value"))
		}
		out = append(out, o)
	}
	return out
}

func drawProfile(t *rapid.T, total int64) trp.Profile {
	amount := func(name string) quantity.Amount {
		return quantity.Amount(rapid.Int64Range(1, int64(trp.MaxAmount)).Draw(t, name))
	}
	var bounds []int64
	for _, b := range rapid.SliceOfNDistinct(rapid.Int64Range(1, total), 0, 4, rapid.ID[int64]).Draw(t, "bounds") {
		if b < total {
			bounds = append(bounds, b)
		}
	}
	slices.Sort(bounds)
	bounds = append(bounds, total)
	p := trp.Profile{Form: rapid.SampledFrom([]trp.Form{trp.Phases, trp.Envelope}).Draw(t, "form")}
	for _, b := range bounds {
		if p.Form == trp.Envelope {
			p.Curve = append(p.Curve, trp.Point{UpTo: b, Amount: amount("amount")})
		} else {
			p.Phases = append(p.Phases, trp.Phase{UpTo: b, Mean: amount("mean"), SD: amount("sd") - 1})
		}
	}
	if p.Form == trp.Phases {
		p.Combine = trp.Combine(rapid.IntRange(0, 2).Draw(t, "combine"))
	}
	return p
}

// TestRenderRoundTrip: every spec a file can say is written and read back as it was.
func TestRenderRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSpec(t)
		var err error
		if s.Safe, err = trp.Compile(s.Profile, s.Total, s.Theta); err != nil {
			t.Fatal(err)
		}
		text, err := RenderJob(s, "work dir")
		if err != nil {
			t.Fatal(err)
		}
		got, workdir, err := ParseJob("rendered", text)
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if !reflect.DeepEqual(got, s) || workdir != "work dir" {
			t.Fatalf("got %+v\nwant %+v\nin\n%s", got, s, text)
		}
	})
}

func TestRenderRefuses(t *testing.T) {
	for _, s := range []*job.Spec{{Name: "a"}, {Name: "a", Kind: job.Items}} {
		if _, err := RenderJob(s, ""); err == nil || !strings.Contains(err.Error(), "no form in a job file") {
			t.Errorf("kind %d: error %v", s.Kind, err)
		}
	}
}

func TestWarnings(t *testing.T) {
	read := func(spec string) *job.Spec {
		s, _, err := ParseJob("f", fmt.Appendf(nil, "{apiVersion: %s, kind: Job, metadata: {name: a}, spec: {%s, memory: 1Gi}}", APIVersion,
			spec))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for _, c := range []struct {
		spec                  string
		withFiles, containers bool
		want                  []string
	}{
		{"rigid: {}, command: [x]", false, false, []string{"without walltime"}},
		{"rigid: {walltime: 1h}, command: [x]", false, false, nil},
		{"rigid: {walltime: 1h}, command: [./x], image: a/b", false, false, []string{"the image a/b is ignored"}},
		{"rigid: {walltime: 1h}, command: [./x], image: a/b", false, true, nil},
		{"steps: {total: 9, perStep: 1s, every: 1}, command: [./x]", false, false,
			[]string{"restore and checkpoint are 0", "no workdir comes along"}},
		{"steps: {total: 9, every: 1}, adapter: {directory: {path: ckpt}}, command: [x]", true, false, nil},
		{"steps: {every: 1}, adapter: {directory: {path: ckpt}}, deadline: 2190-01-01T00:00:00Z, command: [x]", true, false, nil},
		{"steps: {total: 9, perStep: 1s, every: 1, restore: 1s}, warn: {signal: USR1, before: 9s}, command: [./x]", true, false,
			[]string{"warned at once"}},
	} {
		got := Warnings(read(c.spec), c.withFiles, c.containers, time.Now())
		ok := len(got) == len(c.want)
		for i := range c.want {
			ok = ok && strings.Contains(got[i], c.want[i])
		}
		if !ok {
			t.Errorf("%s: warnings %q, want %q", c.spec, got, c.want)
		}
	}
}

// TestADeadlineThatCanNotBeKeptIsToldOf: by what the job itself declares, and no other.
func TestADeadlineThatCanNotBeKeptIsToldOf(t *testing.T) {
	now := time.Unix(1e9, 0)
	for _, c := range []struct {
		spec job.Spec
		want string
	}{
		{job.Spec{Kind: job.Items, Total: 100, PerUnit: time.Second, Parallelism: 1},
			"the deadline is in 20s, and what it declares takes at least 1m40s on a slice of speed 1"},
		{job.Spec{Kind: job.Items, Total: 100, PerUnit: time.Second, Parallelism: 5}, ""},
		{job.Spec{Kind: job.Rigid, Walltime: time.Minute}, "the deadline is in 20s, and its walltime is 1m0s"},
		{job.Spec{Kind: job.Rigid, Walltime: 20 * time.Second}, ""},
	} {
		c.spec.Deadline, c.spec.Launch.Command = quantity.At(now.Add(20*time.Second)), []string{"true"}
		if got := strings.Join(Warnings(&c.spec, false, false, now), "; "); !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%v of %d units: %q, want %q", c.spec.Kind, c.spec.Total, got, c.want)
		}
		c.spec.Deadline = 0
		if got := Warnings(&c.spec, false, false, now); len(got) > 0 {
			t.Errorf("without a deadline: %q", got)
		}
	}
}
