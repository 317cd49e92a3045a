package logs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/api/sluice/v1alpha1/sluicev1alpha1connect"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/face/cli/session"
	"sluice.dev/sluice/internal/face/cli/show"
)

// OutputCmd is the command output.
func OutputCmd(a *session.Session) *cobra.Command {
	var cat, raw bool
	var subjob, file string
	c := &cobra.Command{
		Use: "output JOB", Short: "List or print a job's committed output",
		Long: `List the output folders of the committed subjobs in order of progress, or, with --cat,
print their files one after another in that order. Only what was committed is there:
each range once. A range in which nothing was written has no folder: it is listed with
0 files and no path. Units that were skipped are not listed. A gang over several nodes has a
folder for each member that wrote something, listed in the order of $SLUICE_MEMBER; --subjob
takes one of them. Where the store has lost one the others are listed, and it is marked LOST;
--cat prints nothing then unless --subjob names another. A terminal is shown control characters, not sent them; --raw sends them.`,
		Example: "  sluice output count-words\n  sluice output count-words --cat > words.txt\n  sluice output array-1 --cat " +
			"--file 'slurm-*_7.out'",
		Args: cobra.ExactArgs(1), ValidArgsFunction: a.CompleteJobs(),
		RunE: a.Calling(func(ctx context.Context, c session.Client, args []string) error {
			if cat {
				return printFiles(ctx, a, c, &pb.ReadOutputRequest{Name: args[0], Subjob: subjob, File: file}, raw)
			}
			if file != "" {
				return command.Usage("--file says which files are printed: give --cat too")
			}
			resp, err := c.ListOutputs(ctx, connect.NewRequest(&pb.ListOutputsRequest{Name: args[0]}))
			if err != nil {
				return err
			}
			list := slices.DeleteFunc(resp.Msg.Outputs, func(o *pb.Output) bool {
				return subjob != "" && o.Subjob != subjob || a.Format == "name" && o.Path == "" // one without files has no name
			})
			if err = command.Show(a.App, list, outputColumns(), (*pb.Output).GetPath, "no committed output yet"); err != nil {
				return err
			}
			return missing(list)
		}),
	}
	c.Flags().BoolVar(&cat, "cat", false, "print the files one after another")
	c.Flags().StringVar(&subjob, "subjob", "", "only this subjob's")
	c.Flags().StringVar(&file, "file", "", "with --cat: only files of this path below their folder, or pattern, such as 'logs/*.txt'")
	c.Flags().BoolVar(&raw, "raw", false, "with --cat: send control characters to a terminal too, as they were written")
	return a.Output(c)
}

// missing is the error of outputs that can't be had.
func missing(list []*pb.Output) error {
	n, why := 0, ""
	for _, o := range list {
		if o.Lost != "" {
			n, why = n+1, cmp.Or(why, o.Lost)
		}
	}
	if n == 0 {
		return nil
	}
	return errkind.Errorf(errkind.Corrupt, "%d of %d outputs can't be had; the first: %s", n, len(list), why)
}

func printFiles(ctx context.Context, a *session.Session, c sluicev1alpha1connect.SluiceServiceClient, what *pb.ReadOutputRequest,
	raw bool) error {
	to := a.Text(raw)
	stream, err := c.ReadOutput(ctx, connect.NewRequest(what))
	if err != nil {
		return a.Explain(err)
	}
	found := false
	for stream.Receive() {
		found = found || stream.Msg().Path != ""
		if _, err = to.Write(stream.Msg().Data); err != nil {
			return errors.Join(err, stream.Close())
		}
	}
	if err = errors.Join(stream.Err(), stream.Close()); err != nil || found || what.File == "" {
		return a.Explain(err)
	}
	return noFile(ctx, c, what)
}

// mostNamed is how many files an error names.
const mostNamed = 10

// noFile is the error of a pattern that no file has: which there are. Of those that differ in their folders alone one is named.
func noFile(ctx context.Context, c sluicev1alpha1connect.SluiceServiceClient, what *pb.ReadOutputRequest) error {
	resp, err := c.ListOutputs(ctx, connect.NewRequest(&pb.ListOutputsRequest{Name: what.Name}))
	if err != nil {
		return err
	}
	var names []string
	for _, o := range resp.Msg.Outputs {
		if what.Subjob == "" || o.Subjob == what.Subjob {
			names = append(names, o.Files...)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	there := "nothing is committed yet that is a file"
	if n := len(names); n > 0 {
		there = "there are " + strings.Join(names[:min(n, mostNamed)], ", ")
		if n > mostNamed {
			there += fmt.Sprintf(" and %d more", n-mostNamed)
		}
	}
	return errkind.Errorf(errkind.NotFound, "job %s: no file of its committed output is %s: %s", what.Name, what.File, there)
}

func outputColumns() []command.Column[*pb.Output] {
	type out = *pb.Output
	return []command.Column[out]{
		{Key: "subjob", Head: "SUBJOB", Value: func(o out) any { return o.Subjob }},
		{Head: "RANGE", Text: func(o out) string {
			if o.Member > 0 {
				return fmt.Sprintf("%s, member %d", show.RangeText(o.Range), o.Member)
			}
			return show.RangeText(o.Range)
		}},
		{Key: "from", Value: func(o out) any { return o.Range.GetFrom() }},
		{Key: "to", Value: func(o out) any { return o.Range.GetTo() }},
		{Key: "member", Value: func(o out) any { return o.Member }},
		{Key: "files", Head: "FILES", Value: func(o out) any { return append([]string{}, o.Files...) },
			Text: func(o out) string { return fmt.Sprint(len(o.Files)) }},
		{Key: "bytes", Head: "SIZE", Value: func(o out) any { return o.Bytes }, Text: func(o out) string { return command.Size(o.Bytes) }},
		{Key: "path", Head: "PATH", Value: func(o out) any { return o.Path }, Text: func(o out) string {
			if o.Lost != "" {
				return "LOST"
			}
			return cmp.Or(o.Path, "-")
		}},
		{Key: "lost", Value: func(o out) any { return o.Lost }},
	}
}
