package storetest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"sluice.dev/sluice/internal/edge/store"
	"sluice.dev/sluice/internal/edge/store/tree"
)

// Bench measures putting and getting one large file and a directory of many small ones, and says beside it what cp with a sync, and tar,
// take for the same on the same machine: x-plain is how many times as long the store took.
func Bench(b *testing.B, k Kind) {
	for _, load := range []struct {
		name         string
		files, bytes int
	}{{"a checkpoint of 256 MiB", 1, 256 << 20}, {"a work directory of 2000 files and 16 MB", 2000, 16_000_000}} {
		from := filepath.Join(b.TempDir(), "from")
		for i := range load.files {
			path := filepath.Join(from, fmt.Sprint(i/100), fmt.Sprint(i))
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				b.Fatal(err)
			}
			if err := os.WriteFile(path, content(uint64(i), load.bytes/load.files), 0o644); err != nil {
				b.Fatal(err)
			}
		}
		plain := func(b *testing.B, script, to string) time.Duration {
			b.Helper()
			began := time.Now()
			if out, err := exec.Command("sh", "-c", script, "sh", from, to).CombinedOutput(); err != nil {
				b.Fatalf("%s: %v\n%s", script, err, out)
			}
			return time.Since(began)
		}
		measure := func(b *testing.B, script string, once func(b *testing.B, i int) error) {
			b.Helper()
			var ours, theirs time.Duration
			for i := range b.N {
				began := time.Now()
				if err := once(b, i); err != nil {
					b.Fatal(err)
				}
				ours += time.Since(began)
				theirs += plain(b, script, filepath.Join(b.TempDir(), "to"))
			}
			b.SetBytes(int64(load.bytes))
			b.ReportMetric(float64(ours)/float64(theirs), "x-plain")
			b.ReportMetric(float64(load.bytes)*float64(b.N)/ours.Seconds()/1e6, "MB/s-store")
			b.ReportMetric(float64(load.bytes)*float64(b.N)/theirs.Seconds()/1e6, "MB/s-plain")
		}
		b.Run("put "+load.name, func(b *testing.B) {
			p := k(b)
			s, err := p.Open()
			if err != nil {
				b.Fatal(err)
			}
			measure(b, `tar cf "$2" -C "$1" . && sync "$2"`, func(b *testing.B, i int) error {
				mark := filepath.Join(from, "mark") // else the second is there already
				if err := os.WriteFile(mark, []byte(fmt.Sprint(i)), 0o644); err != nil {
					return err
				}
				t, err := tree.Scan(from)
				if err != nil {
					return err
				}
				defer func() { _ = t.Close() }()
				_, err = s.Put(b.Context(), "", t)
				return err
			})
		})
		b.Run("get "+load.name, func(b *testing.B) {
			p := k(b)
			s, err := p.Open()
			if err != nil {
				b.Fatal(err)
			}
			t, err := tree.Scan(from)
			if err != nil {
				b.Fatal(err)
			}
			o, err := s.Put(b.Context(), "", t)
			if err != nil {
				b.Fatal(err)
			}
			measure(b, `cp -r "$1" "$2"`, func(b *testing.B, _ int) error {
				r, err := s.Open(b.Context(), o.Digest)
				if err != nil {
					return err
				}
				defer func() { _ = r.Close() }()
				_, _, err = tree.Restore(r, filepath.Join(b.TempDir(), "back"), tree.Limits{Bytes: 1 << 40, Entries: tree.MaxEntries})
				return err
			})
		})
	}
	b.Run("put 1 KiB, 200 of them", func(b *testing.B) {
		p := k(b)
		s, err := p.Open()
		if err != nil {
			b.Fatal(err)
		}
		for i := range b.N {
			for n := range 200 {
				if _, err := s.Put(b.Context(), store.Digest(""), bytes.NewReader(fmt.Appendf(nil, "%d %d %01000d", i, n, 0))); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}
