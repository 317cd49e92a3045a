package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func TestKilledBeforeTheFirstJob(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, three)
	for wait := range 4 { // in the middle of the start too
		d.launch()
		time.Sleep(time.Duration(wait) * 4 * time.Millisecond)
		d.kill()
	}
	d.start()
	d.kill()
	d.start()
	d.submit(spec("first", "items: {total: 10, perItem: 1ms}", each(":")), "--wait")
	d.once("first", 10)
}

// A hundred submissions at once, each repeated until it is acknowledged, with the daemon killed in between: each job is
// there once and each acknowledged one for ever.
func TestKilledWhileAHundredSubmit(t *testing.T) {
	t.Parallel()
	d := up(t, "sim:custom,mem=64Mi+64Mi+64Mi+64Mi")
	const jobs = 100
	work := make(chan int)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range work {
				name := fmt.Sprintf("job-%d", i)
				text := []byte(spec(name, "items: {total: 4, perItem: 1ms, grid: 4}", each(":")))
				for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
					_, errs, code := d.as(text, "submit", "-f", "-", "--request-id", "request-"+name)
					if code == 0 {
						break
					}
					if time.Now().After(end) {
						t.Errorf("%s: %s", name, errs)
						break
					}
				}
			}
		})
	}
	for i := range jobs {
		work <- i
		if i%25 == 20 {
			d.kill()
			d.launch()
		}
	}
	close(work)
	all.Wait()
	var waits string
	defer func() {
		if waits != "" {
			t.Logf("one that waits: %s", waits)
		}
	}()
	d.until("all jobs have completed", func() bool {
		out, _, code := d.sluice("jobs", "-o", "json")
		var list []jobView
		if code != 0 || json.Unmarshal([]byte(out), &list) != nil {
			return false
		}
		if len(list) != jobs {
			t.Fatalf("%d jobs, want %d", len(list), jobs)
		}
		for _, j := range list {
			if j.State == "FAILED" {
				t.Fatalf("%s failed: %s\n%s", j.Name, j.Reason, d.must("job", j.Name))
			}
			if j.State != "COMPLETED" {
				waits = d.must("explain", j.Name)
				return false
			}
		}
		waits = ""
		return true
	})
	for i := range jobs {
		d.once(fmt.Sprintf("job-%d", i), 4)
	}
}

func TestARetriedSubmitIsTheSameJob(t *testing.T) {
	t.Parallel()
	d := up(t, three)
	text := spec("twice", "items: {total: 10, perItem: 500ms}", each(":")) // more than any machine is late by
	says(t, d.submit(text, "--request-id", "r1"), "accepted")
	says(t, d.submit(text, "--request-id", "r1"), "twice")
	says(t, d.submit(text), "twice")
	before := d.done("twice")
	d.kill()
	d.start()
	d.submit(text, "--request-id", "r1")
	d.submit(text)
	if n := strings.Count(d.must("jobs", "-o", "name"), "twice"); n != 1 {
		t.Errorf("%d jobs, want 1", n)
	}
	if j := d.job("twice"); j.Subjobs != before.Subjobs {
		t.Errorf("%d subjobs, %d before it was submitted again", j.Subjobs, before.Subjobs)
	}
	other := spec("twice", "items: {total: 11, perItem: 500ms}", each(":"))
	_, errs, code := d.as([]byte(other), "submit", "-f", "-")
	if code == 0 {
		t.Error("another job of that name was accepted")
	}
	says(t, errs, `job "twice"`, "other content", "choose another name")
}

// A subjob goes on while its daemon is gone, however it went, and the next one takes it over.
func TestSubjobsOutliveTheirDaemon(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGKILL} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			d := up(t, three)
			d.submit(spec("long", "items: {total: 40, perItem: 1s, grid: 40}", each("sleep 0.03")))
			d.running("long", 1)
			d.end(sig)
			time.Sleep(200 * time.Millisecond)
			d.start()
			if j := d.done("long"); j.Subjobs != 1 || j.Lost != 0 {
				t.Errorf("%d subjobs, %d lost; want the one, taken over\n%s", j.Subjobs, j.Lost, d.must("job", "long"))
			}
			d.once("long", 40)
		})
	}
}

// A rigid job is promised a time behind what runs; the promise outlives the daemon.
func TestKilledWhileARigidJobHasAReservation(t *testing.T) {
	t.Parallel()
	d := up(t, "sim:custom,mem=64Mi", "--rigid", "easy")
	d.submit(spec("before", "items: {total: 20, perItem: 600ms, grid: 20}", each("sleep 0.4")))
	d.running("before", 1)
	d.submit(spec("head", "rigid: {walltime: 2s}", `echo whole > "$SLUICE_OUTPUT_DIR/o"`))
	d.until("the rigid job has a reservation", func() bool { return strings.Contains(d.must("slices", "-o", "json"), "rigid") })
	d.kill()
	d.start()
	d.submit(spec("behind", "items: {total: 10, perItem: 1ms}", each(":")))
	d.done("before")
	d.done("head")
	d.done("behind")
	if out := d.must("output", "head", "--cat"); out != "whole\n" {
		t.Errorf("output %q", out)
	}
}

func TestKilledWhileASliceIsPaused(t *testing.T) {
	t.Parallel()
	d := up(t, "sim:custom,mem=64Mi")
	slice := strings.TrimSpace(d.must("slices", "-o", "name"))
	d.must("pause", slice)
	d.submit(spec("waits", "items: {total: 10, perItem: 1ms}", each(":")))
	d.kill()
	d.start()
	if j := d.job("waits"); j.Running != 0 || j.Subjobs != 0 || j.Reason == "" {
		t.Errorf("a job on a paused slice: %+v", j)
	}
	d.must("resume", slice)
	d.done("waits")
	// A pause with an end ends by itself.
	d.must("pause", slice, "--for", "1s")
	d.submit(spec("later", "items: {total: 10, perItem: 1ms}", each(":")))
	d.kill()
	d.start()
	if j := d.done("later"); j.History[0].Start.IsZero() {
		t.Errorf("no start: %+v", j)
	}
}

// Whoever waits for a job or follows what it writes outlasts a daemon that is killed and one that stops: each line comes
// once, in its subjob's order, and the end as well.
func TestFollowersOutlastARestart(t *testing.T) {
	t.Parallel()
	d := up(t, "sim:custom,mem=64Mi+64Mi")
	d.submit(spec("talks", "items: {total: 40, perItem: 300ms, grid: 4, parallelism: 2}",
		each("echo unit $i; "+d.opened("talks")+"; sleep 0.1"), "maxFailures: 1000"))
	type ended struct {
		errs string
		code int
	}
	follow, wait, followed, waited := make(chan ended, 1), make(chan ended, 1), new(logged), new(logged)
	for out, args := range map[*logged][]string{followed: {"logs", "talks", "-f"}, waited: {"wait", "talks"}} {
		c := map[*logged]chan ended{followed: follow, waited: wait}[out]
		go func() {
			errs, code := d.into(out, nil, args...)
			c <- ended{errs, code}
		}()
	}
	// It follows what runs when it comes: nothing may be over by then.
	d.until("what it writes is followed", func() bool { return followed.String() != "" })
	d.write("talks", "")
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		before := d.job("talks").Progress
		d.until("it went on", func() bool {
			j := d.job("talks")
			return j.Progress > before || j.State == "COMPLETED"
		})
		d.end(sig)
		d.start()
	}
	w := <-wait
	if w.code != 0 || !strings.Contains(waited.String(), "talks COMPLETED") {
		t.Errorf("wait: exit %d\n%s%s", w.code, waited, w.errs)
	}
	f := <-follow
	// A subjob that outgrew its lease, as on a busy machine, has begun what is behind its last cut point, and another one does it again.
	told, last := map[int]bool{}, map[string]int{}
	for line := range strings.Lines(followed.String()) {
		subjob, text, _ := strings.Cut(line, " | ")
		var unit int
		if _, err := fmt.Sscanf(text, "unit %d\n", &unit); err != nil {
			t.Errorf("line %q: %v", line, err)
		}
		if before, ok := last[subjob]; ok && unit != before+1 {
			t.Errorf("subjob %s: unit %d was told behind unit %d", subjob, unit, before)
		}
		told[unit], last[subjob] = true, unit
	}
	for i := range 40 {
		if !told[i] {
			t.Errorf("unit %d was not told", i)
		}
	}
	for _, s := range d.job("talks").History {
		if to, ok := last[s.Subjob]; s.Outcome == "done" && (!ok || int64(to) != s.To-1) {
			t.Errorf("subjob %s has done [%d,%d), and was followed to unit %d", s.Subjob, s.From, s.To, to)
		}
	}
	if f.code != 0 || t.Failed() {
		t.Errorf("logs: exit %d\n%s%s", f.code, followed, f.errs)
	}
}
