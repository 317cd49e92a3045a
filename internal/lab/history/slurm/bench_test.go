package slurm

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"sluice.dev/sluice/internal/lab/history"
)

// dump writes a dump of so many jobs on 400 nodes with eight GPUs, each with a step, in the form that Help asks for.
func dump(w io.Writer, jobs int) {
	rng := rand.New(rand.NewPCG(1, 2))
	const from = 1_790_000_000
	fmt.Fprintln(w, "JobIDRaw\x1fJobID\x1fUser\x1fAccount\x1fPartition\x1fQOS\x1fState\x1fSubmit\x1fEligible\x1fStart\x1fEnd\x1f"+
		"Elapsed\x1fTimelimit\x1fAllocNodes\x1fAllocTRES\x1fReqTRES\x1fNodeList\x1fExitCode\x1fSuspended\x1fDBIndex")
	ends := [400]int{}
	for i := range jobs {
		node := rng.IntN(len(ends))
		submit := from + i*3
		start := max(submit, ends[node])
		long := 1 + int(float64(600)*rng.ExpFloat64())
		gpus := 1 + rng.IntN(8)
		ends[node] = start + long
		tres := fmt.Sprintf("billing=%d,cpu=%d,gres/gpu:a100=%d,gres/gpu=%d,mem=%dM,node=1", gpus, 8*gpus, gpus, gpus, 1000*rng.IntN(500))
		fmt.Fprintf(w, "%d\x1f%d\x1fuser%d\x1facc%d\x1fgpu\x1fnormal\x1fCOMPLETED\x1f%d\x1f%d\x1f%d\x1f%d\x1f%s\x1f1-00:00:00\x1f1\x1f"+
			"%s\x1f%s\x1fgpu-%03d\x1f0:0\x1f00:00:00\x1f%d\n", i+1, i+1, rng.IntN(300), rng.IntN(40), submit, submit, start, start+long,
			clockLength(time.Duration(long)*time.Second), tres, tres, node, i+77)
		fmt.Fprintf(w, "%d.batch\x1f%d.batch\x1f\x1facc\x1f\x1f\x1fCOMPLETED\x1f%d\x1f%d\x1f%d\x1f%d\x1f00:10:00\x1f\x1f1\x1f"+
			"cpu=1\x1f\x1fgpu-%03d\x1f0:0\x1f\x1f%d\n",
			i+1, i+1, start, start, start, start+long, node, i+77)
	}
}

// BenchmarkRead: dumps of 100,000 jobs and of a million, from text to history.
func BenchmarkRead(b *testing.B) {
	for _, jobs := range []int{100_000, 1_000_000} {
		var text bytes.Buffer
		dump(&text, jobs)
		b.Run(fmt.Sprint(jobs), func(b *testing.B) {
			b.SetBytes(int64(text.Len()))
			for range b.N {
				book := history.NewBook(history.Options{})
				if err := Read(book, bytes.NewReader(text.Bytes()), "x"); err != nil {
					b.Fatal(err)
				}
				h, err := book.Close()
				if err != nil || len(h.Runs) != jobs {
					b.Fatal(err)
				}
				runtime.KeepAlive(h)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(jobs), "ns/job")
		})
	}
}
