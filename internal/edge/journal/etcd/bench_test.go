//go:build etcd && linux

package etcd

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"sluice.dev/sluice/internal/edge/journal"
	"sluice.dev/sluice/internal/edge/journal/etcd/etcdtest"
	"sluice.dev/sluice/internal/edge/journal/local"
)

// BenchmarkAppend compares Appends of one to 64 records of 300 bytes to etcd with those to the local journal, in one run: members and
// journal are on one disk and sync, all on this machine.
func BenchmarkAppend(b *testing.B) {
	for _, n := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("local/records=%d", n), func(b *testing.B) {
			j, err := local.Open(b.TempDir(), local.Options{})
			if err != nil {
				b.Fatal(err)
			}
			appends(b, j, n)
		})
	}
	for _, members := range []int{1, 3} {
		o := Options{Prefix: "/bench", Depose: true}
		for _, m := range etcdtest.Start(b, members, false) {
			o.Endpoints = append(o.Endpoints, m.Endpoint)
		}
		for _, n := range []int{1, 8, 64} {
			b.Run(fmt.Sprintf("members=%d/records=%d", members, n), func(b *testing.B) {
				j, err := Open(b.Context(), o)
				if err != nil {
					b.Fatal(err)
				}
				appends(b, j, n)
			})
		}
	}
}

func appends(b *testing.B, j journal.Journal, n int) {
	if _, err := j.Replay(nil, func(journal.Position, []byte) error { return nil }); err != nil {
		b.Fatal(err)
	}
	batch := make([][]byte, n)
	for i := range batch {
		batch[i] = make([]byte, 300)
	}
	var took []time.Duration
	for b.Loop() {
		begun := time.Now()
		if _, err := j.Append(batch); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(begun))
	}
	slices.Sort(took)
	at := func(permille int) float64 { return float64(took[(len(took)-1)*permille/1000].Microseconds()) / 1000 }
	b.ReportMetric(at(500), "p50-ms")
	b.ReportMetric(at(990), "p99-ms")
	b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds(), "records/s")
	b.ReportMetric(0, "ns/op")
	if err := j.Close(); err != nil {
		b.Fatal(err)
	}
}
