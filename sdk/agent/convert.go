package agent

import (
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
)

func rangeOf(r *pb.Range) Range { return Range{From: r.GetFrom(), To: r.GetTo()} }

// perThousand is a factor; 0 is that of a daemon that does not say, and means 1.
func perThousand(n int64) float64 {
	if n == 0 {
		return 1
	}
	return float64(n) / 1000
}

func callOf(c *pb.AgentCall) Call {
	out := Call{Round: c.Round, Wanted: Bids, Closes: c.Closes.AsTime(), Most: int(c.Most), Left: c.Left, First: c.First}
	out.MemoryScale, out.Pace = perThousand(c.MemoryScale), perThousand(c.Pace)
	if c.Wanted != "" { // a daemon that does not say negotiates by bids alone
		out.Wanted = c.Wanted
	}
	for _, r := range c.Free {
		out.Free = append(out.Free, rangeOf(r))
	}
	for _, w := range c.Windows {
		out.Windows = append(out.Windows, Window{
			ID: w.Window, Slice: w.Slice, Profile: w.Profile, Speed: float64(w.Speed) / 1000, Memory: w.MemoryBytes,
			Start: w.Start.AsTime(), End: w.End.AsTime(), Open: w.Open,
		})
	}
	return out
}

// answerOf fills in what a program may leave out.
func answerOf(c *Call, variants []Variant) *pb.AgentAnswer {
	starts := map[uint64]time.Time{}
	for _, w := range c.Windows {
		starts[w.ID] = w.Start
	}
	numbered := false
	for i := range variants {
		numbered = numbered || variants[i].ID != 0
	}
	out := &pb.AgentAnswer{Round: c.Round}
	for i, v := range variants {
		if !numbered {
			v.ID = uint32(i + 1)
		}
		if v.Range == (Range{}) && v.Run == 0 && v.Start.IsZero() { // a signal of interest
			signal := &pb.AgentVariant{Id: v.ID, Window: v.Window, MemoryBytes: v.Memory, Option: v.Option, Score: v.Score}
			if v.Wall > 0 {
				signal.Wall = durationpb.New(v.Wall)
			}
			out.Variants = append(out.Variants, signal)
			continue
		}
		if v.Start.IsZero() {
			v.Start = starts[v.Window]
		}
		out.Variants = append(out.Variants, &pb.AgentVariant{
			Id: v.ID, Window: v.Window, Range: &pb.Range{From: v.Range.From, To: v.Range.To}, Start: timestamppb.New(v.Start),
			Run: durationpb.New(v.Run), Wall: durationpb.New(max(v.Wall, v.Run)), MemoryBytes: v.Memory, Option: v.Option, Score: v.Score,
		})
	}
	return out
}

func noticeOf(round uint64, n *pb.AgentNotice) Notice {
	return Notice{
		Kind: pb.Word(n.Kind), Round: round, Window: n.Window, Variant: n.Variant, Text: n.Text, Score: n.Score, Clearing: n.Clearing,
		Subjob: n.Subjob, Range: rangeOf(n.Range), Outcome: pb.Word(n.Outcome), Ran: n.Ran.AsDuration(), Peak: n.PeakMemoryBytes,
	}
}
