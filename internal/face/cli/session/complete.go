package session

import (
	"context"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
)

// CompleteJobs proposes the names of jobs, if a daemon answers at once.
func (a *Session) CompleteJobs() cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		c, err := a.Client()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), time.Second)
		defer cancel()
		resp, err := c.ListJobs(ctx, connect.NewRequest(&pb.ListJobsRequest{Limit: PageOfJobs}))
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []string
		for _, j := range resp.Msg.Jobs {
			names = append(names, j.Name)
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// PageOfJobs is how many jobs one call asks for.
const PageOfJobs = 1000
