package api

import (
	"google.golang.org/protobuf/types/known/durationpb"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/internal/core/status"
)

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
