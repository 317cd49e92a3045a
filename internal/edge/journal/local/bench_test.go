package local

import (
	"bytes"
	"fmt"
	"testing"

	"sluice.dev/sluice/internal/edge/journal"
)

// size of a record in the benchmarks, in bytes: that of a Claimed fact.
const size = 128

func BenchmarkAppend(b *testing.B) {
	for _, n := range []int{1, 64, 256} {
		b.Run(fmt.Sprint("batch=", n), func(b *testing.B) {
			j, err := Open(newPlace(b).dir, Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer j.Close()
			if _, err := j.Replay(nil, nil); err != nil {
				b.Fatal(err)
			}
			records := make([][]byte, n)
			for i := range records {
				records[i] = bytes.Repeat([]byte{byte(i)}, size)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := j.Append(records); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "records/s")
		})
	}
}

func BenchmarkReplay(b *testing.B) {
	const records = 1_000_000
	p := newPlace(b)
	j, err := Open(p.dir, Options{})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := j.Replay(nil, nil); err != nil {
		b.Fatal(err)
	}
	batch := make([][]byte, 256)
	for n := 0; n < records; n += len(batch) {
		for i := range batch {
			batch[i] = bytes.Repeat([]byte{byte(n)}, size)
		}
		if _, err := j.Append(batch[:min(len(batch), records-n)]); err != nil {
			b.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		j, err := Open(p.dir, Options{})
		if err != nil {
			b.Fatal(err)
		}
		end, err := j.Replay(nil, func(journal.Position, []byte) error { return nil })
		if err != nil || end.Seq != records {
			b.Fatal(end, err)
		}
		if err := j.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(records)*float64(b.N)/b.Elapsed().Seconds(), "records/s")
}
