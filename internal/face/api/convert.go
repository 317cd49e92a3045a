package api

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/internal/core/forecast"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/score"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/core/trp"
)

// stamp leaves out what is not known: 0 (not yet) and Never.
func stamp(t quantity.Instant) *timestamppb.Timestamp {
	if t == 0 || t == quantity.Never {
		return nil
	}
	return timestamppb.New(t.Time())
}

func length(d time.Duration) *durationpb.Duration {
	if d == 0 {
		return nil
	}
	return durationpb.New(d)
}

func span(r job.Range) *pb.Range {
	if r.Empty() {
		return nil
	}
	return &pb.Range{From: r.From, To: r.To}
}

func token(t job.Token) string {
	if t.Zero() {
		return ""
	}
	return t.String()
}

// each converts a list.
func each[A, B any](list []A, convert func(*A) B) []B {
	out := make([]B, len(list))
	for i := range list {
		out[i] = convert(&list[i])
	}
	return out
}

// kindOf is a job's kind on the wire.
func kindOf(k job.Kind) pb.Job_Kind {
	switch k {
	case job.Items:
		return pb.Job_ITEMS
	case job.Steps:
		return pb.Job_STEPS
	case job.Rigid:
		return pb.Job_RIGID
	}
	return pb.Job_KIND_UNSPECIFIED
}

func stateOf(s job.State) pb.Job_State { return pb.Value[pb.Job_State](s.String()) }

func reservationKind(k protocol.ReservationKind) pb.Reservation_Kind {
	return pb.Value[pb.Reservation_Kind](k.String())
}

func jobMessage(j *status.Job) *pb.Job {
	return &pb.Job{
		Name: string(j.Name), Generation: uint32(j.Generation), Queue: j.Queue, Kind: kindOf(j.Kind), Priority: j.Priority,
		State: stateOf(j.State), StateCode: j.State.Code(), Final: j.State.Final(), Reason: j.Reason,
		Progress: j.Progress, Reported: j.Reported, Total: j.Total, Skipped: j.Skipped, Unit: j.Unit,
		Subjobs: count(j.Subjobs), Running: count(j.Running), Lost: count(j.Lost),
		Submitted: stamp(j.Submitted), Started: stamp(j.Started), Ended: stamp(j.Ended), Wait: durationpb.New(j.Wait),
		StartEarly: stamp(j.StartEarly), StartLate: stamp(j.StartLate), FinishEarly: stamp(j.FinishEarly), FinishLate: stamp(j.FinishLate),
		RateP50: length(j.RateP50), RateP95: length(j.RateP95), MemoryScale: j.MemoryScale,
		History: each(j.History, subjobMessage), HistoryDropped: count(j.HistoryDropped),
		Trust: trustMessage(&j.Trust), Profile: profileMessage(&j.Profile),
		Prepare: length(j.Prepare), PrepareSeen: j.PrepareSeen, Slices: names(j.Slices), Hints: j.Hints, Owner: j.Owner(),
		Measuring: j.Measuring,
	}
}

// count is an int as the wire has it; nothing that is counted here comes near the bound.
func count(n int) int32 { return int32(min(max(n, 0), 1<<31-1)) }

func subjobMessage(s *status.Subjob) *pb.Subjob {
	return &pb.Subjob{
		Subjob: token(s.Token), Slice: string(s.Slice), Window: s.Window, Range: span(s.Range), Committed: span(s.Committed),
		PlannedStart: stamp(s.PlannedStart), PlannedEnd: stamp(s.PlannedEnd), Start: stamp(s.Start), End: stamp(s.End),
		PredictedMemoryBytes: int64(s.Predicted), PeakMemoryBytes: int64(s.Peak),
		Outcome: pb.Value[pb.Subjob_Outcome](s.Outcome), Detail: s.Detail, Running: s.Running, Progress: s.Progress, Bid: bidMessage(s.Bid),
		Prepare: length(s.Prepare), Waited: length(s.Waited), Slices: names(s.Slices), Startup: length(s.Startup), Stayed: s.Stayed,
	}
}

func explanationMessage(e *status.Explanation) *pb.Explanation {
	return &pb.Explanation{
		Job: jobMessage(&e.Job), Summary: e.Summary, Nearest: e.Nearest,
		Prospect: e.Prospect, Losses: each(e.Losses, lossMessage), Rank: rankMessage(&e.Rank), Home: string(e.Home),
		Endured: each(e.AirlockSteps, airlockStepMessage), Reclaims: each(e.Reclaims, reclaimStepMessage),
		Reasons: each(e.Reasons, func(r *status.Reason) *pb.Reason {
			return &pb.Reason{Text: r.Text, Count: r.Count, Last: stamp(r.Last)}
		}),
		Slices: each(e.Slices, func(f *status.SliceFit) *pb.SliceFit {
			return &pb.SliceFit{
				Slice: string(f.Slice), Fits: f.Fits, LeastMemoryBytes: int64(f.Least), CapacityMemoryBytes: int64(f.Capacity),
				Reach: span(f.Reach), Why: f.Why,
			}
		}),
	}
}

func zoneMessage(z *status.Zone) *pb.Zone {
	return &pb.Zone{Name: string(z.ID), Nodes: names(z.Nodes), Slices: count(z.Slices), Homed: count(z.Homed), Waiting: count(z.Waiting),
		Running: count(z.Running), Search: searchMessage(z.Search),
		Drained: z.Drained, Over: count(z.Over)}
}

func searchMessage(s *status.Search) *pb.ZoneSearch {
	if s == nil {
		return nil
	}
	out := &pb.ZoneSearch{Tickets: count(s.Tickets), Parked: count(s.Parked), Alive: s.Alive}
	if s.Age >= 0 {
		out.Age = durationpb.New(s.Age)
	}
	for _, r := range s.Rooms {
		out.Rooms = append(out.Rooms, &pb.ZoneRoom{Size: int64(r.Size), Free: count(r.Free), Demand: count(r.Demand),
			Share: float64(r.Share) / 1e6})
	}
	return out
}

// names are ids as text.
func names[T ~string](ids []T) []string {
	out := make([]string, len(ids))
	for i := range ids {
		out[i] = string(ids[i])
	}
	return out
}

// describe is the part of a slice that does not change.
func describe(s *protocol.Slice) *pb.Slice {
	return &pb.Slice{
		Id: string(s.ID), Model: s.Model, Profile: s.Profile, MemoryBytes: int64(s.Capacity[trp.Memory]), Speed: s.Speed,
		Device: s.Device, Simulated: s.Simulated, Shared: s.Shared,
	}
}

func sliceMessage(s *status.Slice, now quantity.Instant) *pb.Slice {
	m := describe(&s.Slice)
	m.Node, m.State, m.Reason, m.Job, m.Until = string(s.Node), pb.Value[pb.Slice_State](s.State), s.Reason, string(s.Job), stamp(s.Until)
	m.Reservations = each(s.Reservations, func(r *protocol.Reservation) *pb.Reservation { return reservationMessage(r, now) })
	return m
}

func reservationMessage(r *protocol.Reservation, now quantity.Instant) *pb.Reservation {
	m := &pb.Reservation{
		Id: r.ID, Kind: reservationKind(r.Kind), Slice: string(r.Slice), Start: stamp(r.Start), End: stamp(r.End), Every: length(r.Every),
		Job: string(r.Job), Subjob: token(r.Token), Source: r.Source, Truncate: r.Truncate,
	}
	showRepeats(m, r, now)
	return m
}

func cutMessage(c *status.Cut) *pb.Cut {
	return &pb.Cut{
		Job: string(c.Job), Subjob: token(c.Token), Kind: kindOf(c.Kind), Slice: string(c.Slice), Slices: count(c.Slices),
		Range:    span(c.Range),
		Reported: c.Reported, End: stamp(c.End), At: stamp(c.At), Withdrawn: c.Withdrawn, Ran: length(c.Ran), AtRisk: length(c.AtRisk),
		Costly: c.Costly(),
	}
}

func windowMessage(w *status.Window) *pb.Window {
	return &pb.Window{
		Id: w.ID, Slice: string(w.Slice), Start: stamp(w.Start), End: stamp(w.End), Until: reservationKind(w.Until),
		State:   pb.Value[pb.Window_State](w.State),
		Answers: count(w.Answers), Asked: count(w.Asked), Reason: w.Reason,
	}
}

func queueMessage(q *status.Queue) *pb.Queue {
	return &pb.Queue{
		Settings: &pb.QueueSettings{
			Name: q.Queue.Name, Weight: q.Queue.Weight, Cap: count(q.Queue.Cap), MaxJobs: count(q.Queue.MaxJobs),
			MaxWindow: length(q.Queue.MaxWindow), User: q.Queue.User,
		},
		Pending: count(q.Pending), Running: count(q.Running), Held: count(q.Held), AttainedGibSeconds: q.Attained,
		Trust: trustMessage(&q.Trust), Credits: q.Credits,
	}
}

func outputMessage(o *Output) *pb.Output {
	return &pb.Output{Subjob: token(o.Token), Range: span(o.Range), Path: o.Path, Member: count(o.Member),
		Files: each(o.Files, func(name *string) string { return shownName(*name) }), Bytes: o.Bytes, Lost: shownName(o.Lost)}
}

// shownName is the name of a file as a message can carry it: a byte that is no UTF-8 is shown as \xe9.
func shownName(name string) string {
	if utf8.ValidString(name) {
		return name
	}
	var b strings.Builder
	for len(name) > 0 {
		r, n := utf8.DecodeRuneInString(name)
		if r == utf8.RuneError && n == 1 {
			fmt.Fprintf(&b, `\x%02x`, name[0])
		} else {
			b.WriteString(name[:n])
		}
		name = name[n:]
	}
	return b.String()
}

func sliceHistoryMessage(h *SliceHistory) *pb.SliceHistory {
	return &pb.SliceHistory{Slice: describe(&h.Slice), Spans: each(h.Spans, func(s *Span) *pb.Span {
		out := &pb.Span{
			Kind: reservationKind(s.Kind), Start: stamp(s.Start), End: stamp(s.End), Job: string(s.Job), Subjob: token(s.Token),
			Range: span(s.Range), Committed: span(s.Committed), Outcome: pb.Value[pb.Subjob_Outcome](s.Outcome),
			Until:     reservationKind(s.Until),
			UsedStart: stamp(s.UsedStart), UsedEnd: stamp(s.UsedEnd), FirstProgress: stamp(s.FirstProgress),
		}
		if s.Kind != protocol.ForLease {
			out.Note = s.Outcome
		}
		return out
	})}
}

func aboutMessage(a *About) *pb.About {
	return &pb.About{
		Version: a.Version, Commit: a.Commit, Go: a.Go, Node: string(a.Node), DataDir: a.DataDir, Listen: a.Listen,
		Mechanism: a.Mechanism, Policy: a.Policy, Isolation: a.Isolation, Inventory: a.Inventory, SingleUser: a.SingleUser,
		Started: stamp(a.Started), Uptime: length(a.Uptime), JournalBytes: a.JournalBytes, JournalSeq: a.JournalSeq, Trouble: a.Trouble,
		Zones: names(a.Zones), Nodes: names(a.Nodes),
	}
}

func airlockMessage(a *status.Airlock) *pb.Airlock {
	s := &a.Strain
	return &pb.Airlock{
		Node: string(a.Node), Level: a.Guard.Level, Kind: a.Guard.Kind, Why: a.Guard.Why, At: stamp(s.At), Old: s.Old,
		Memory:    readingMessage(&s.MemoryReading),
		CalmBytes: int64(s.Calm), SevereBytes: int64(s.Severe), EmergencyBytes: int64(s.Emergency), RoomBytes: int64(s.Room),
		ParkedBytes: int64(s.Parked),
		Short:       a.Short, Full: a.Full, LeftBytes: int64(a.Left), Stuck: string(a.Stuck), Timer: length(a.Timer),
		Entries: count(a.Entries), Order: a.Order,
		Stands: each(a.Stands, standMessage), Steps: each(a.Steps, airlockStepMessage), Forgotten: a.Forgotten, Watched: a.Watched,
		Counts: &pb.AirlockCounts{
			Suspended: s.Suspended, Recovered: s.Recovered, Readdressed: s.Readdressed, Reclaimed: s.Reclaimed, Killed: s.Killed,
			Decisions: s.Decisions,
			Stood:     durationpb.New(s.Stood), OverLine: durationpb.New(s.OverLine),
		},
	}
}

// readingMessage is nil for a host whose memory is not known.
func readingMessage(r *status.MemoryReading) *pb.MemoryReading {
	if r.Capacity == 0 {
		return nil
	}
	return &pb.MemoryReading{
		Level: r.Level, UsedBytes: int64(r.Used), CapacityBytes: int64(r.Capacity), GrowthBytes: int64(r.Growth),
		Share: int32(min(r.Share, 1<<30)), Stall: int32(min(r.Stall, 1<<30)),
		Exhausted: length(r.Exhausted),
	}
}

func standMessage(s *status.Stand) *pb.Stand {
	return &pb.Stand{
		Job: string(s.Job), Subjob: token(s.Token), Slice: string(s.Slice), State: pb.Value[pb.Stand_State](s.State), Since: stamp(s.Since),
		Until: stamp(s.Until), Times: count(s.Times),
		ResidentBytes: int64(s.Resident), ParkedBytes: int64(s.Parked), Why: s.Why, Place: placeMessage(&s.Place),
	}
}

func placeMessage(p *status.SurvivalPlace) *pb.SurvivalPlace {
	return &pb.SurvivalPlace{
		Outgrown: p.Outgrown, Class: p.Class, Priority: p.Priority, Value: count(p.Value), Ran: durationpb.New(p.Ran),
		FootprintBytes: int64(p.Footprint), PlannedBytes: int64(p.Planned),
	}
}

func airlockStepMessage(s *status.AirlockStep) *pb.AirlockStep {
	m := &pb.AirlockStep{
		At: stamp(s.At), Decision: s.Decision, Node: string(s.Node), Job: string(s.Job), Subjob: token(s.Token), Slice: string(s.Slice),
		Step: s.Step, Why: s.Why,
		ReliefBytes: int64(s.Relief), Memory: readingMessage(&s.Memory), DeficitBytes: int64(s.Deficit), UnderwayBytes: int64(s.Underway),
		CoveredBytes: int64(s.Covered),
		Place:        placeMessage(&s.Place), Stood: length(s.Stood), Progress: s.Progress,
	}
	if s.Spared != "" {
		m.Spared, m.SparedSubjob, m.SparedPlace, m.Below = string(s.Spared), token(s.SparedToken), placeMessage(&s.SparedPlace), s.Below
	}
	return m
}

// trustMessage leaves out the trust of a market that does not negotiate: it is zero; a record without observations is not (Believed).
func trustMessage(t *status.Trust) *pb.Trust {
	if *t == (status.Trust{}) {
		return nil
	}
	return &pb.Trust{
		Believed: share(t.Believed), Error: share(t.Error), History: share(t.History), Seen: t.Seen, Pace: perThousand(t.Pace),
		Runs: t.Runs, Excess: t.Excess, Evidence: share(t.Evidence),
	}
}

func profileMessage(p *status.Profile) *pb.Profile {
	source := "declared"
	if p.Source == forecast.Taught {
		source = "template"
	}
	return &pb.Profile{Source: source, Runs: p.Runs, Spread: perThousand(p.Spread), Text: p.String()}
}

// bidMessage leaves out what nobody bid for.
func bidMessage(b *protocol.Bid) *pb.Bid {
	if b == nil {
		return nil
	}
	return &pb.Bid{Score: share(b.Score), Calibrated: share(b.Calibrated), Weight: share(b.Weight), Price: b.Price, Option: b.Option}
}

// perThousand is a factor as people write it.
func perThousand(n int64) float64 { return float64(n) / 1000 }

func lossMessage(l *status.Loss) *pb.Loss {
	return &pb.Loss{
		Profile: l.Profile, Slice: string(l.Slice), Count: l.Count, Last: stamp(l.Last), Score: share(l.Score), Weight: share(l.Weight),
		Winner: string(l.Winner), WinnerQueue: l.WinnerQueue, WinnerScore: share(l.WinnerScore), WinnerWeight: share(l.WinnerWeight),
		Winners: count(l.Winners), WinnersWeight: share(l.WinnersWeight), By: share(l.By()), Starved: l.Late,
	}
}

func rankMessage(r *status.Rank) *pb.Rank {
	if r.Place == 0 {
		return nil
	}
	out := &pb.Rank{Place: count(r.Place), Of: count(r.Of), About: r.About, Policy: r.Policy, Profile: r.Profile, Slice: string(r.Slice)}
	if g := &r.Latest; g.Winner != "" {
		out.Latest = &pb.Given{Slice: string(g.Slice), Length: length(g.Length), At: stamp(g.At), Winner: string(g.Winner),
			WinnerQueue: g.WinnerQueue}
	}
	return out
}

// share is millionths as people write them.
func share(millionths int64) float64 { return float64(millionths) / score.One }
