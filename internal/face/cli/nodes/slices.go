// Package nodes has the commands that show slices, windows, their past, and zones, and drain these.
package nodes

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/face/cli/reserve"
	"sluice.dev/sluice/internal/face/cli/session"
	"sluice.dev/sluice/internal/face/cli/show"
)

// SlicesCmd is the command slices.
func SlicesCmd(a *session.Session) *cobra.Command {
	var wishes bool
	c := &cobra.Command{
		Use: "slices", Aliases: []string{"sinfo"}, Short: "List GPU slices and what stands on them",
		Long: `List GPU slices and what stands on them. Where workloads outside Sluice wait for the
devices that slices are cut from, list these below: since when, whether a place is kept,
which subjobs stop for it and when, and why. With -o json each slice has those for which
its subjob stops; --wishes lists them all, and alone.`,
		Example: "  sluice slices\n  sluice slices -o wide      # with reservations and their ids\n  sluice slices --wishes -o json",
		Args:    cobra.NoArgs,
		RunE: a.Calling(func(ctx context.Context, c session.Client, _ []string) error {
			resp, err := c.ListSlices(ctx, connect.NewRequest(&pb.ListSlicesRequest{}))
			if err != nil {
				return err
			}
			waiting := resp.Msg.Wishes
			if wishes {
				return command.Show(a.App, waiting, show.WishColumns(a), (*pb.Wish).GetId, "nobody outside waits for a slice")
			}
			columns := append(SliceColumns(a), wishedColumn(a, waiting))
			if err = command.Show(a.App, resp.Msg.Slices, columns, (*pb.Slice).GetId, "no slices"); err != nil || len(waiting) == 0 ||
				a.Format != "table" && a.Format != "wide" {
				return err
			}
			fmt.Fprintln(a.Out)
			return command.Grid(a.Out, a.Format == "wide", waiting, show.WishColumns(a))
		}),
	}
	c.Flags().BoolVar(&wishes, "wishes", false, "list the workloads outside that wait for slices, and no slices")
	return a.Output(c)
}

// wishedColumn has, for programs, the wishes for which a slice's subjob stops.
func wishedColumn(a *session.Session, all []*pb.Wish) command.Column[*pb.Slice] {
	return command.Column[*pb.Slice]{Key: "wishes", Value: func(s *pb.Slice) any {
		list := []command.Record{}
		for _, w := range all {
			if slices.Contains(w.Slices, s.Id) {
				list = append(list, command.Describe(w, show.WishColumns(a)))
			}
		}
		return list
	}}
}

// SliceColumns are the properties of a slice in a list.
func SliceColumns(a *session.Session) []command.Column[*pb.Slice] {
	type slice = *pb.Slice
	return []command.Column[slice]{
		{Key: "id", Head: "SLICE", Value: func(s slice) any { return s.Id }},
		{Key: "node", Value: func(s slice) any { return s.Node }},
		{Key: "model", Head: "MODEL", Value: func(s slice) any { return s.Model }},
		{Key: "profile", Head: "PROFILE", Value: func(s slice) any { return s.Profile }},
		{Key: "memoryBytes", Head: "MEMORY", Value: func(s slice) any { return s.MemoryBytes },
			Text: func(s slice) string { return command.Size(s.MemoryBytes) }},
		{Key: "speed", Head: "SPEED", Wide: true, Value: func(s slice) any { return float64(s.Speed) / 1000 }},
		{Key: "device", Value: func(s slice) any { return s.Device }},
		{Key: "simulated", Value: func(s slice) any { return s.Simulated }},
		{Key: "shared", Value: func(s slice) any { return s.Shared }},
		{Head: "NOTE", Wide: true, Text: func(s slice) string {
			var notes []string
			if s.Simulated {
				notes = append(notes, "simulated")
			}
			if s.Shared {
				notes = append(notes, "not isolated")
			}
			return strings.Join(notes, ", ")
		}},
		{Key: "state", Head: "STATE", Value: func(s slice) any { return pb.Word(s.State) }},
		{Key: "job", Head: "JOB", Value: func(s slice) any { return s.Job }},
		{Key: "until", Head: "UNTIL", Value: func(s slice) any { return show.Stamp(s.Until) },
			Text: func(s slice) string { return show.Clock(a, s.Until) }},
		{Head: "RESERVED", Wide: true, Text: func(s slice) string {
			var out []string
			for _, r := range s.Reservations {
				if r.Kind != pb.Reservation_LEASE {
					out = append(out, reserve.Reserved(a, r))
				}
			}
			return strings.Join(out, ", ")
		}},
		{Key: "reason", Head: "REASON", Value: func(s slice) any { return s.Reason }},
		{Key: "reservations", Value: func(s slice) any {
			list := make([]command.Record, 0, len(s.Reservations))
			for _, r := range s.Reservations {
				list = append(list, reserve.ReservationFields(r))
			}
			return list
		}},
	}
}

// WindowsCmd is the command windows.
func WindowsCmd(a *session.Session) *cobra.Command {
	c := &cobra.Command{
		Use: "windows", Short: "List the advertised gaps",
		Long: "List the windows on offer: which slice, from when, for how long, what ends them, and\nhow many jobs answered the last " +
			"announcement.",
		Example: "  sluice windows\n  sluice windows -o json | jq '.[] | select(.state == \"unanswered\") | .reason'",
		Args:    cobra.NoArgs,
		RunE: a.Calling(func(ctx context.Context, c session.Client, _ []string) error {
			resp, err := c.ListWindows(ctx, connect.NewRequest(&pb.ListWindowsRequest{}))
			if err != nil {
				return err
			}
			return command.Show(a.App, resp.Msg.Windows, WindowColumns(a),
				func(w *pb.Window) string { return strconv.FormatUint(w.Id, 10) }, "no windows on offer")
		}),
	}
	return a.Output(c)
}

// WindowColumns are the properties of a window in a list.
func WindowColumns(a *session.Session) []command.Column[*pb.Window] {
	type window = *pb.Window
	return []command.Column[window]{
		{Key: "id", Head: "WINDOW", Value: func(w window) any { return w.Id }},
		{Key: "slice", Head: "SLICE", Value: func(w window) any { return w.Slice }},
		{Key: "start", Head: "START", Value: func(w window) any { return show.Stamp(w.Start) },
			Text: func(w window) string { return show.Clock(a, w.Start) }},
		{Key: "end", Head: "END", Wide: true, Value: func(w window) any { return show.Stamp(w.End) },
			Text: func(w window) string { return show.Clock(a, w.End) }},
		{Head: "LEFT", Text: func(w window) string { return show.Until(a, w.End) }},
		{Key: "until", Head: "ENDED-BY", Value: func(w window) any { return pb.Word(w.Until) }},
		{Key: "state", Head: "STATE", Value: func(w window) any { return pb.Word(w.State) }},
		{Key: "answers", Value: func(w window) any { return w.Answers }},
		{Key: "asked", Value: func(w window) any { return w.Asked }},
		{Head: "ANSWERS", Text: func(w window) string { return fmt.Sprintf("%d of %d", w.Answers, w.Asked) }},
		{Key: "reason", Head: "REASON", Value: func(w window) any { return w.Reason }},
	}
}
