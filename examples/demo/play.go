package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/edge/picture"
)

// The slices, and when the daemon is killed: while all of them are busy, and before the first reservation begins.
const (
	sizes   = "160, 96, 64 and 64 MiB"
	killAt  = 8 * time.Second
	downFor = time.Second
)

// box is what both sides run on.
func box() machine { return machine{gpus: "sim:custom,mem=160Mi+96Mi+64Mi+64Mi", slices: 4} }

// reserved is time that is off the market, counted from the submission.
type reserved struct {
	kind string
	// memory of the slices it is on, in MiB; 0 for all.
	memory      int64
	start, last time.Duration
}

// plan is known before the first job is submitted, and the same on both sides. It leaves short gaps, because that is what
// this is about; on slices that nobody takes back, blocks fill as well.
func plan() []reserved {
	return []reserved{
		{"serving", 160, slow.of(10 * time.Second), slow.of(4 * time.Second)},
		{"serving", 96, slow.of(30 * time.Second), slow.of(4 * time.Second)},
		{"maintenance", 64, slow.of(20 * time.Second), slow.of(8 * time.Second)},
		{"drain", 0, slow.of(120 * time.Second), slow.of(10 * time.Second)},
	}
}

// off says the plan in words.
func off() string {
	var all []string
	for _, r := range plan() {
		where := "everywhere"
		if r.memory != 0 {
			where = fmt.Sprintf("on %d MiB", r.memory)
		}
		all = append(all, fmt.Sprintf("  %-12s %-10s from %s to %s", r.kind, where, r.start, r.start+r.last))
	}
	return strings.Join(all, "\n")
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

// play runs the jobs of one side from an empty daemon to their end. With an error there may be a result all the same: what was done until
// then.
func play(ctx context.Context, view *view, s side, dir, jobs string) (*result, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	longest := slow.of(patience)
	ctx, done := context.WithTimeoutCause(ctx, longest, fmt.Errorf("not over after %s", longest))
	defer done()
	d, err := start(ctx, dir, box())
	if err != nil {
		return nil, err
	}
	defer func() { d.stop() }()
	began := time.Now()
	if err := d.reserve(ctx, began); err != nil {
		return nil, err
	}
	if err := d.sluice(ctx, "examples/demo", jobs, "submit", "-"); err != nil {
		return nil, err
	}
	r := &result{title: s.title, blocks: s.blocks}
	wrong := r.follow(ctx, view, &d, dir, began)
	late, over := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer over()
	if err := r.fetch(late, d, began, filepath.Join(dir, "history.json")); err != nil {
		return nil, errors.Join(wrong, err)
	}
	return r, wrong
}

// follow stays with the jobs of a side to their end, and kills the daemon once on the way; what is wrong in the end is an error. The daemon
// may be another afterwards.
func (r *result) follow(ctx context.Context, view *view, at **daemon, dir string, began time.Time) error {
	killed, d := false, *at
	for {
		list, err := d.ListJobs(ctx, connect.NewRequest(&pb.ListJobsRequest{}))
		if err != nil {
			return errors.Join(context.Cause(ctx), err)
		}
		over := !slices.ContainsFunc(list.Msg.Jobs, func(j *pb.Job) bool { return !j.Final })
		view.show(time.Since(began), list.Msg.Jobs, over)
		if over {
			wrong := failed(list.Msg.Jobs)
			if !killed {
				wrong = errors.Join(wrong, errors.New("all was over before the daemon could be killed"))
			}
			return wrong
		}
		if !killed && time.Since(began) >= killAt && running(list.Msg.Jobs) > 0 {
			killed = true
			r.killed = running(list.Msg.Jobs)
			view.say(time.Since(began), fmt.Sprintf("the daemon is killed; %d subjobs run on", r.killed))
			view.show(time.Since(began), list.Msg.Jobs, false)
			d.kill()
			// Even if we are interrupted now: somebody has to end what runs.
			time.Sleep(downFor)
			next, err := start(context.WithoutCancel(ctx), dir, box())
			if err != nil {
				return fmt.Errorf("start again after the kill: %w", err)
			}
			d, *at = next, next
			if list, err = d.ListJobs(ctx, connect.NewRequest(&pb.ListJobsRequest{})); err != nil {
				return err
			}
			r.survived = running(list.Msg.Jobs)
			view.say(time.Since(began), fmt.Sprintf("it is back; %d of %d still run", r.survived, r.killed))
		}
		if err := pause(ctx, 250*time.Millisecond); err != nil {
			return context.Cause(ctx)
		}
	}
}

// reserve takes the plan's time off the market.
func (d *daemon) reserve(ctx context.Context, began time.Time) error {
	list, err := d.ListSlices(ctx, connect.NewRequest(&pb.ListSlicesRequest{}))
	if err != nil {
		return err
	}
	for _, p := range plan() {
		for _, s := range list.Msg.Slices {
			if p.memory != 0 && p.memory<<20 != s.MemoryBytes {
				continue
			}
			_, err := d.Reserve(ctx, connect.NewRequest(&pb.ReserveRequest{
				Slice: s.Id, Kind: pb.Value[pb.Reservation_Kind](p.kind), Source: "demo",
				Start: timestamppb.New(began.Add(p.start)), End: timestamppb.New(began.Add(p.start + p.last)),
			}))
			if err != nil {
				return fmt.Errorf("reserve %s on %s: %w", p.kind, s.Id, err)
			}
		}
	}
	return nil
}

// failed names every job that ended otherwise than completed.
func failed(jobs []*pb.Job) error {
	var bad []error
	for _, j := range jobs {
		if j.Final && j.State != pb.Job_COMPLETED {
			bad = append(bad, fmt.Errorf("job %s is %s: %s", j.Name, j.State, j.Reason))
		}
	}
	return errors.Join(bad...)
}

func running(jobs []*pb.Job) int {
	n := 0
	for _, j := range jobs {
		n += int(j.Running)
	}
	return n
}

// fetch takes the side's history from the submission to the end of its last subjob, and keeps it as a file.
func (r *result) fetch(ctx context.Context, d *daemon, began time.Time, file string) error {
	answer, err := d.History(ctx, connect.NewRequest(&pb.HistoryRequest{Since: timestamppb.New(began)}))
	if err != nil {
		return fmt.Errorf("history: %w", err)
	}
	text, err := protojson.Marshal(answer.Msg)
	if err != nil {
		return err
	}
	if err = os.WriteFile(file, text, 0o644); err != nil {
		return err
	}
	h, err := picture.FromWire(answer.Msg)
	if err != nil {
		return fmt.Errorf("history: %w", err)
	}
	r.take(h, quantity.Instant(began.UnixNano()))
	return r.wait(ctx, d)
}

// wait adds up how long the processes of all jobs ran, and waited for a processor meanwhile.
func (r *result) wait(ctx context.Context, d *daemon) error {
	list, err := d.ListJobs(ctx, connect.NewRequest(&pb.ListJobsRequest{}))
	if err != nil {
		return err
	}
	for _, j := range list.Msg.Jobs {
		one, err := d.GetJob(ctx, connect.NewRequest(&pb.GetJobRequest{Name: j.Name}))
		if err != nil {
			return err
		}
		for _, s := range one.Msg.Job.History {
			if s.Start != nil && s.End != nil {
				r.ran += s.End.AsTime().Sub(s.Start.AsTime())
				r.waited += s.Waited.AsDuration()
			}
		}
	}
	return nil
}

// take counts what a history shows. Time in which a piece committed nothing does not count as used. That of a block does:
// on a busy machine a block can reach its walltime, and this must not make cutting look better.
func (r *result) take(h status.History, began quantity.Instant) {
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
	r.windows = windows(h)
	r.history = h
}

// least length of a gap that is a window; what is shorter is the time between two subjobs.
const least = time.Second

// windows counts the windows of a history by what ends them: each subjob ran in one, and each longer gap before a
// reservation or at the end was one that nobody took. The plan was there before the first of them.
func windows(h status.History) map[string]int {
	count := map[string]int{}
	for _, s := range h.Slices {
		for i, span := range s.Spans {
			empty := span.Kind == 0 && min(span.End, h.To).Sub(max(span.Start, h.From)) >= least &&
				(i+1 == len(s.Spans) || s.Spans[i+1].Kind != protocol.ForLease)
			if span.Kind == protocol.ForLease || empty {
				count[endOf(span.Start.Sub(h.From), int64(s.Slice.Capacity[0])>>20)]++
			}
		}
	}
	return count
}

// endOf is what is known to end a window that begins at a time on a slice of so many MiB.
func endOf(at time.Duration, memory int64) string {
	kind, first := "", time.Duration(0)
	for _, p := range plan() {
		if (p.memory == 0 || p.memory == memory) && p.start > at && (kind == "" || p.start < first) {
			kind, first = p.kind, p.start
		}
	}
	return kind
}
