// Package logs has the commands that print what jobs wrote: their logs, and the output that was committed.
package logs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/api/sluice/v1alpha1/sluicev1alpha1connect"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/edge/terminal"
	"sluice.dev/sluice/internal/face/api"
	"sluice.dev/sluice/internal/face/cli/session"
)

// maxLine is the longest line that is waited for; a longer one is shown in parts, in bytes.
const maxLine = 64 << 10

// LogsCmd is the command logs.
func LogsCmd(a *session.Session) *cobra.Command {
	var subjob string
	var follow, raw bool
	var tail int
	c := &cobra.Command{
		Use: "logs JOB", Short: "Print what subjobs wrote",
		Long: `Print what the latest subjob of a job wrote to stdout and stderr, or the one that
--subjob names; "sluice job" lists them.

With --follow what all subjobs write, those that run and those that come, each line
behind the subjob that wrote it, until the job is over; a daemon that is restarted is
waited for. With -o json each line is an object.

With --tail N only the last lines of what was written until now, of stdout and of stderr;
-n N says the same where no --context names a cluster.

A terminal is shown control characters, not sent them; --raw sends them.`,
		Example: "  sluice logs count-words\n  sluice logs count-words -f\n  sluice logs count-words -f -n 5\n" +
			"  sluice logs count-words --subjob 1-42\n  sluice logs train -f -o json | jq -r 'select(.stream == \"stderr\") | .line'",
		Args: cobra.ExactArgs(1), ValidArgsFunction: a.CompleteJobs(),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !cmd.Flags().Changed("tail") {
				tail = everyLine
			} else if tail < 0 {
				return command.Usage("--tail %d: want a number of lines", tail)
			}
			c, err := a.Client()
			if err != nil {
				return err
			}
			l := &joblog{
				a: a, to: a.Text(raw), whole: follow && subjob == "", last: tail, objects: a.Format == "json" || a.Format == "yaml",
				request: &pb.LogsRequest{Name: args[0], Subjob: subjob, Follow: follow}, tails: map[string]*logTail{},
			}
			return l.print(cmd.Context(), c)
		},
	}
	c.Flags().StringVar(&subjob, "subjob", "", "which subjob (default: the latest; with --follow: all)")
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on until the job is over, or the subjob")
	c.Flags().IntVar(&tail, "tail", 0, "of what was written until now only so many lines, the last (default all)")
	c.Flags().BoolVar(&raw, "raw", false, "send control characters to a terminal too, as they were written")
	return a.Output(c)
}

// joblog prints what comes of one or several subjobs, whole line by whole line where there are several, and knows how much
// of each it has.
type joblog struct {
	a  *session.Session
	to io.Writer
	// whole: of all subjobs, each line behind its subjob. objects: each line as JSON.
	whole, objects bool
	// last lines of earlier output, or everyLine.
	last    int
	request *pb.LogsRequest
	since   *timestamppb.Timestamp
	tails   map[string]*logTail
	order   []string // of the tails
}

// logTail is where a subjob's log stands, and lines of stdout and stderr whose end has not come.
type logTail struct {
	at   *pb.LogPosition
	open [2][]byte
}

// everyLine is all of a log.
const everyLine = -1

// print prints until there is no more. A follower outlasts a restart of the daemon.
func (l *joblog) print(ctx context.Context, c sluicev1alpha1connect.SluiceServiceClient) error {
	away := l.a.Away(func(text string) { fmt.Fprintln(l.a.Err, "sluice: "+terminal.Line(text)) })
	if l.last != everyLine {
		if err := l.skip(ctx, c); err != nil || !l.request.Follow {
			return errors.Join(err, l.end())
		}
	}
	for {
		err := l.receive(ctx, c, away.Answered)
		if err != nil && ctx.Err() == nil && l.request.Follow && away.Again(ctx, err) {
			continue
		}
		return errors.Join(err, l.end())
	}
}

// skip prints the last lines of what was written until now: of the subjobs that are to be followed, else of the one that is asked for.
func (l *joblog) skip(ctx context.Context, c sluicev1alpha1connect.SluiceServiceClient) error {
	which := []string{l.request.Subjob}
	if l.whole {
		resp, err := c.GetJob(ctx, connect.NewRequest(&pb.GetJobRequest{Name: l.request.Name}))
		if err != nil {
			return l.a.Explain(err)
		}
		var run []string
		for _, s := range resp.Msg.Job.GetHistory() {
			if s.Running {
				run = append(run, s.Subjob)
			}
		}
		if len(run) > 0 {
			which = run
		}
	}
	for _, subjob := range which {
		err := l.written(ctx, c, subjob)
		if err != nil && (!l.request.Follow || errkind.Of(err) != errkind.NotFound) { // a follower waits for what has not begun
			return err
		}
	}
	return nil
}

// written prints the last lines of what a subjob has written until now, and counts all of it as seen.
func (l *joblog) written(ctx context.Context, c sluicev1alpha1connect.SluiceServiceClient, subjob string) error {
	stream, err := c.Logs(ctx, connect.NewRequest(&pb.LogsRequest{Name: l.request.Name, Subjob: subjob}))
	if err != nil {
		return l.a.Explain(err)
	}
	var t *logTail
	var last [2][]byte
	for stream.Receive() {
		m := stream.Msg()
		t = l.tail(m.Subjob)
		which := t.received(m)
		last[which] = lastLines(append(last[which], m.Data...), l.last)
	}
	err = l.a.Explain(errors.Join(stream.Err(), stream.Close()))
	for which := range last {
		if t != nil {
			err = errors.Join(err, l.write(t, which, last[which]))
		}
	}
	return err
}

// lastLines are the last n lines of a text, whose last one may have no end yet.
func lastLines(text []byte, n int) []byte {
	if n == 0 {
		return nil
	}
	at := len(bytes.TrimSuffix(text, []byte("\n")))
	for range n {
		if at = bytes.LastIndexByte(text[:at], '\n'); at < 0 {
			return text
		}
	}
	return text[at+1:]
}

// end prints lines that have no end.
func (l *joblog) end() (err error) {
	for _, id := range l.order {
		err = errors.Join(err, l.finish(l.tails[id]))
	}
	return err
}

// receive prints one stream, from where the last one ended.
func (l *joblog) receive(ctx context.Context, c sluicev1alpha1connect.SluiceServiceClient, answered func()) error {
	l.request.Since, l.request.Seen = l.since, nil
	for _, id := range l.order {
		l.request.Seen = append(l.request.Seen, l.tails[id].at)
	}
	stream, err := c.Logs(ctx, connect.NewRequest(l.request))
	if err != nil {
		return l.a.Explain(err)
	}
	for stream.Receive() {
		answered()
		if err := l.piece(stream.Msg()); err != nil {
			return errors.Join(err, stream.Close())
		}
	}
	return l.a.Explain(errors.Join(stream.Err(), stream.Close()))
}

// piece prints what one message brings.
func (l *joblog) piece(m *pb.LogsResponse) error {
	if m.Since != nil {
		l.since = m.Since
	}
	if m.Subjob == "" {
		return nil
	}
	t := l.tail(m.Subjob)
	if err := l.write(t, t.received(m), m.Data); err != nil {
		return err
	}
	if m.Over {
		t.at.Over = true
		return l.finish(t)
	}
	return nil
}

// received counts the bytes of stdout (0) or stderr (1) in a message, and returns which of the two they are of.
func (t *logTail) received(m *pb.LogsResponse) int {
	if m.Stderr {
		t.at.Stderr += int64(len(m.Data))
		return 1
	}
	t.at.Stdout += int64(len(m.Data))
	return 0
}

// write prints data of stdout (0) or stderr (1): as it is, or the lines that are whole by now.
func (l *joblog) write(t *logTail, which int, data []byte) error {
	if !l.whole && !l.objects {
		_, err := l.to.Write(data)
		return err
	}
	data = append(t.open[which], data...)
	for len(data) > 0 {
		n := bytes.IndexByte(data, '\n')
		switch {
		case n >= 0:
			if err := l.line(t, which, data[:n]); err != nil {
				return err
			}
			data = data[n+1:]
			continue
		case len(data) >= maxLine:
			if err := l.line(t, which, data); err != nil {
				return err
			}
			data = nil
		}
		break
	}
	t.open[which] = bytes.Clone(data)
	return nil
}

// tail is a subjob's position. Of finished ones at most as many are remembered as may be sent to the daemon, which lists half as many.
func (l *joblog) tail(id string) *logTail {
	t := l.tails[id]
	if t == nil {
		t = &logTail{at: &pb.LogPosition{Subjob: id}}
		l.tails[id] = t
		l.order = append(l.order, id)
		for i := 0; len(l.order) > api.MaxLogPositions && i < len(l.order); i++ {
			if old := l.order[i]; l.tails[old].at.Over {
				delete(l.tails, old)
				l.order = append(l.order[:i], l.order[i+1:]...)
				i--
			}
		}
	}
	return t
}

// finish prints lines whose end will not come.
func (l *joblog) finish(t *logTail) error {
	var errs []error
	for which, open := range t.open {
		if t.open[which] = nil; len(open) > 0 {
			errs = append(errs, l.line(t, which, open))
		}
	}
	return errors.Join(errs...)
}

// line prints one line of stdout (0) or stderr (1).
func (l *joblog) line(t *logTail, which int, text []byte) error {
	if l.objects {
		data, err := command.Plain(command.Record{{Key: "subjob", Value: t.at.Subjob},
			{Key: "stream", Value: [2]string{"stdout", "stderr"}[which]}, {Key: "line", Value: string(text)}})
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(l.to, "%s\n", data)
		return err
	}
	_, err := fmt.Fprintf(l.to, "%s | %s\n", t.at.Subjob, text)
	return err
}
