// Package results reads what became of the tasks of arrays and sweeps, which lies in their jobs' committed output.
package results

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"connectrpc.com/connect"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/edge/executor/shim/adapter/tasks"
	"sluice.dev/sluice/internal/face/cli/session"
)

// Fetch reads the records of a job's tasks that have ended and count, by unit. It outlasts restarts of the daemon, which has answered
// before.
func Fetch(ctx context.Context, a *session.Session, c session.Client, name string) (list []tasks.Record, err error) {
	err = a.Patiently(ctx, true, func() (err error) {
		list, err = fetch(ctx, a, c, name)
		return err
	})
	return list, err
}

func fetch(ctx context.Context, a *session.Session, c session.Client, name string) (list []tasks.Record, err error) {
	outputs, err := c.ListOutputs(ctx, connect.NewRequest(&pb.ListOutputsRequest{Name: name}))
	if err != nil {
		return nil, err
	}
	ranges := map[string]*pb.Range{}
	for _, o := range outputs.Msg.Outputs {
		ranges[o.Subjob] = o.Range
	}
	stream, err := c.ReadOutput(ctx, connect.NewRequest(&pb.ReadOutputRequest{Name: name, File: tasks.RecordFile}))
	if err != nil {
		return nil, a.Explain(err)
	}
	var file bytes.Buffer
	of := ""
	end := func() error {
		r := ranges[of] // nil where it was committed in between: it is read the next time
		more, failed := tasks.ReadRecords(&file, r.GetFrom(), r.GetTo())
		list = append(list, more...)
		file.Reset()
		return failed
	}
	var wrong error
	for stream.Receive() {
		m := stream.Msg()
		if m.Path != "" {
			wrong = errors.Join(wrong, end())
			of = m.Subjob
		}
		file.Write(m.Data)
	}
	if err = errors.Join(stream.Err(), stream.Close()); err != nil {
		return nil, a.Explain(err)
	}
	if err = errors.Join(wrong, end()); err != nil {
		return nil, err
	}
	slices.SortFunc(list, func(a, b tasks.Record) int { return cmp.Compare(a.Unit, b.Unit) })
	return list, nil
}

// jobOf asks for a job. heard: the daemon has answered before.
func jobOf(ctx context.Context, a *session.Session, c session.Client, name string, heard bool) (j *pb.Job, err error) {
	err = a.Patiently(ctx, heard, func() error {
		resp, failed := c.GetJob(ctx, connect.NewRequest(&pb.GetJobRequest{Name: name}))
		if failed == nil {
			j = resp.Msg.Job
		}
		return failed
	})
	return j, err
}

// mostNamed is how many tasks a message names.
const mostNamed = 10

// Failures says which tasks have failed; empty: none has.
func Failures(list []tasks.Record) string {
	var said []string
	n := 0
	for i := range list {
		if r := &list[i]; r.Failed() {
			if n++; n <= mostNamed {
				said = append(said, fmt.Sprintf("%s: %s", Label(r), r.Said()))
			}
		}
	}
	if n > mostNamed {
		said = append(said, fmt.Sprintf("and %d more", n-mostNamed))
	}
	return strings.Join(said, "; ")
}

// Label is what people call a task.
func Label(r *tasks.Record) string {
	if r.Task != nil {
		return fmt.Sprintf("task %d", *r.Task)
	}
	return fmt.Sprintf("trial %d", r.Unit)
}

// Judge is the error of a job that is over and whose tasks have not all done well: some have failed, or were given up.
func Judge(ctx context.Context, a *session.Session, c session.Client, name string) error {
	list, err := Fetch(ctx, a, c, name)
	if err != nil {
		return err
	}
	if said := Failures(list); said != "" {
		return &command.Failure{Code: command.ExitFailed, Err: fmt.Errorf("job %s: of %d tasks that ended some have failed: %s", name,
			len(list), said)}
	}
	j, err := jobOf(ctx, a, c, name, true)
	if err != nil {
		return err
	}
	if n := j.GetSkipped(); n > 0 {
		return &command.Failure{Code: command.ExitFailed, Err: fmt.Errorf("job %s: %d tasks were given up; `sluice job %s` says why", name,
			n, name)}
	}
	return nil
}
