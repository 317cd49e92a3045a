package bolt

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/archive"
	"sluice.dev/sluice/internal/edge/archive/archivetest"
)

// jobsThere is how many jobs the benchmarks' archive has, in batches of batchOf.
const jobsThere, batchOf = 50_000, 1000

// scattered names jobs so that neighbours in time lie apart in the file, as people's names do.
func scattered(i int) job.ID { return job.ID(fmt.Sprintf("%016x", uint64(i)*0x9e3779b97f4a7c15)) }

// batch is the parts of n jobs, the first of them number from, with as many bytes of facts as a job of one subjob has.
func batch(from, n int) []archive.Part {
	var parts []archive.Part
	for i := range n {
		p := archivetest.Job(scattered(from+i), 1, quantity.Instant(from+i), quantity.Instant(from+i+1))
		for k := range p {
			p[k].Data = append(p[k].Data, bytes.Repeat([]byte{'x'}, 400)...)
		}
		parts = append(parts, p...)
	}
	return parts
}

// BenchmarkArchive is what the archive of the live driver costs with many jobs in it: filing a thousand or 64 at once, durably, taking
// a part back, a page of a hundred, opening the file; and what a job takes on disk.
func BenchmarkArchive(b *testing.B) {
	dir := b.TempDir()
	a := reopened(b, dir)
	there := 0
	file := func(n int) {
		if err := a.File(batch(there, n)); err != nil {
			b.Fatal(err)
		}
		there += n
	}
	for there < jobsThere {
		file(batchOf)
	}
	for _, n := range []int{batchOf, 64} {
		b.Run(fmt.Sprint("file=", n), func(b *testing.B) {
			for b.Loop() {
				file(n)
			}
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
		})
	}
	b.Run("recall", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			if _, ok, err := a.Recall(protocol.Zone, scattered(i*7919%jobsThere)); !ok || err != nil {
				b.Fatal(ok, err)
			}
		}
	})
	b.Run("page", func(b *testing.B) {
		for b.Loop() {
			if p, err := a.Page(archive.End(), 100, 0, nil); err != nil || len(p.Entries) != 100 {
				b.Fatal(len(p.Entries), err)
			}
		}
	})
	closing(b, a, nil)
	b.Run("open", func(b *testing.B) {
		for b.Loop() {
			closing(b, reopened(b, dir), nil)
		}
		files, err := filepath.Glob(filepath.Join(dir, "*.db"))
		if err != nil || len(files) == 0 {
			b.Fatal(files, err)
		}
		sizes := make([]int64, len(files))
		for i, f := range files {
			info, err := os.Stat(f)
			if err != nil {
				b.Fatal(err)
			}
			sizes[i] = info.Size()
		}
		b.ReportMetric(float64(slices.Max(sizes))/float64(there), "B/job")
	})
}
