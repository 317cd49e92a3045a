//go:build kubernetes

package measure

import (
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/cluster"
	"sluice.dev/sluice/test/kube/plane"
)

// TestLowPriorityJobsAsFillers: without Sluice, what fills the hosts' gaps with low priority gives way where devices are extended
// resources, and blocks the hosts under DRA until it ends by itself.
func TestLowPriorityJobsAsFillers(t *testing.T) {
	load := Load{Machines: 3, Pods: 8, Every: 250 * time.Millisecond, Runs: 2, Seed: 1}
	for _, by := range []By{DRA, Extended} {
		t.Run(string(by), func(t *testing.T) {
			p := plane.Start(t, plane.With(plane.Scheduler, plane.Controllers, plane.Kwok))
			w := newWorld(t, p, by, load)
			if alone := w.hosts(plane.Within); alone.Never != 0 {
				t.Fatalf("with nothing beside them %d hosts' Pods did not start: %v", alone.Never, alone.Started)
			} else {
				t.Logf("alone: %v", alone.Started)
			}
			w.fillWithJobs(3600)
			patience := plane.Within
			if by == DRA {
				patience = 5 * time.Second // nothing is waited for here: they would wait for an hour
			}
			beside := w.hosts(patience)
			t.Logf("beside low-priority Jobs: %v, %d never", beside.Started, beside.Never)
			if by == DRA && len(beside.Started) != 0 {
				t.Errorf("%d hosts' Pods started under DRA beside low-priority Jobs: somebody preempts for devices now",
					len(beside.Started))
			}
			if by == Extended && beside.Never != 0 {
				t.Errorf("%d hosts' Pods did not start beside low-priority Jobs", beside.Never)
			}
		})
	}
}

// TestSluiceAsFiller: with all devices taken by subjobs every one of the hosts' Pods starts, under DRA as well, and none waits for a
// subjob to end by itself: those run for hours.
func TestSluiceAsFiller(t *testing.T) {
	load := Load{Machines: 3, Pods: 8, Every: 250 * time.Millisecond, Runs: 2, Seed: 1}
	for _, by := range []By{DRA, Extended} {
		t.Run(string(by), func(t *testing.T) {
			p := plane.Start(t, plane.With(plane.Scheduler, plane.Controllers, plane.Kwok), plane.Leaves(cluster.LabelOperator))
			w := newWorld(t, p, by, load)
			s := w.startSluice(5*time.Second, time.Second, 200*time.Millisecond)
			s.fill(3, 1_000_000, time.Second)
			beside := w.hosts(plane.Within)
			t.Logf("beside Sluice: %v, %d never; subjobs over: %v\n%s\n%s", beside.Started, beside.Never, s.crowd.ended(),
				partsTable(beside.Parts), strings.Join(beside.Longest, "\n"))
			if beside.Never != 0 {
				t.Errorf("%d hosts' Pods did not start beside Sluice", beside.Never)
			}
		})
	}
}

// TestProgramsThatDoNotCare: subjobs whose programs give nothing back when they are told are ended when their notice is over, and no
// host's Pod waits for longer than that and what the scheduler takes.
func TestProgramsThatDoNotCare(t *testing.T) {
	load := Load{Machines: 1, Pods: 3, Every: 250 * time.Millisecond, Runs: 2, Seed: 1}
	p := plane.Start(t, plane.With(plane.Scheduler, plane.Controllers, plane.Kwok), plane.Leaves(cluster.LabelOperator))
	w := newWorld(t, p, DRA, load)
	s := w.startSluice(3*time.Second, time.Second, time.Hour)
	s.fill(1, 1_000_000, time.Second)
	beside := w.hosts(plane.Within)
	over := s.crowd.ended()
	t.Logf("beside Sluice: %v, %d never; subjobs over: %v", beside.Started, beside.Never, over)
	if beside.Never != 0 || over[job.DeadlineKilled] == 0 || over[job.Done] > 0 {
		t.Errorf("%d hosts' Pods did not start; subjobs ended %v, want those in the way at the end of their notice", beside.Never, over)
	}
}
