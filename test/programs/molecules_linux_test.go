package programs

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

const waterTopology = `#include "amber99sb.ff/forcefield.itp"
#include "amber99sb.ff/tip3p.itp"

[ system ]
water

[ molecules ]
`

const waterRun = `integrator = md
dt = 0.002
nsteps = %d
nstlist = 10
nstxout = 1000
nstenergy = 100
nstlog = 1000
cutoff-scheme = Verlet
coulombtype = PME
rcoulomb = 0.8
rvdw = 0.8
tcoupl = v-rescale
tc-grps = System
tau-t = 0.5
ref-t = 300
gen-vel = yes
gen-temp = 300
gen-seed = 7
ld-seed = 7
constraints = h-bonds
`

// TestGROMACS: some 200 molecules of water, cut and struck, have the same structure, trajectory and energies, byte for byte.
func TestGROMACS(t *testing.T) {
	needs(t, "gromacs gromacs-data", "gmx", "-quiet", "--version")
	program{
		name: "gromacs", units: 20000, window: 6 * time.Second, key: "perStep", estimate: "2ms",
		prepare: func(t *testing.T, dir string, units int) {
			for name, text := range map[string]string{"topol.top": waterTopology, "md.mdp": fmt.Sprintf(waterRun, units)} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			do(t, dir, "gmx", "-quiet", "solvate", "-cs", "spc216.gro", "-box", "1.9", "1.9", "1.9", "-o", "conf.gro", "-p", "topol.top")
			do(t, dir, "gmx", "-quiet", "grompp", "-f", "md.mdp", "-c", "conf.gro", "-p", "topol.top", "-o", "topol.tpr")
			edit(t, filepath.Join(dir, "job.yaml"), "total: 5000000", "total: "+strconv.Itoa(units), `MARGIN: "30"`, `MARGIN: "2"`,
				"grace: 30s", "grace: 2s")
		},
		same: func(t *testing.T, uncut, cut *daemon, job string, _ int) {
			for _, name := range []string{"md.gro", "md.trr", "md.edr"} {
				want, err := os.ReadFile(filepath.Join(uncut.last(job), "run", name))
				if err != nil {
					t.Fatal(err)
				}
				got, err := os.ReadFile(filepath.Join(cut.last(job), "run", name))
				if err != nil || !bytes.Equal(got, want) {
					t.Errorf("%s of the run that was cut has %d bytes and is not that of the uncut one, of %d: %v", name, len(got),
						len(want), err)
				}
			}
		},
	}.compare(t)
}

// TestLAMMPS: a melt, cut and struck, logs what it logs uncut, with the same total energy to 3e-3 at each step, and the same means of
// temperature (2%), energy of pairs (1%) and pressure (15%). It is not the same to the bit.
func TestLAMMPS(t *testing.T) {
	needs(t, "lammps", "lmp", "-help")
	program{
		name: "lammps", units: 25000, window: 6 * time.Second, key: "perStep", estimate: "2ms",
		prepare: func(t *testing.T, dir string, units int) {
			edit(t, filepath.Join(dir, "job.yaml"), "total: 100000", "total: "+strconv.Itoa(units), `MARGIN: "30"`, `MARGIN: "2"`,
				"grace: 30s", "grace: 2s")
			edit(t, filepath.Join(dir, "start.lmp"), "block 0 8 0 8 0 8", "block 0 6 0 6 0 6")
			edit(t, filepath.Join(dir, "forces.lmp"), "thermo 1000", "thermo 200")
		},
		same: func(t *testing.T, uncut, cut *daemon, job string, units int) {
			want, got := thermo(t, uncut.last(job)), thermo(t, cut.last(job))
			for step := int64(0); step <= int64(units); step += 200 {
				if len(got[step]) == 0 || len(want[step]) == 0 {
					t.Fatalf("step %d is in the log of the uncut run %d times, in the other %d", step, len(want[step]), len(got[step]))
				}
			}
			// Restarts sum, and build lists of neighbours, at other moments, so the atoms part soon. What a melt is stays: its
			// total energy at each step, and its means once it has melted.
			for column, within := range map[int]float64{0: 0.02, 1: 0.01, 3: 0.003, 4: 0.15} {
				if a, b := mean(got, column), mean(want, column); math.Abs(a-b) > within*math.Abs(b) {
					t.Errorf("the mean of column %d from step 5000 on is %v, uncut %v", column, a, b)
				}
			}
			for step, row := range got {
				if w := want[step]; len(w) > 3 && math.Abs(row[3]-w[3]) > 3e-3*math.Abs(w[3]) {
					t.Errorf("step %d: total energy %v, uncut %v", step, row[3], w[3])
				}
			}
		},
	}.compare(t)
}

// thermo is what a run has logged at each step: temperature, energy of pairs and of molecules, total energy, pressure.
func thermo(t *testing.T, output string) map[int64][]float64 {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(output, "run", "log.lammps"))
	if err != nil {
		t.Fatal(err)
	}
	rows := map[int64][]float64{}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) != 6 {
			continue
		}
		step, err := strconv.ParseInt(fields[0], 10, 64)
		if err != nil {
			continue
		}
		var row []float64
		for _, f := range fields[1:] {
			if v, err := strconv.ParseFloat(f, 64); err == nil {
				row = append(row, v)
			}
		}
		if len(row) == 5 {
			rows[step] = row
		}
	}
	return rows
}

// mean of a column from step 5000 on, when it has melted.
func mean(rows map[int64][]float64, column int) float64 {
	sum, n := 0.0, 0.0
	for step, row := range rows {
		if step >= 5000 && step%200 == 0 {
			sum, n = sum+row[column], n+1
		}
	}
	return sum / n
}
