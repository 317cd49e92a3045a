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
	"sluice.dev/sluice/api/sluice/v1alpha1/sluicev1alpha1connect"
	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/edge/executor/shim/adapter/tasks"
)

// Fetch reads the records of a job's tasks that have ended and count, by unit.
func Fetch(ctx context.Context, c sluicev1alpha1connect.SluiceServiceClient, name string) (list []tasks.Record, err error) {
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
		return nil, err
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
	for stream.Receive() {
		m := stream.Msg()
		if m.Path != "" {
			err = errors.Join(err, end())
			of = m.Subjob
		}
		file.Write(m.Data)
	}
	if err = errors.Join(err, stream.Err(), stream.Close(), end()); err != nil {
		return nil, err
	}
	slices.SortFunc(list, func(a, b tasks.Record) int { return cmp.Compare(a.Unit, b.Unit) })
	return list, nil
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
func Judge(ctx context.Context, c sluicev1alpha1connect.SluiceServiceClient, name string) error {
	list, err := Fetch(ctx, c, name)
	if err != nil {
		return err
	}
	if said := Failures(list); said != "" {
		return &command.Failure{Code: command.ExitFailed, Err: fmt.Errorf("job %s: of %d tasks that ended some have failed: %s", name,
			len(list), said)}
	}
	j, err := c.GetJob(ctx, connect.NewRequest(&pb.GetJobRequest{Name: name}))
	if err != nil {
		return err
	}
	if n := j.Msg.Job.GetSkipped(); n > 0 {
		return &command.Failure{Code: command.ExitFailed, Err: fmt.Errorf("job %s: %d tasks were given up; `sluice job %s` says why", name,
			n, name)}
	}
	return nil
}
