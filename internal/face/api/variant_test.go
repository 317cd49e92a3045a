package api

import (
	"math"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/score"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/edge/config"
)

// What of a piece a variant says in FuzzVariant.
const (
	saysRange = 1 << iota
	saysStart
	saysRun
	saysWall
)

// FuzzVariant: a variant with any numbers is taken exactly if it is a signal of interest or a whole piece by the plain rules, and then
// says what was sent. FuzzNegotiate has any bytes, of which few are a variant at all.
func FuzzVariant(f *testing.F) {
	const (
		begin  = 1_772_366_400 // 2026-03-01, in seconds
		second = int64(time.Second)
		all    = saysRange | saysStart | saysRun
	)
	add := func(says uint8, window uint64, from, to, start, run, wall, memory int64, worth float64, option uint8) {
		f.Add(says, window, from, to, start, run, wall, memory, worth, option)
	}
	add(0, 3, 0, 0, 0, 0, 0, 0, 0, 0)                                          // a signal
	add(saysWall, 3, 0, 0, 0, 0, 9*second, 1<<30, 0.5, 4)                      // that says what the piece would use
	add(0, 0, 0, 0, 0, 0, 0, 0, 0, 0)                                          // for no window
	add(all, 3, 0, 50, begin, second, 0, 0, 1, 0)                              // a piece
	add(all|saysWall, 3, 0, 50, begin, 10*second, 12*second, 1<<30, 0.25, 63)  // with all there is
	add(all|saysWall, 3, 0, 50, begin, 10*second, 10*second, 1<<30, 0.25, 64)  // the option's name is too long
	add(all|saysWall, 3, 0, 50, begin, 10*second, 10*second, 1<<30, 0.25, 1)   // as long as its run
	add(all|saysWall, 3, 0, 50, begin, 10*second, 10*second-1, 1<<30, 0.25, 1) // shorter than its run
	add(all|saysWall, 3, 0, 50, begin, 0, 10*second, 0, 0, 0)                  // without a run
	add(all, 3, 7, 7, begin, second, 0, 0, 0, 0)                               // of no unit
	add(all, 3, -1, 7, begin, second, 0, 0, 0, 0)                              // of units before the first
	add(all, 3, math.MinInt64, math.MaxInt64, begin, second, 0, 0, 0, 0)
	add(all, 3, 0, 7, begin, int64(config.MaxTime), 0, 0, 0, 0) // the longest
	add(all, 3, 0, 7, begin, int64(config.MaxTime)+1, 0, 0, 0, 0)
	add(all, 3, 0, 7, 946_684_800, second, 0, 0, 0, 0) // the first moment
	add(all, 3, 0, 7, 946_684_799, second, 0, 0, 0, 0)
	add(all, 3, 0, 7, 7_289_654_399, second, 0, 0, 0, 0) // the last second
	add(all, 3, 0, 7, 7_289_654_400, second, 0, 0, 0, 0)
	add(saysRange, 3, 0, 7, 0, 0, 0, 0, 0, 0) // neither signal nor piece
	add(saysStart, 3, 0, 0, begin, 0, 0, 0, 0, 0)
	add(saysRun, 3, 0, 0, 0, second, 0, 0, 0, 0)
	add(saysRange|saysRun, 3, 0, 7, 0, second, 0, 0, 0, 0)
	add(saysRange|saysStart, 3, 0, 7, begin, 0, 0, 0, 0, 0)
	add(saysStart|saysRun, 3, 0, 7, begin, second, 0, 0, 0, 0)
	add(0, 3, 0, 0, 0, 0, 0, int64(trp.MaxAmount), 0, 0) // the most memory
	add(0, 3, 0, 0, 0, 0, 0, int64(trp.MaxAmount)+1, 0, 0)
	add(0, 3, 0, 0, 0, 0, 0, -1, 0, 0)
	add(0, 3, 0, 0, 0, 0, 0, 0, math.NaN(), 0) // no score
	add(0, 3, 0, 0, 0, 0, 0, 0, math.Nextafter(1, 2), 0)
	add(0, 3, 0, 0, 0, 0, 0, 0, -math.SmallestNonzeroFloat64, 0)
	add(saysWall, 3, 0, 0, 0, 0, -1, 0, 0, 0) // a negative length
	f.Fuzz(func(t *testing.T, says uint8, window uint64, from, to, start, run, wall, memory int64, worth float64, option uint8) {
		v := &pb.AgentVariant{Id: 1, Window: window, MemoryBytes: memory, Score: worth, Option: strings.Repeat("o", int(option))}
		if says&saysRange != 0 {
			v.Range = &pb.Range{From: from, To: to}
		}
		if says&saysStart != 0 {
			v.Start = &timestamppb.Timestamp{Seconds: start}
		}
		if says&saysRun != 0 {
			v.Run = durationpb.New(time.Duration(run))
		}
		if says&saysWall != 0 {
			v.Wall = durationpb.New(time.Duration(wall))
		}
		const piece = saysRange | saysStart | saysRun
		length := func(d int64) bool { return d >= 0 && d <= int64(config.MaxTime) }
		good := window > 0 && memory >= 0 && memory <= int64(trp.MaxAmount) && worth >= 0 && worth <= 1 && option <= 63 &&
			(says&saysWall == 0 || length(wall))
		switch says & piece {
		case 0:
		case piece:
			first, last := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2201, 1, 1, 0, 0, 0, 0, time.UTC)
			good = good && from >= 0 && from < to && start >= first.Unix() && start < last.Unix() && length(run) && run > 0 &&
				(says&saysWall == 0 || wall >= run)
		default:
			good = false
		}
		n, err := negotiation(&pb.NegotiateRequest{Job: "j", Session: 1,
			Answers: []*pb.AgentAnswer{{Round: 1, Variants: []*pb.AgentVariant{v}}}})
		if (err == nil) != good {
			t.Fatalf("%v: %v; want it taken: %v", v, err, good)
		}
		if err != nil {
			return
		}
		got := n.Answers[0].Variants[0]
		if got.Window != window || got.Demand[trp.Memory] != quantity.Amount(memory) || got.Score != int64(math.Round(worth*score.One)) ||
			got.Option != v.Option {
			t.Fatalf("%v became %+v", v, got)
		}
		want := time.Duration(0)
		if says&saysWall != 0 {
			want = time.Duration(wall)
		}
		if says&piece == 0 && (got.Range != (job.Range{}) || got.Start != 0 || got.Run != 0 || got.Wall != want) {
			t.Fatalf("%v is no signal as %+v", v, got)
		}
		if want == 0 {
			want = time.Duration(run)
		}
		if says&piece != 0 && (got.Range != job.Range{From: from, To: to} || got.Start != quantity.At(time.Unix(start, 0)) ||
			got.Run != time.Duration(run) || got.Wall != want) {
			t.Fatalf("%v became %+v", v, got)
		}
	})
}
