// Package people has the commands for a daemon's users: who may call beside its own, and what each may do.
package people

import (
	"context"
	"fmt"
	"strings"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/api/sluice/v1alpha1/sluicev1alpha1connect"
	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/face/cli/session"
	"sluice.dev/sluice/internal/face/cli/show"
)

// UserCmd is the command user.
func UserCmd(a *session.Session) *cobra.Command {
	c := &cobra.Command{
		Use: "user", Short: "Say who may call this daemon, and what each may do",
		Long: `Add, list and remove the users of a daemon, each with a token and a role of their own:

  user      submits to the queues named for them, changes their own jobs, and reads what
            those write
  operator  changes everybody's jobs, queues, reservations and quarantines, and reads nobody
            else's logs and output; submits to the queues named for them, if any are
  admin     may everything, users and machines too

Everybody may see who waits and runs, as in Slurm. The user whom the daemon runs as is an
admin and needs no token on its machine. One who may submit needs a daemon that runs as
root with a user for each queue (sluice up --config): without that, what is submitted runs
as the daemon's own user, who then is the only one served.`,
		Example: "  sluice user add ada --queue research\n  sluice user list\n  sluice user token ada\n  sluice user remove ada",
	}
	c.AddCommand(addCmd(a), listCmd(a), tokenCmd(a), removeCmd(a), whoamiCmd(a))
	return c
}

// calling is what a command does that calls the daemon about its users.
func calling(a *session.Session, do func(context.Context, sluicev1alpha1connect.UserServiceClient, []string) error) func(*cobra.Command,
	[]string) error {
	return func(cmd *cobra.Command, args []string) error {
		c, err := a.People()
		if err != nil {
			return err
		}
		return do(cmd.Context(), c, args)
	}
}

// roles are the names of the roles, the one that may least first.
func roles() (names []string) {
	for r := pb.User_USER; r <= pb.User_ADMIN; r++ {
		names = append(names, pb.Word(r))
	}
	return names
}

func addCmd(a *session.Session) *cobra.Command {
	var role string
	var queues []string
	var quiet bool
	c := &cobra.Command{
		Use: "add NAME", Short: "Add a user, and print the token once",
		Long: `Add a user and print the token. It is kept nowhere, so pass it on as a password; who loses
it gets another one by sluice user token.`,
		Example: "  sluice user add ada --queue research\n  sluice user add ada --role user --queue research --queue teaching -q\n" +
			"  sluice user add eve --role operator",
		Args: cobra.ExactArgs(1),
		RunE: calling(a, func(ctx context.Context, c sluicev1alpha1connect.UserServiceClient, args []string) error {
			r := pb.Value[pb.User_Role](role)
			if r == pb.User_ROLE_UNSPECIFIED {
				return command.Usage("--role %.80q: want %s", role, strings.Join(roles(), ", "))
			}
			resp, err := c.AddUser(ctx, connect.NewRequest(&pb.AddUserRequest{Name: args[0], Role: r, Queues: queues}))
			if err != nil {
				return err
			}
			what := "role " + role
			if len(queues) > 0 {
				what += ", queues " + strings.Join(queues, ", ")
			}
			return printed(a, args[0], fmt.Sprintf("user %s added, %s", args[0], what), resp.Msg.Token, quiet)
		}),
	}
	c.Flags().StringVar(&role, "role", pb.Word(pb.User_USER), "what they may do: "+strings.Join(roles(), ", "))
	c.Flags().StringSliceVar(&queues, "queue", nil, "a queue that they may submit to; repeat it for more")
	c.Flags().BoolVarP(&quiet, "quiet", "q", false, "print the token alone")
	return a.Output(c)
}

// printed prints a token that is kept nowhere.
func printed(a *session.Session, name, did, token string, quiet bool) error {
	if quiet {
		_, err := fmt.Fprintln(a.Out, token)
		return err
	}
	call := "sluice"
	if server := a.Server(); server != session.DefaultServer {
		call += " --server " + server
	}
	line := fmt.Sprintf("%s; the token is printed once:\n  SLUICE_TOKEN=%s %s user whoami", did, token, call)
	return a.Done(token, "made", command.Record{{Key: "name", Value: name}, {Key: "token", Value: token}}, line)
}

func tokenCmd(a *session.Session) *cobra.Command {
	var quiet bool
	c := &cobra.Command{
		Use: "token NAME", Short: "Give a user another token, in place of the one before",
		Long: `Give a user another token: the one before is refused from then on, and calls by it end, such
as logs that are followed. Jobs stay theirs and go on.`,
		Example: "  sluice user token ada\n  sluice user token ada -q",
		Args:    cobra.ExactArgs(1),
		RunE: calling(a, func(ctx context.Context, c sluicev1alpha1connect.UserServiceClient, args []string) error {
			resp, err := c.ReplaceToken(ctx, connect.NewRequest(&pb.ReplaceTokenRequest{Name: args[0]}))
			if err != nil {
				return err
			}
			return printed(a, args[0], fmt.Sprintf("user %s has another token", args[0]), resp.Msg.Token, quiet)
		}),
	}
	c.Flags().BoolVarP(&quiet, "quiet", "q", false, "print the token alone")
	return a.Output(c)
}

func removeCmd(a *session.Session) *cobra.Command {
	return a.Output(&cobra.Command{
		Use: "remove NAME...", Short: "Refuse a user's token from now on",
		Long: `Remove users: their tokens are refused from then on, and calls by them end. Their jobs stay
and go on; operators and admins may cancel them. Whoever is added by the same name later
has what is left of them.`,
		Example: "  sluice user remove ada",
		Args:    cobra.MinimumNArgs(1),
		RunE: calling(a, func(ctx context.Context, c sluicev1alpha1connect.UserServiceClient, names []string) error {
			return a.ForEach(names, "removed", func(name string) error {
				_, err := c.RemoveUser(ctx, connect.NewRequest(&pb.RemoveUserRequest{Name: name}))
				return err
			})
		}),
	})
}

func listCmd(a *session.Session) *cobra.Command {
	return a.Output(&cobra.Command{
		Use: "list", Short: "List the users", Example: "  sluice user list\n  sluice user list -o json", Args: cobra.NoArgs,
		RunE: calling(a, func(ctx context.Context, c sluicev1alpha1connect.UserServiceClient, _ []string) error {
			resp, err := c.ListUsers(ctx, connect.NewRequest(&pb.ListUsersRequest{}))
			if err != nil {
				return err
			}
			return command.Show(a.App, resp.Msg.Users, columns(a), (*pb.User).GetName, "no users")
		}),
	})
}

func whoamiCmd(a *session.Session) *cobra.Command {
	return a.Output(&cobra.Command{
		Use: "whoami", Short: "Say whom the daemon takes you for", Example: "  sluice user whoami", Args: cobra.NoArgs,
		RunE: calling(a, func(ctx context.Context, c sluicev1alpha1connect.UserServiceClient, _ []string) error {
			resp, err := c.WhoAmI(ctx, connect.NewRequest(&pb.WhoAmIRequest{}))
			if err != nil {
				return err
			}
			return command.Show(a.App, []*pb.User{resp.Msg.User}, columns(a), (*pb.User).GetName, "nobody")
		}),
	})
}

// columns are the properties of a user.
func columns(a *session.Session) []command.Column[*pb.User] {
	type user = *pb.User
	return []command.Column[user]{
		{Key: "name", Head: "NAME", Value: func(u user) any { return u.Name }},
		{Key: "role", Head: "ROLE", Value: func(u user) any { return pb.Word(u.Role) }},
		{Key: "queues", Head: "QUEUES", Value: func(u user) any { return append([]string{}, u.Queues...) },
			Text: func(u user) string {
				if u.Role == pb.User_ADMIN {
					return "all"
				}
				return strings.Join(u.Queues, ", ")
			}},
		{Key: "since", Head: "SINCE", Value: func(u user) any { return show.Stamp(u.Since) },
			Text: func(u user) string { return show.Clock(a, u.Since) }},
	}
}
