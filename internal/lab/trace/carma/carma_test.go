package carma

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/lab/trace"
	"sluice.dev/sluice/internal/lab/trace/tracetest"
)

var suite = tracetest.Suite{
	Format: Format(),
	File:   "summary.csv",
	Sample: `Model,Max memory.used [MB],Faketensor Estimate [MB],Max memory.used [GB],FakeTensor Estimation(GB),FakeTensor overhead,Execution time(m),Run folder,Time,Script,batch_size,epochs,GB after forward,GB after backward,Execution time(s),Execution time(h)
bert,19828.0,,19.4,,,14.9,1_bert.py,1,bert.py,,,,,894.5,0.2
net,666.0,64.11,0.6,0.06,1.06,1.4,2_net.py_--batch_size_32_--epochs_1,2,net.py,,,0.05,0.06,85.27,0.02
net,720.5,118,0.7,0.1,1.08,0.7,3_net.py_--batch_size_x,3,net.py,64.0,1,0.1,0.1,46,0.01
`,
	Want: []trace.Record{
		footprint(2, trace.FootprintRecord{Program: "bert", Batch: trace.Unknown, Peak: 19828, Estimate: trace.Unknown,
			Ran: 894500 * time.Millisecond}),
		footprint(3, trace.FootprintRecord{Program: "net", Batch: 32, Peak: 666, Estimate: 65, Ran: 85270 * time.Millisecond}),
		footprint(4, trace.FootprintRecord{Program: "net", Batch: 64, Peak: 721, Estimate: 118, Ran: 46 * time.Second}),
	},
	Broken: []tracetest.Broken{
		{Name: "wrong number", Old: "666.0", New: "much", Says: `Max memory.used [MB] is "much"`},
		{Name: "no time", Old: "894.5", New: "", Says: "Execution time(s)"},
		{Name: "missing column", Old: ",epochs", New: "", Place: "1:1", Says: "the header lacks epochs"},
	},
}

func footprint(line int, f trace.FootprintRecord) trace.Record {
	return trace.Record{Kind: trace.Footprint, Line: line, At: trace.Unknown, Footprint: f}
}

func TestConforms(t *testing.T)   { tracetest.Run(t, suite) }
func FuzzCarma(f *testing.F)      { tracetest.Fuzz(f, suite) }
func BenchmarkCarma(b *testing.B) { tracetest.Bench(b, suite) }

// 41 runs, 34 of them with an estimate, which never is too much.
func TestPublishedFootprints(t *testing.T) {
	estimates, over, batches := 0, 0, 0
	var most int64
	n := tracetest.Each(t, Format(), "carma/ehsan-summary.csv", func(r *trace.Record) {
		f := r.Footprint
		most = max(most, f.Peak)
		if f.Estimate != trace.Unknown {
			estimates++
		}
		if f.Estimate > f.Peak {
			over++
		}
		if f.Batch != trace.Unknown {
			batches++
		}
	})
	if n != 41 || estimates != 34 || over != 0 || most != 28606 || batches < 30 {
		t.Errorf("%d runs, %d estimated, %d of those too high, %d with a batch size, at most %d MiB", n, estimates, over, batches, most)
	}
}
