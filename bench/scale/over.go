package main

import (
	"context"
	"errors"

	"sluice.dev/sluice/internal/core/capture"
	"sluice.dev/sluice/internal/core/gate"
	"sluice.dev/sluice/internal/core/job"
	policies "sluice.dev/sluice/internal/core/policy/all"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/zone"
	"sluice.dev/sluice/internal/edge/archive"
	"sluice.dev/sluice/internal/edge/archive/bolt"
)

// filedAtOnce is how many jobs are given to the archive in one call, each in two parts.
const filedAtOnce = archive.MaxParts / 2

// archive files the jobs that are over, as a gate and a zone do that have had them, and returns what those two still say when
// all have left.
func (s *seeds) archive(ctx context.Context, dir string) (left []protocol.Fact, err error) {
	if s.finished == 0 {
		return nil, nil
	}
	g, err := gate.New(gate.Config{Zones: gate.Alone(s.zone)})
	if err != nil {
		return nil, err
	}
	z, err := zone.New(zone.Config{ID: s.zone, Policy: policies.Default()})
	if err != nil {
		return nil, err
	}
	all, err := specs()
	if err != nil {
		return nil, err
	}
	a, err := bolt.Open(dir, false)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	list := names(s.set+"-over", s.finished)
	var facts []protocol.Fact
	for from := 0; from < len(list); from += filedAtOnce {
		batch := list[from:min(from+filedAtOnce, len(list))]
		for i, name := range batch {
			facts = s.completed(facts[:0], job.ID(name), &all[(from+i)%len(all)], from+i)
			for _, f := range facts {
				apply(g, z, f)
			}
		}
		parts, err := partsOf(g, z)
		if err == nil {
			err = a.File(parts)
		}
		if err = errors.Join(err, ctx.Err()); err != nil {
			return nil, err
		}
		for i := range parts {
			f := protocol.Fact{Kind: protocol.JobArchived, Job: parts[i].Job, Generation: parts[i].Generation,
				Actor: protocol.Address{Role: protocol.Gate}, Body: &protocol.Archiving{}}
			if parts[i].Role == protocol.Zone {
				f.Kind, f.Actor = protocol.HomeArchived, protocol.Address{Role: protocol.Zone, ID: string(s.zone)}
			}
			apply(g, z, f)
		}
	}
	return said(g, z), nil
}

func apply(g *gate.Gate, z *zone.Zone, f protocol.Fact) {
	if f.Actor.Role == protocol.Gate {
		g.Apply(f)
	} else {
		z.Apply(f)
	}
}

// said are the facts with which both say what they have.
func said(g *gate.Gate, z *zone.Zone) []protocol.Fact {
	return append(capture.All(g), capture.All(z)...)
}

// partsOf are the jobs that both have, as they file them.
func partsOf(g *gate.Gate, z *zone.Zone) (parts []archive.Part, err error) {
	type key struct {
		role protocol.Role
		job  job.ID
	}
	of := map[key][]protocol.Fact{}
	var order []key
	for _, f := range said(g, z) {
		if f.Job == "" {
			continue
		}
		k := key{f.Actor.Role, f.Job}
		if of[k] == nil {
			order = append(order, k)
		}
		of[k] = append(of[k], f)
	}
	for _, k := range order {
		p, err := archive.NewPart(k.role, k.job, 1, of[k])
		if err != nil {
			return nil, err
		}
		parts = append(parts, p)
	}
	return parts, nil
}
