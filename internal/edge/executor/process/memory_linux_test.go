package process_test

import (
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/edge/executor/process"
)

func TestASharedHeapIsNotTooMuch(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3 to fork with")
	}
	both(t, func(t *testing.T, change func(*process.Options)) {
		b := newBench(t, change)
		// 40 MiB, seen by four workers and by every program that is started, on a slice of 64 MiB.
		m := lease(time.Minute, python, "-c", `
import os, subprocess, time
data = bytearray(40 << 20)
workers = []
for _ in range(4):
    pid = os.fork()
    if pid == 0:
        sum(data[::65536])
        time.sleep(0.7)
        os._exit(0)
    workers.append(pid)
for _ in range(40):
    subprocess.run(["true"], close_fds=False)
    os.system("true")
for pid in workers:
    os.waitpid(pid, 0)`)
		m.Body.(*protocol.Work).Demand[trp.Memory] = 64 << 20
		if peak := b.run(m, job.Done).Peak[trp.Memory]; peak < 40<<20 {
			t.Errorf("peak %d, want at least the 40 MiB it had", peak)
		}
	})
}

func TestGrowthIsEndedInTime(t *testing.T) {
	both(t, func(t *testing.T, change func(*process.Options)) {
		const limit, perSecond = 100, 400 // MiB
		b := newBench(t, change)
		m := lease(time.Minute, self(t, "grow", strconv.Itoa(perSecond))...)
		m.Body.(*protocol.Work).Demand[trp.Memory] = limit << 20
		r := b.run(m, job.MemoryKilled)
		peak := int64(r.Peak[trp.Memory])
		t.Logf("ended %v after its start with %.1f MiB more than it may have", r.Ran().Round(time.Millisecond), float64(peak)/(1<<20)-limit)
		// A machine that is busy with other tests looks late.
		if peak <= limit<<20 || peak > 2*limit<<20 {
			t.Errorf("peak %d, want above the limit of %d MiB and not far", peak, limit)
		}
		if !strings.Contains(r.Detail, strconv.Itoa(limit<<20)) {
			t.Errorf("detail %q, want the limit", r.Detail)
		}
	})
}
