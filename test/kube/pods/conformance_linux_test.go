//go:build kubernetes

package pods

import (
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/executor/executortest"
	"sluice.dev/sluice/test/kube/plane"
)

// TestConformance runs the suite that all executors pass on a real API server and a real scheduler: devices of DRA in a namespace that enforces restricted Pod security.
func TestConformance(t *testing.T) {
	p := plane.Of(t)
	executortest.Run(t, false, func(t *testing.T) executortest.Harness {
		w := newWorld(t, p, true)
		return executortest.Harness{
			Fixed: true,
			Open:  func(deliver func(protocol.Message)) executor.Executor { return w.open(deliver) },
			Launch: func(p executortest.Program) job.Launch {
				switch p {
				case executortest.Quick:
					return job.Launch{Image: "example.com/work:1", Command: []string{"true"}}
				case executortest.Failing:
					return script("echo trying >&2; echo it broke >&2; exit 3")
				case executortest.Polite:
					return script("trap 'exit 85' TERM; p 5; while :; do sleep 0.05; done")
				default:
					return script("trap '' TERM; p 5; while :; do sleep 0.05; done")
				}
			},
			Notice: w.notice,
			Kill: func(tok job.Token) {
				note, err := w.dir(tok).ReadNote()
				if err != nil {
					w.Fatal(err)
				}
				if err := syscall.Kill(note.PID, syscall.SIGKILL); err != nil {
					w.Fatal(err)
				}
				w.p.Pod(w, w.ns, w.podName(tok), "is over", func(p *corev1.Pod) bool {
					return p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded
				})
			},
		}
	})
}
