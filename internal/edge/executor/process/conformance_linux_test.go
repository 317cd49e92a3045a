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
)

func TestConformance(t *testing.T) {
	t.Parallel()
	for name, iso := range map[string]*shim.Isolation{"best": nil, "tree only": treeOnly()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			executortest.Run(t, false, func(t *testing.T) executortest.Harness { return harness(t, iso) })
		})
	}
}

func harness(t *testing.T, iso *shim.Isolation) executortest.Harness {
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	data := t.TempDir()
	t.Cleanup(func() { killAll(data) })
	return executortest.Harness{
		Open: func(deliver func(protocol.Message)) executor.Executor {
			ex, err := process.New(process.Options{DataDir: data, ShimPath: path, Deliver: deliver, Isolation: iso, Report: 100 * time.Millisecond})
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
