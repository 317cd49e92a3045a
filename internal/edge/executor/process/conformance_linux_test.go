package process_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/executor/executortest"
	"sluice.dev/sluice/internal/edge/executor/process"
	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/executor/shim/foreign"
	"sluice.dev/sluice/internal/edge/store/files"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	for name, iso := range map[string]*shim.Isolation{"best": nil, "tree only": treeOnly()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			executortest.Run(t, false, func(t *testing.T) executortest.Harness { return harness(t, iso, nil) })
		})
	}
	t.Run("with a store", func(t *testing.T) {
		t.Parallel()
		executortest.Run(t, false, func(t *testing.T) executortest.Harness { return harness(t, nil, newStore(t)) })
	})
}

func TestHostile(t *testing.T) {
	t.Parallel()
	for name, iso := range map[string]*shim.Isolation{"best": nil, "tree only": treeOnly()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			executortest.Hostile(t, func(t *testing.T) executortest.Harness { return harness(t, iso, nil) })
		})
	}
	t.Run("with a store", func(t *testing.T) {
		t.Parallel()
		executortest.Hostile(t, func(t *testing.T) executortest.Harness { return harness(t, nil, newStore(t)) })
	})
}

// TestHostileUnprivileged: a daemon that is not root may not move, nor look into, what a program has closed.
func TestHostileUnprivileged(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("this is not root: the test above says it")
	}
	asNobody(t, "TestHostile")
}

// TestCrowds with the best that holds processes together here, and without it.
func TestCrowds(t *testing.T) {
	for name, iso := range map[string]*shim.Isolation{"best": nil, "tree only": treeOnly()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			executortest.Crowds(t, func(t *testing.T) executortest.Harness { return harness(t, iso, nil) })
		})
	}
}

// TestCrowdsUnprivileged: a daemon that is not root has other means, if any.
func TestCrowdsUnprivileged(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("this is not root: the test above says it")
	}
	t.Parallel()
	asNobody(t, "TestCrowds")
}

// harness of the process kind; what subjobs leave goes to a store, if there is one.
func harness(t *testing.T, iso *shim.Isolation, keep *files.Dir) executortest.Harness {
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	data := t.TempDir()
	t.Cleanup(func() {
		killAll(data)
		_ = foreign.Remove(data) // what a program has made so that nobody may remove it, too
	})
	return executortest.Harness{
		Open: func(deliver func(protocol.Message)) executor.Executor {
			o := process.Options{DataDir: data, ShimPath: path, Deliver: deliver, Isolation: iso, Report: 100 * time.Millisecond}
			if keep != nil {
				o.Store, o.Keep = keep, true
			}
			ex, err := process.New(o)
			if err != nil {
				t.Fatal(err)
			}
			return ex
		},
		Launch: func(p executortest.Program) job.Launch {
			switch p {
			case executortest.Quick:
				return job.Launch{Command: []string{"true"}}
			case executortest.Failing:
				return job.Launch{Command: []string{"sh", "-c", "echo trying >&2; echo it broke >&2; exit 3"}}
			default:
				return job.Launch{Command: self(t, string(p))}
			}
		},
		Script: func(script string) job.Launch { return job.Launch{Command: []string{"sh", "-c", script}} },
		Living: func(job.Token) int { return len(living(data)) },
		Notice: func(tok job.Token) (n executor.Notice, ok bool) {
			return readNotice(t, shim.Dir(filepath.Join(data, "runs", tok.String())).Notice())
		},
		Kill: func(tok job.Token) {
			note, err := shim.Dir(filepath.Join(data, "runs", tok.String())).ReadNote()
			if err != nil {
				t.Fatal(err)
			}
			kill(t, note.PID)
		},
	}
}
