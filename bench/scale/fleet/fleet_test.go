package fleet

import (
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// BenchmarkFleet is what a subjob costs from its window to its commit, everybody's part in it, in a fleet that is busy. The
// time to boot and fill it is reported apart.
//
//	go test -run '^$' -bench 'Fleet/sja/nodes=1000$' -benchtime 20000x -cpuprofile /tmp/p ./bench/scale/fleet
func BenchmarkFleet(b *testing.B) {
	for _, negotiates := range []bool{false, true} {
		for _, n := range []int{100, 1000, 3000, 10_000} {
			b.Run(fmt.Sprintf("%s/nodes=%d", map[bool]string{false: "sja", true: "jasda"}[negotiates], n), func(b *testing.B) {
				if n > 1000 && testing.Short() {
					b.Skip("it takes long to set up; run it without -short")
				}
				begin := time.Now()
				f, err := New(Options{Nodes: n, Negotiates: negotiates, Seed: 1})
				if err != nil {
					b.Fatal(err)
				}
				booted := time.Now()
				if err := f.Fill(b.Context()); err != nil {
					b.Fatal(err)
				}
				filled := time.Now()
				before, used := f.Counts(), processor(b)
				b.ReportAllocs()
				b.ResetTimer()
				if err := f.Go(b.Context(), int64(b.N)); err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				after := f.Counts()
				done := float64(after.Done - before.Done)
				b.ReportMetric(done/b.Elapsed().Seconds(), "subjobs/s")
				b.ReportMetric(done/(processor(b)-used).Seconds(), "subjobs/cpu-s") // of all threads, so that neighbours do not count
				b.ReportMetric(float64(after.Steps-before.Steps)/done, "steps/subjob")
				b.ReportMetric(booted.Sub(begin).Seconds(), "boot-s")
				b.ReportMetric(float64(before.Done)/filled.Sub(booted).Seconds(), "fill-subjobs/s")
				b.ReportMetric(float64(f.Live()), "live-jobs")
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				b.ReportMetric(float64(m.HeapAlloc)/(1<<20), "heap-MiB")
				b.ReportMetric(float64(m.HeapSys)/(1<<20), "peak-MiB")
			})
		}
	}
}

// processor is the time that this process has had on any processor.
func processor(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
