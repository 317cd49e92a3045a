// Command demo says in figures what the demo's daemons have done (demo.sh plays it): it keeps a daemon's history as a file, draws two such
// files with one scale and judges them, and says which job of an auction won what. `make demo` builds it.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/api/sluice/v1alpha1/sluicev1alpha1connect"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/edge/picture"
)

func main() {
	ctx, done := context.WithTimeout(context.Background(), time.Minute)
	defer done()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		done()
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	client := sluicev1alpha1connect.NewSluiceServiceClient(http.DefaultClient, "http://"+os.Getenv("SLUICE_SERVER"))
	switch {
	case len(args) == 4 && args[0] == "keep": // keep SIDE BEGAN FILE
		return keep(ctx, client, args[1], args[2], args[3])
	case len(args) > 3 && args[0] == "draw": // draw PICTURE PLAN FILE...
		return draw(os.Stdout, args[1], args[2], args[3:])
	case len(args) > 2 && args[0] == "won": // won LAST-WORD-OF-THE-AGENT JOB...
		return winners(ctx, client, os.Stdout, args[1], args[2:])
	}
	return errors.New("usage: demo keep|draw|won ...; see demo.sh")
}

// record is a side in a file.
type record struct {
	Side             string           `json:"side"`
	Began            quantity.Instant `json:"began"` // nanoseconds since 1970
	History          json.RawMessage  `json:"history"`
	Ran              time.Duration    `json:"ran"`
	Waited           time.Duration    `json:"waited"`
	Killed, Survived int
}

// keep writes what the daemon's slices did since then (seconds since 1970), how long its processes ran, and how much of that they waited
// for a processor. How many subjobs ran when the daemon was killed, and when it was back, are in the environment.
func keep(ctx context.Context, c sluicev1alpha1connect.SluiceServiceClient, side, began, file string) error {
	since, err := strconv.ParseFloat(began, 64)
	if err != nil {
		return err
	}
	r := record{Side: side, Began: quantity.Instant(since * 1e9)}
	r.Killed, _ = strconv.Atoi(os.Getenv("KILLED"))
	r.Survived, _ = strconv.Atoi(os.Getenv("SURVIVED"))
	answer, err := c.History(ctx, connect.NewRequest(&pb.HistoryRequest{Since: timestamppb.New(time.Unix(0, int64(r.Began)))}))
	if err != nil {
		return fmt.Errorf("history: %w", err)
	}
	if r.History, err = protojson.Marshal(answer.Msg); err != nil {
		return err
	}
	list, err := c.ListJobs(ctx, connect.NewRequest(&pb.ListJobsRequest{}))
	if err != nil {
		return err
	}
	for _, j := range list.Msg.Jobs {
		var one *connect.Response[pb.GetJobResponse]
		if one, err = c.GetJob(ctx, connect.NewRequest(&pb.GetJobRequest{Name: j.Name})); err != nil {
			return err
		}
		for _, s := range one.Msg.Job.History {
			if s.Start != nil && s.End != nil {
				r.Ran += s.End.AsTime().Sub(s.Start.AsTime())
				r.Waited += s.Waited.AsDuration()
			}
		}
	}
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o644)
}

// reserved is time that is off the market, counted from the submission.
type reserved struct {
	kind string
	// memory of the slices it is on, in MiB; 0 for all.
	memory      int64
	start, last time.Duration
}

// readPlan reads a line for each: kind, MiB, seconds to its start, seconds that it lasts.
func readPlan(file string) (plan []reserved, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var r reserved
		var start, last float64
		if _, err := fmt.Sscan(lines.Text(), &r.kind, &r.memory, &start, &last); err != nil {
			return nil, fmt.Errorf("%s: %q: %w", file, lines.Text(), err)
		}
		r.start, r.last = time.Duration(start*float64(time.Second)), time.Duration(last*float64(time.Second))
		plan = append(plan, r)
	}
	return plan, nil
}

// result is what one side came to.
type result struct {
	title   string
	blocks  bool
	history status.History
	// pieces that were committed, and leases whose work was not.
	pieces, lost int
	// windows by the kind of what ends them; "" is nothing known.
	windows map[string]int
	// ran is how long its processes ran, waited how much of that they waited for a processor.
	ran, waited time.Duration
	// killed and survived are subjobs that ran when the daemon was killed, and those of them found by the next.
	killed, survived int
}

// took is how long all the work took.
func (r *result) took() time.Duration { return r.history.To.Sub(r.history.From) }

// load reads a side from its file.
func load(file string, plan []reserved) (*result, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var kept record
	if err = json.Unmarshal(text, &kept); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	m := &pb.HistoryResponse{}
	if err = protojson.Unmarshal(kept.History, m); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	h, err := picture.FromWire(m)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	r := &result{title: "Cut to fit the windows", ran: kept.Ran, waited: kept.Waited, killed: kept.Killed, survived: kept.Survived}
	if kept.Side == "blocks" {
		r.title, r.blocks = "Rigid blocks", true
	}
	r.take(h, kept.Began, plan)
	return r, nil
}

// take counts what a history shows. Time in which a piece committed nothing does not count as used. That of a block does:
// on a busy machine a block can reach its walltime, and this must not make cutting look better.
func (r *result) take(h status.History, began quantity.Instant, plan []reserved) {
	h.From, h.To = began, began
	for n := range h.Slices {
		s := &h.Slices[n]
		// A daemon that was started again does not know of a slice that it stood empty before. We do: it was offered.
		if len(s.Spans) == 0 {
			s.Spans = []status.Span{{Start: began, End: quantity.Never}}
		} else if first := s.Spans[0].Start; first > began && s.Spans[0].Kind == 0 {
			s.Spans[0].Start = began
		} else if first > began {
			s.Spans = slices.Insert(s.Spans, 0, status.Span{Start: began, End: first, Until: s.Spans[0].Kind})
		}
		for i := range s.Spans {
			span := &s.Spans[i]
			if span.Kind != protocol.ForLease {
				continue
			}
			h.To = max(h.To, span.End)
			if span.Committed.Empty() {
				r.lost++
				if !r.blocks {
					span.UsedStart = 0
				}
			} else {
				r.pieces++
			}
		}
	}
	r.windows = windows(h, plan)
	r.history = h
}

// least length of a gap that is a window; what is shorter is the time between two subjobs.
const least = time.Second

// windows counts the windows of a history by what ends them: each subjob ran in one, and each longer gap before a
// reservation or at the end was one that nobody took. The plan was there before the first of them.
func windows(h status.History, plan []reserved) map[string]int {
	count := map[string]int{}
	for _, s := range h.Slices {
		for i, span := range s.Spans {
			empty := span.Kind == 0 && min(span.End, h.To).Sub(max(span.Start, h.From)) >= least &&
				(i+1 == len(s.Spans) || s.Spans[i+1].Kind != protocol.ForLease)
			if span.Kind == protocol.ForLease || empty {
				count[endOf(plan, span.Start.Sub(h.From), int64(s.Slice.Capacity[0])>>20)]++
			}
		}
	}
	return count
}

// endOf is what is known to end a window that begins at a time on a slice of so many MiB.
func endOf(plan []reserved, at time.Duration, memory int64) string {
	kind, first := "", time.Duration(0)
	for _, p := range plan {
		if (p.memory == 0 || p.memory == memory) && p.start > at && (kind == "" || p.start < first) {
			kind, first = p.kind, p.start
		}
	}
	return kind
}
