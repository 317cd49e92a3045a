package nodes

import (
	"cmp"
	"strings"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/edge/picture"
	"sluice.dev/sluice/internal/face/cli/session"
	"sluice.dev/sluice/internal/face/cli/show"
)

// stretch is one span with its slice.
type stretch struct {
	slice string
	*pb.Span
}

// TimelineCmd is the command timeline.
func TimelineCmd(a *session.Session) *cobra.Command {
	var since show.Length
	var picture string
	var width int
	c := &cobra.Command{
		Use: "timeline", Short: "Show what each slice did in the recent past",
		Long: "Show what each slice did: subjobs with their committed ranges, reservations, and\nwindows that nobody took. A picture " +
			"by default; -o json or yaml for programs, -o wide\nfor a table.",
		Example: "  sluice timeline --since 10m\n  sluice timeline --picture svg > timeline.svg\n  sluice timeline -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if picture != "terminal" && picture != "svg" {
				return command.Usage("--picture %s is no form; want terminal or svg", picture)
			}
			c, err := a.Client()
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
			if a.Format == "table" {
				return draw(a, resp.Msg, picture, width)
			}
			var list []stretch
			for _, s := range resp.Msg.Slices {
				for _, span := range s.Spans {
					list = append(list, stretch{s.Slice.GetId(), span})
				}
			}
			return command.Show(a.App, list, spanColumns(a),
				func(s stretch) string { return strings.Join([]string{s.slice, s.what(), s.Subjob}, " ") }, "nothing happened")
		},
	}
	c.Flags().Var(&since, "since", "how far back to look (default: all that is remembered)")
	c.Flags().StringVar(&picture, "picture", "terminal", "the form of the picture: terminal or svg")
	c.Flags().IntVar(&width, "width", 100, "how wide the terminal's picture is, in columns")
	return a.Output(c)
}

// draw makes the picture.
func draw(a *session.Session, m *pb.HistoryResponse, form string, width int) error {
	past, err := picture.FromWire(m)
	if err != nil {
		return err
	}
	panels := []picture.Panel{{Title: "slices", History: picture.Trim(past)}}
	if form == "svg" {
		return picture.SVG(a.Out, panels)
	}
	if a.Colored() {
		return picture.Terminal(a.RawOut, panels, width, true)
	}
	return picture.Terminal(a.Out, panels, width, false)
}

// what a span is, for people.
func (s stretch) what() string {
	return cmp.Or(pb.Word(s.Kind), "window")
}

func spanColumns(a *session.Session) []command.Column[stretch] {
	return []command.Column[stretch]{
		{Key: "slice", Head: "SLICE", Value: func(s stretch) any { return s.slice }},
		{Key: "kind", Head: "KIND", Value: func(s stretch) any { return s.what() }},
		{Key: "start", Head: "START", Value: func(s stretch) any { return show.Stamp(s.Start) },
			Text: func(s stretch) string { return show.Clock(a, s.Start) }},
		{Key: "end", Head: "END", Value: func(s stretch) any { return show.Stamp(s.End) },
			Text: func(s stretch) string { return show.Clock(a, s.End) }},
		{Key: "job", Head: "JOB", Value: func(s stretch) any { return s.Job }},
		{Key: "subjob", Head: "SUBJOB", Value: func(s stretch) any { return s.Subjob }},
		{Key: "range", Head: "RANGE", Value: func(s stretch) any { return show.RangeValue(s.Range) },
			Text: func(s stretch) string { return show.RangeText(s.Range) }},
		{Key: "committed", Head: "COMMITTED", Value: func(s stretch) any { return show.RangeValue(s.Committed) },
			Text: func(s stretch) string { return show.RangeText(s.Committed) }},
		{Key: "outcome", Head: "OUTCOME", Value: func(s stretch) any { return cmp.Or(pb.Word(s.Outcome), s.Note) }},
		{Key: "until", Head: "ENDED-BY", Value: func(s stretch) any { return pb.Word(s.Until) }},
		{Key: "usedStart", Value: func(s stretch) any { return show.Stamp(s.UsedStart) }},
		{Key: "usedEnd", Value: func(s stretch) any { return show.Stamp(s.UsedEnd) }},
		{Key: "firstProgress", Value: func(s stretch) any { return show.Stamp(s.FirstProgress) }},
	}
}
