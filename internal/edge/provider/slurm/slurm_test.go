package slurm_test

import (
	"os"
	"testing"

	"sluice.dev/sluice/internal/edge/provider"
	"sluice.dev/sluice/internal/edge/provider/providertest"
	"sluice.dev/sluice/internal/edge/provider/slurm"
	"sluice.dev/sluice/internal/edge/provider/slurm/restd"
	"sluice.dev/sluice/internal/edge/provider/slurm/slurmtest"
)

func TestMain(m *testing.M) {
	slurmtest.Main()
	os.Exit(m.Run())
}

// options are those of a provider of a cluster.
func options(h *slurmtest.Host) slurm.Options {
	return slurm.Options{Mark: "aaaa1111", Pool: "pool", Bin: h.Bin, Partition: "preempt", Gres: "gpu:1g.10gb:1",
		CPUs: 1, Memory: 100 << 20, Sluice: "/opt/sluice"}
}

func open(t *testing.T, o slurm.Options) *slurm.Slurm {
	t.Helper()
	s, err := slurm.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// suite is a cluster whose provider has a folder of tokens, or none.
type suite struct {
	*slurmtest.Host
	t   *testing.T
	dir string
}

func (s suite) Provider(mark string) provider.Provider {
	o := options(s.Host)
	o.Mark, o.Dir = mark, s.dir
	return open(s.t, o)
}

func TestProvider(t *testing.T) {
	t.Run("without a shared folder", func(t *testing.T) {
		providertest.Run(t, slurm.Step, func(t *testing.T) providertest.Host { return suite{slurmtest.New(t), t, ""} })
	})
	t.Run("with one", func(t *testing.T) {
		providertest.Run(t, slurm.Step, func(t *testing.T) providertest.Host { return suite{slurmtest.New(t), t, t.TempDir()} })
	})
	all := restd.Versions()
	for _, version := range []string{all[0], all[len(all)-1]} { // the two forms of answers
		t.Run("through slurmrestd "+version, func(t *testing.T) {
			providertest.Run(t, slurm.Step, func(t *testing.T) providertest.Host {
				h := slurmtest.New(t)
				return untried{suite{h, t, ""}, h.Serve(version, "")}
			})
		})
	}
}

// untried is a cluster that is asked through slurmrestd, which knows no trial.
type untried struct {
	suite
	rest *slurmtest.REST
}

func (u untried) Untried() {}

func (u untried) Provider(mark string) provider.Provider {
	o := through(u.Host, u.rest)
	o.Mark = mark
	return open(u.t, o)
}

// through are the options of a provider that asks a slurmrestd.
func through(h *slurmtest.Host, r *slurmtest.REST) slurm.Options {
	o := options(h)
	o.Bin, o.REST = "", &slurm.REST{URL: r.URL}
	return o
}
