//go:build kubernetes

package kubernetes_test

import (
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/cluster"
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/executor/executortest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	executortest.Run(t, false, func(t *testing.T) executortest.Harness { return newWorld(t).harness() })
}

// harness runs the suite's programs. Who kills a supervisor waits until the kubelet has said that the Pod is over.
func (w *world) harness() executortest.Harness {
	return executortest.Harness{
		Fixed: true,
		Open:  func(deliver func(protocol.Message)) executor.Executor { return w.open(deliver) },
		Launch: func(p executortest.Program) job.Launch {
			l := job.Launch{Image: "busybox"}
			switch p {
			case executortest.Quick:
				l.Command = []string{"true"}
			case executortest.Failing:
				l.Command = script("echo trying >&2; echo it broke >&2; exit 3")
			case executortest.Polite:
				l.Command = script("trap 'exit 85' TERM; p 5; while :; do sleep 0.05; done")
			default:
				l.Command = script("trap '' TERM; p 5; while :; do sleep 0.05; done")
			}
			return l
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
			w.until("the Pod is over", func() bool {
				p, err := w.client.CoreV1().Pods("default").Get(w.Context(), cluster.PodName("main", tok), metav1.GetOptions{})
				return err == nil && (p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded)
			})
		},
	}
}

// until waits for something that must come.
func (w *world) until(what string, is func() bool) {
	w.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			w.Fatalf("not within a minute: %s", what)
		}
	}
}
