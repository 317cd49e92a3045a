package api

import (
	"google.golang.org/protobuf/types/known/durationpb"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/internal/core/status"
)

func wishMessage(w *status.Wish) *pb.Wish {
	m := &pb.Wish{
		Id: w.ID, Group: w.Group, Who: w.Who, Node: string(w.Node), Since: stamp(w.Since), State: w.State, Why: w.Why,
		Until: stamp(w.Until), Machine: w.Machine, Devices: w.Devices, From: stamp(w.From), Slices: names(w.Slices), At: stamp(w.At),
		Subjobs: each(w.Subjobs, func(s *status.WishSubjob) *pb.WishSubjob {
			return &pb.WishSubjob{Job: string(s.Job), Subjob: token(s.Token), Slice: string(s.Slice), End: stamp(s.End)}
		}),
	}
	if len(w.Slices) > 0 {
		m.Lost, m.Left = durationpb.New(w.Lost), durationpb.New(w.Left)
	}
	return m
}

func reclaimStepMessage(s *status.ReclaimStep) *pb.ReclaimStep {
	return &pb.ReclaimStep{
		At: stamp(s.At), Node: string(s.Node), Wish: s.Wish, Who: s.Who, Job: string(s.Job), Subjob: token(s.Token), Slice: string(s.Slice),
		Step: s.Step, Why: s.Why, End: stamp(s.End),
	}
}
