package submit

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/face/cli/clitest"
)

func TestSweepIsComposed(t *testing.T) {
	dir := clitest.Tree(t, map[string]string{"t.csv": "lr,seed\n1e-3,0\n3e-4,1\n5,2\n", "bad.csv": "lr\n"})
	t.Chdir(dir)
	flags := map[string]string{"per-trial": "5m", "mem": "1Gi", "name": "s"}
	for want, how := range map[int]sweeping{
		6: {grid: []string{"lr=1,2", "seed=0..2"}, stay: true}, 2: {grid: []string{"lr=1,2", "seed=0..2"}, random: 2, seed: 1},
		3: {csv: "t.csv"},
	} {
		s, n, err := how.compose(flags, nil, nil, []string{"train", "{lr}", "--seed={seed}"})
		if err != nil || n != want {
			t.Fatalf("%+v: %d, %v", how, n, err)
		}
		spec := s.job.Spec
		if spec.Total != int64(n) || spec.Launch.Adapter != (job.Adapter{Trials: job.Trials{Table: tableFile}, Keep: true}) ||
			spec.Parallelism != n ||
			spec.Unit != "trial" || (s.job.Workdir == "") != how.stay || (s.goes == "") != how.stay ||
			strings.Count(string(s.beside.extra[0].data), "\n") != n+1 {
			t.Errorf("%+v %q", spec, s.beside)
		}
	}
	for want, how := range map[string]sweeping{
		"what to try is not said":     {},
		"give one of them":            {grid: []string{"lr=1"}, csv: "t.csv"},
		"leave it out with --csv":     {csv: "t.csv", random: 1},
		"no row":                      {csv: "bad.csv"},
		`--grid "lr": want NAME=`:     {grid: []string{"lr", "seed=1"}},
		"the parameter x stands":      {grid: []string{"lr=1", "seed=1", "x=1"}},
		"at most as many":             {grid: []string{"lr=1", "seed=1"}, random: 2},
		"lies in a directory":         {grid: []string{"lr=1", "seed=1"}, stay: true},
		"no such file":                {csv: "missing.csv"},
		"--grid \"\\xff\" is no name": {grid: []string{"\xff=1"}},
	} {
		if _, _, err := how.compose(flags, nil, nil, []string{"./train", "{lr}", "{seed}"}); err == nil || !strings.Contains(err.Error(),
			want) ||
			command.ExitCode(err) != command.ExitUsage {
			t.Errorf("%+v: %v, want %q", how, err, want)
		}
	}
	_, _, err := (&sweeping{grid: []string{"lr=1"}}).compose(map[string]string{"parallel": "x"}, nil, nil, []string{"train", "{lr}"})
	if err == nil || !strings.Contains(err.Error(), "--mem is missing") {
		t.Error(err)
	}
	untimed := sweeping{grid: []string{"lr=1"}, stay: true}
	s, _, err := untimed.compose(map[string]string{"mem": "1Gi"}, nil, nil, []string{"train", "{lr}"})
	if err != nil || !s.job.Spec.Untimed() {
		t.Errorf("%v, %+v: want a job whose trials are measured", err, s.job.Spec)
	}
	flags["parallel"] = "x"
	_, _, err = (&sweeping{grid: []string{"lr=1"}}).compose(flags, nil, nil, []string{"train", "{lr}"})
	if err == nil || !strings.Contains(err.Error(), "--parallel: ") {
		t.Error(err)
	}
}

// TestWhatGoesAlongBeside: extra files lie in the place of the directory's own, and without a directory alone; what is to stay behind does.
func TestWhatGoesAlongBeside(t *testing.T) {
	dir := clitest.Tree(t, map[string]string{"a": "1", ".sluice/trials": "old", ".sluice/other": "2", "out/answers": "3", "sub/out": "4",
		"out.skipped": "5"})
	beside := along{extra: []extraFile{{".sluice/trials", []byte("new")}},
		without: []string{filepath.Join(dir, "out"), filepath.Join(dir, "out.skipped")}}
	packed, err := pack(dir, beside, false, maxPacked)
	if err != nil {
		t.Fatal(err)
	}
	names := func(p parcel) (list []string) {
		for _, e := range entriesOf(t, p.data) {
			list = append(list, e.Name+" "+e.text)
		}
		slices.Sort(list)
		return list
	}
	want := []string{".sluice/ ", ".sluice/other 2", ".sluice/trials new", "a 1", "sub/ ", "sub/out 4"}
	if got := names(packed); !slices.Equal(got, want) || packed.files != 4 || packed.size != 6 {
		t.Errorf("%q in %d files of %d, want %q", got, packed.files, packed.size, want)
	}
	packed, err = pack("", beside, false, maxPacked)
	if got, want := names(packed), []string{".sluice/ ", ".sluice/trials new"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
}

type packedEntry struct {
	*tar.Header
	text string
}

func entriesOf(t *testing.T, packed []byte) (list []packedEntry) {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, packedEntry{h, string(text)})
	}
}
