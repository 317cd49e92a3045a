package process_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/executor/process"
	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/journal"
)

// buildShim builds the real supervisor as it is shipped.
func buildShim(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sluice-shim")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", path, "sluice.dev/sluice/cmd/sluice-shim")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building the supervisor: %v: %s", err, out)
	}
	return path
}

// own is the memory in kB that only this process has: its anonymous pages.
func own(t testing.TB, pid int) (anon, rss int) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		f := strings.Fields(line)
		switch f[0] {
		case "RssAnon:":
			anon, _ = strconv.Atoi(f[1])
		case "VmRSS:":
			rss, _ = strconv.Atoi(f[1])
		}
	}
	return anon, rss
}

// BenchmarkStart is the time from Start to Started, to the end of `true`, and what the supervisor holds while a subjob runs: the init
// has no memory of its own.
func BenchmarkStart(b *testing.B) {
	said := make(chan protocol.Message, 100)
	o := process.Options{DataDir: b.TempDir(), ShimPath: buildShim(b), Deliver: func(m protocol.Message) { said <- m }, Report: time.Hour}
	ex, err := process.New(o)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = ex.Close() }()
	next := func(k protocol.Kind) {
		if m := <-said; m.Kind != k {
			b.Fatalf("%+v %+v", m, m.Body.(*protocol.Conclusion).Result)
		}
	}
	m := lease(time.Hour, "sleep", "1")
	m.Token.Seq = 1 << 40
	ex.Do(m, journal.Position{})
	next(protocol.Started)
	time.Sleep(500 * time.Millisecond)
	note, err := shim.Dir(filepath.Join(o.DataDir, "runs", m.Token.String())).ReadNote()
	if err != nil {
		b.Fatal(err)
	}
	memory := map[string]int{}
	memory["supervisor-anon-kB"], memory["supervisor-rss-kB"] = own(b, note.PID)
	next(protocol.Exited)
	var toStart, toEnd time.Duration
	for b.Loop() {
		m := lease(time.Minute, "true")
		m.Token.Seq = uint64(time.Now().UnixNano())
		at := time.Now()
		ex.Do(m, journal.Position{})
		next(protocol.Started)
		toStart += time.Since(at)
		next(protocol.Exited)
		toEnd += time.Since(at)
	}
	for name, kB := range memory {
		b.ReportMetric(float64(kB), name)
	}
	b.ReportMetric(float64(toStart.Microseconds())/1000/float64(b.N), "ms-to-started")
	b.ReportMetric(float64(toEnd.Microseconds())/1000/float64(b.N), "ms-to-exited")
}
