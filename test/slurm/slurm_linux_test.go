package slurm

import (
	"os"
	"os/exec"
	"strconv"
	"testing"

	"sluice.dev/sluice/test/slurm/cluster"
	"sluice.dev/sluice/test/witness"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(witness.WorkerVariable); dir != "" {
		witness.Work(dir)
		return
	}
	os.Exit(m.Run())
}

// need skips a test where SLUICE_SLURM is not set, or there is no Slurm and none can be fetched; with SLUICE_SLURM=require that is a
// failure.
func need(t *testing.T) {
	t.Helper()
	needs(t, cluster.Find)
}

// needAccounting is the same for a Slurm with accounting.
func needAccounting(t *testing.T) {
	t.Helper()
	needs(t, cluster.FindAccounting)
}

func needs(t *testing.T, find func() error) {
	t.Helper()
	want := os.Getenv("SLUICE_SLURM")
	if want == "" {
		t.Skip("SLUICE_SLURM is not set: see make slurm")
	}
	err := find()
	if err != nil && want != "require" {
		t.Skipf("there can be no such Slurm here: %v", err)
	}
	if err != nil {
		t.Fatalf("there can be no such Slurm here: %v", err)
	}
}

// asked is a number that a variable gives, or else.
func asked(t *testing.T, variable string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n
}

// programs builds sluice and its supervisor, and returns their folder.
func programs(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	out, err := exec.Command("go", "build", "-o", dir+"/", "sluice.dev/sluice/cmd/sluice",
		"sluice.dev/sluice/cmd/sluice-shim").CombinedOutput()
	if err != nil {
		t.Fatalf("go build: %v: %s", err, out)
	}
	return dir
}
