package cli_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/lab/trace/tracetest"
)

// forecastFolder is data made up for the test: a few pods for six hours, and some dozens of jobs.
func forecastFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	rng := prng.New(1)
	var pods, miso, carma strings.Builder
	pods.WriteString("timestamp_anon,value,container_ip\n")
	for step := range 380 {
		for pod := range 6 {
			fmt.Fprintf(&pods, "%d,%d,pod%d\n", 57*step, 20_000_000_000+rng.IntN(1+rng.IntN(20_000_000_000)), pod)
		}
	}
	miso.WriteString("model,batch,mem_mib_7g,profile,n_iter,first_iter_s,median_iter_s,p05_iter_s,p95_iter_s,cv\n")
	carma.WriteString("Model,Max memory.used [MB],Faketensor Estimate [MB],Max memory.used [GB],FakeTensor Estimation(GB),FakeTensor " +
		"overhead,Execution time(m),Run folder,Time,Script,batch_size,epochs,GB after forward,GB after backward,Execution " +
		"time(s),Execution time(h)\n")
	for i := range 30 {
		use := 1000 + rng.IntN(9000)
		fmt.Fprintf(&miso, "m%d,%d,%d,7g.40gb,10,1,0.1,0.1,0.1,0\n", i/5, i, use)
		fmt.Fprintf(&carma, "m%d,%d,%d,1,1,1,1,x,x,x,32,1,1,1,60,1\n", i, use, use*7/10)
	}
	for name, text := range map[string]string{
		"genai2026/pod_gpu_memory_used_bytes_anon.csv.gz": pods.String(), "miso/miso_mig_iter_summary.csv": miso.String(),
		"carma/ehsan-summary.csv": carma.String(),
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o750), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

type forecastReport struct {
	OK, TargetMet bool
	Pods          int
	Rolling       struct {
		Next            string
		Default, Former struct {
			Rule                   string
			Under, Over, WorstHour float64
		}
		Ways []struct {
			Rule               string
			Asked, Under, Over float64
			Picked             []string
		}
	}
	Published, Naive []struct{ Rule string }
	Ours             []struct {
		Theta    float64
		Reported struct {
			Predictions int
			Under, Over float64
		}
	}
	Jobs []struct {
		Data string
		Jobs int
		OK   bool
	}
}

func forecastOf(t *testing.T, dir string) forecastReport {
	t.Helper()
	code, out, errs := simulate(t.Context(), "check", "forecast", "--data", dir, "-o", "json")
	var report forecastReport
	if err := json.Unmarshal([]byte(out), &report); err != nil || code != 0 || errs != "" || !report.OK {
		t.Fatalf("exit %d, %q, %v: %s", code, errs, err, out)
	}
	return report
}

func TestSimCheckForecast(t *testing.T) {
	dir := forecastFolder(t)
	if r := forecastOf(t, dir); r.Pods != 6 || len(r.Ours) == 0 || r.Ours[0].Reported.Predictions == 0 || len(r.Jobs) < 20 ||
		r.Jobs[0].Data != "miso" || r.Jobs[0].Jobs != 30 {
		t.Errorf("%+v", r)
	}
	code, out, errs := simulate(t.Context(), "check", "forecast", "--data", dir, "--all")
	for _, says := range []string{"6 pods over 6.0 h", "25% over, is not met", "most of 3 h x 1.45 (default)",
		"chosen of the learned rules", "tried: constant, all pods", "most of 3 h x 1.2", "one bound a pod, known afterwards",
		"carma, with estimates"} {
		if code != 0 || errs != "" || !strings.Contains(out, says) {
			t.Fatalf("exit %d, %q, does not say %q:\n%s", code, errs, says, out)
		}
	}
	if code, _, errs = simulate(t.Context(), "check", "forecast"); code != 2 || !strings.Contains(errs, "genai2026, miso and carma") {
		t.Errorf("without data: exit %d, %q", code, errs)
	}
	if code, _, errs = simulate(t.Context(), "check", "forecast", "--data", t.TempDir()); code == 0 ||
		!strings.Contains(errs, "miso_mig_iter_summary.csv") {
		t.Errorf("an empty folder: exit %d, %q", code, errs)
	}
}

func TestSimCheckForecastPublished(t *testing.T) {
	dir := filepath.Dir(tracetest.Data(t, "genai2026"))
	tracetest.Data(t, "miso")
	tracetest.Data(t, "carma")
	if r := forecastOf(t, dir); r.Pods < 100 || len(r.Published) != 5 || len(r.Naive) != 21 || len(r.Ours) != 11 || r.TargetMet {
		t.Errorf("%+v", r)
	}
	// What docs/adr/0015 says of the rolling test.
	x := forecastOf(t, dir).Rolling
	if d := x.Default; d.Under > 1 || d.Over > 60.5 || len(x.Ways) != 6 || x.Next != d.Rule {
		t.Errorf("%+v", x)
	}
	for _, w := range x.Ways {
		if kept := w.Under <= 1; w.Asked == 1 && kept != (w.Rule == "chosen of the plain rules") || len(w.Picked) != 4 {
			t.Errorf("%+v", w)
		}
	}
}
