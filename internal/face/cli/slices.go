package cli

import (
	"fmt"
	"strconv"
	"strings"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	pb "sluice.dev/sluice/internal/edge/wire/sluice/v1alpha1"
)

func (a *app) slicesCmd() *cobra.Command {
	c := &cobra.Command{
		Use: "slices", Aliases: []string{"sinfo"}, Short: "List GPU slices and what stands on them",
		Example: "  sluice slices\n  sluice slices -o wide      # with reservations and their ids",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			resp, err := c.ListSlices(cmd.Context(), connect.NewRequest(&pb.ListSlicesRequest{}))
			if err != nil {
				return err
			}
			return show(a, resp.Msg.Slices, a.sliceColumns(), (*pb.Slice).GetId, "no slices")
		},
	}
	return a.output(c)
}

func (a *app) sliceColumns() []column[*pb.Slice] {
	type slice = *pb.Slice
	return []column[slice]{
		{key: "id", head: "SLICE", value: func(s slice) any { return s.Id }},
		{key: "node", value: func(s slice) any { return s.Node }},
		{key: "model", head: "MODEL", value: func(s slice) any { return s.Model }},
		{key: "profile", head: "PROFILE", value: func(s slice) any { return s.Profile }},
		{key: "memoryBytes", head: "MEMORY", value: func(s slice) any { return s.MemoryBytes }, text: func(s slice) string { return size(s.MemoryBytes) }},
		{key: "speed", head: "SPEED", wide: true, value: func(s slice) any { return float64(s.Speed) / 1000 }},
		{key: "device", value: func(s slice) any { return s.Device }},
		{key: "simulated", value: func(s slice) any { return s.Simulated }},
		{key: "shared", value: func(s slice) any { return s.Shared }},
		{head: "NOTE", wide: true, text: func(s slice) string {
			var notes []string
			if s.Simulated {
				notes = append(notes, "simulated")
			}
			if s.Shared {
				notes = append(notes, "not isolated")
			}
			return strings.Join(notes, ", ")
		}},
		{key: "state", head: "STATE", value: func(s slice) any { return s.State }},
		{key: "job", head: "JOB", value: func(s slice) any { return s.Job }},
		{key: "until", head: "UNTIL", value: func(s slice) any { return stamp(s.Until) }, text: func(s slice) string { return a.clock(s.Until) }},
		{head: "RESERVED", wide: true, text: func(s slice) string {
			var out []string
			for _, r := range s.Reservations {
				if r.Kind != "lease" {
					out = append(out, fmt.Sprintf("%d:%s %s+%s", r.Id, r.Kind, a.clock(r.Start), a.held(r)))
				}
			}
			return strings.Join(out, ", ")
		}},
		{key: "reason", head: "REASON", value: func(s slice) any { return s.Reason }},
		{key: "reservations", value: func(s slice) any {
			list := make([]record, 0, len(s.Reservations))
			for _, r := range s.Reservations {
				list = append(list, record{{"id", r.Id}, {"kind", r.Kind}, {"start", stamp(r.Start)}, {"end", stamp(r.End)},
					{"everySeconds", seconds(r.Every)}, {"job", r.Job}, {"subjob", r.Subjob}, {"source", r.Source}, {"truncate", r.Truncate}})
			}
			return list
		}},
	}
}

// held is how long a reservation is.
func (a *app) held(r *pb.Reservation) string {
	if r.End == nil {
		return "open"
	}
	return short(r.End.AsTime().Sub(r.Start.AsTime()))
}

func (a *app) windowsCmd() *cobra.Command {
	c := &cobra.Command{
		Use: "windows", Short: "List the advertised gaps",
		Long:    "List the windows on offer: which slice, from when, for how long, what ends them, and\nhow many jobs answered the last announcement.",
		Example: "  sluice windows\n  sluice windows -o json | jq '.[] | select(.state == \"unanswered\") | .reason'",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			resp, err := c.ListWindows(cmd.Context(), connect.NewRequest(&pb.ListWindowsRequest{}))
			if err != nil {
				return err
			}
			return show(a, resp.Msg.Windows, a.windowColumns(), func(w *pb.Window) string { return strconv.FormatUint(w.Id, 10) }, "no windows on offer")
		},
	}
	return a.output(c)
}

func (a *app) windowColumns() []column[*pb.Window] {
	type window = *pb.Window
	return []column[window]{
		{key: "id", head: "WINDOW", value: func(w window) any { return w.Id }},
		{key: "slice", head: "SLICE", value: func(w window) any { return w.Slice }},
		{key: "start", head: "START", value: func(w window) any { return stamp(w.Start) }, text: func(w window) string { return a.clock(w.Start) }},
		{key: "end", head: "END", wide: true, value: func(w window) any { return stamp(w.End) }, text: func(w window) string { return a.clock(w.End) }},
		{head: "LEFT", text: func(w window) string { return a.until(w.End) }},
		{key: "until", head: "ENDED-BY", value: func(w window) any { return w.Until }},
		{key: "state", head: "STATE", value: func(w window) any { return w.State }},
		{key: "answers", value: func(w window) any { return w.Answers }},
		{key: "asked", value: func(w window) any { return w.Asked }},
		{head: "ANSWERS", text: func(w window) string { return fmt.Sprintf("%d of %d", w.Answers, w.Asked) }},
		{key: "reason", head: "REASON", value: func(w window) any { return w.Reason }},
	}
}
