package cli

import (
	"strings"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "sluice.dev/sluice/internal/edge/wire/sluice/v1alpha1"
	"sluice.dev/sluice/internal/face/report"
	"sluice.dev/sluice/internal/face/terminal"
)

// stretch is one span with its slice.
type stretch struct {
	slice string
	*pb.Span
}

func (a *app) timelineCmd() *cobra.Command {
	var since lengthFlag
	var picture string
	var width int
	c := &cobra.Command{
		Use: "timeline", Short: "Show what each slice did in the recent past",
		Long:    "Show what each slice did: subjobs with their committed ranges, reservations, and\nwindows that nobody took. A picture by default; -o json or yaml for programs, -o wide\nfor a table.",
		Example: "  sluice timeline --since 10m\n  sluice timeline --picture svg > timeline.svg\n  sluice timeline -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if picture != "terminal" && picture != "svg" {
				return usage("--picture %s is no form; want terminal or svg", picture)
			}
			c, err := a.client()
			if err != nil {
				return err
			}
			m := &pb.HistoryRequest{}
			if since != 0 {
				m.Since = timestamppb.New(a.Now().Add(-time.Duration(since)))
			}
			resp, err := c.History(cmd.Context(), connect.NewRequest(m))
			if err != nil {
				return err
			}
			if a.format == "table" {
				return a.draw(resp.Msg, picture, width)
			}
			var list []stretch
			for _, s := range resp.Msg.Slices {
				for _, span := range s.Spans {
					list = append(list, stretch{s.Slice.GetId(), span})
				}
			}
			return show(a, list, a.spanColumns(), func(s stretch) string { return strings.Join([]string{s.slice, s.what(), s.Subjob}, " ") }, "nothing happened")
		},
	}
	c.Flags().Var(&since, "since", "how far back to look (default: all that is remembered)")
	c.Flags().StringVar(&picture, "picture", "terminal", "the form of the picture: terminal or svg")
	c.Flags().IntVar(&width, "width", 100, "how wide the terminal's picture is, in columns")
	return a.output(c)
}

// draw makes the picture.
func (a *app) draw(m *pb.HistoryResponse, picture string, width int) error {
	past, err := report.FromWire(m)
	if err != nil {
		return err
	}
	panels := []report.Panel{{Title: "slices", History: report.Trim(past)}}
	if picture == "svg" {
		return report.SVG(a.Out, panels)
	}
	if a.colored() {
		return report.Terminal(a.rawOut, panels, width, true)
	}
	return report.Terminal(a.Out, panels, width, false)
}

// colored says whether the output is a terminal whose user has not declined colors (no-color.org).
func (a *app) colored() bool {
	return a.Getenv("NO_COLOR") == "" && a.Getenv("TERM") != "dumb" && terminal.Is(a.rawOut)
}

// what a span is, for people.
func (s stretch) what() string {
	if s.Kind == "" {
		return "window"
	}
	return s.Kind
}

func (a *app) spanColumns() []column[stretch] {
	return []column[stretch]{
		{key: "slice", head: "SLICE", value: func(s stretch) any { return s.slice }},
		{key: "kind", head: "KIND", value: func(s stretch) any { return s.what() }},
		{key: "start", head: "START", value: func(s stretch) any { return stamp(s.Start) }, text: func(s stretch) string { return a.clock(s.Start) }},
		{key: "end", head: "END", value: func(s stretch) any { return stamp(s.End) }, text: func(s stretch) string { return a.clock(s.End) }},
		{key: "job", head: "JOB", value: func(s stretch) any { return s.Job }},
		{key: "subjob", head: "SUBJOB", value: func(s stretch) any { return s.Subjob }},
		{key: "range", head: "RANGE", value: func(s stretch) any { return rangeValue(s.Range) }, text: func(s stretch) string { return rangeText(s.Range) }},
		{key: "committed", head: "COMMITTED", value: func(s stretch) any { return rangeValue(s.Committed) }, text: func(s stretch) string { return rangeText(s.Committed) }},
		{key: "outcome", head: "OUTCOME", value: func(s stretch) any { return s.Outcome }},
		{key: "until", head: "ENDED-BY", value: func(s stretch) any { return s.Until }},
		{key: "usedStart", value: func(s stretch) any { return stamp(s.UsedStart) }},
		{key: "usedEnd", value: func(s stretch) any { return stamp(s.UsedEnd) }},
	}
}
