// Package providers has the commands for host schedulers that lend machines to the head of a cluster.
package providers

import (
	"context"
	"fmt"
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

type client = sluicev1alpha1connect.ProviderServiceClient

// Cmd is the command providers.
func Cmd(a *session.Session) *cobra.Command {
	c := &cobra.Command{
		Use: "providers [NAME]", Short: "List host schedulers that lend machines, and why they are asked for no more",
		Long: `List the providers of a cluster's head (key providers of the file of sluice up --config): each
asks a host scheduler (kind slurm or kubernetes) for pilots, which join as machines for a
while, when jobs wait that they could serve. With a name its pilots are listed too, and how
the latest have ended.

A pilot is sent until its host shows it, then waiting, starting until its machine has joined,
joined, and leaving once it was given back or its host takes it back. It counts toward the
limit until its host surely has it no more.`,
		Example: "  sluice providers\n  sluice providers scavenger -o wide\n  sluice providers test scavenger\n" +
			"  sluice providers pause scavenger --why maintenance",
		Args: cobra.MaximumNArgs(1),
		RunE: calling(a, func(ctx context.Context, c client, args []string) error {
			resp, err := c.ListProviders(ctx, connect.NewRequest(&pb.ListProvidersRequest{}))
			if err != nil {
				return err
			}
			all := resp.Msg.GetProviders()
			if len(args) == 0 {
				return command.Show(a.App, all, columns(a), (*pb.Provider).GetName, "no providers")
			}
			names := make([]string, len(all))
			for i, p := range all {
				if names[i] = p.GetName(); names[i] == args[0] {
					return one(a, p)
				}
			}
			if len(names) == 0 {
				return errkind.Errorf(errkind.NotFound, "this daemon has no providers")
			}
			return errkind.Errorf(errkind.NotFound, "there is no provider %q; there are: %s", args[0], strings.Join(names, ", "))
		}),
	}
	c.AddCommand(pauseCmd(a), resumeCmd(a), testCmd(a))
	return a.Output(c)
}

// calling is what a command does that calls the daemon about its providers.
func calling(a *session.Session, do func(context.Context, client, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		c, err := a.Providers()
		if err != nil {
			return err
		}
		return do(cmd.Context(), c, args)
	}
}

// stateOf is how a provider stands, in a word.
func stateOf(p *pb.Provider) string {
	switch {
	case p.GetPaused() != "":
		return "paused"
	case p.GetSilent() != "":
		return "silent"
	case p.GetSeen() == nil:
		return "starting"
	}
	return "ready"
}

// inState counts a provider's pilots.
func inState(p *pb.Provider, states ...pb.Pilot_State) (n int) {
	for _, x := range p.GetPilots() {
		for _, s := range states {
			if x.GetState() == s {
				n++
			}
		}
	}
	return n
}

// columns are the properties of a provider.
func columns(a *session.Session) []command.Column[*pb.Provider] {
	type provider = *pb.Provider
	number := func(key, head string, states ...pb.Pilot_State) command.Column[provider] {
		return command.Column[provider]{Key: key, Head: head, Value: func(p provider) any { return inState(p, states...) }}
	}
	return []command.Column[provider]{
		{Key: "name", Head: "PROVIDER", Value: func(p provider) any { return p.GetName() }},
		{Key: "kind", Head: "KIND", Wide: true, Value: func(p provider) any { return p.GetKind() }},
		{Key: "state", Head: "STATE", Value: func(p provider) any { return stateOf(p) }},
		{Head: "PILOTS", Value: func(p provider) any { return fmt.Sprintf("%d of %d", len(p.GetPilots()), p.GetAtMost()) }},
		number("waiting", "WAITING", pb.Pilot_SENT, pb.Pilot_WAITING),
		number("starting", "STARTING", pb.Pilot_STARTING),
		number("joined", "JOINED", pb.Pilot_JOINED),
		number("leaving", "LEAVING", pb.Pilot_LEAVING),
		{Key: "atMost", Value: func(p provider) any { return p.GetAtMost() }},
		{Key: "slices", Head: "SLICES", Wide: true, Value: func(p provider) any { return p.GetSlices() }},
		{Key: "lengthsSeconds", Head: "LENGTHS", Wide: true, Value: func(p provider) any { return seconds(p) }, Text: lengths},
		{Key: "seen", Head: "SEEN", Wide: true, Value: func(p provider) any { return show.Stamp(p.GetSeen()) },
			Text: func(p provider) string { return show.Clock(a, p.GetSeen()) }},
		{Key: "ended", Head: "ENDED", Wide: true, Value: func(p provider) any { return counts(p) }, Text: ended},
		{Key: "describes", Head: "ASKS", Wide: true, Value: func(p provider) any { return p.GetDescribes() }},
		{Key: "paused", Value: func(p provider) any { return p.GetPaused() }},
		{Key: "silent", Value: func(p provider) any { return p.GetSilent() }},
		{Key: "decided", Value: func(p provider) any { return show.Stamp(p.GetDecided()) }},
		{Key: "next", Value: func(p provider) any { return show.Stamp(p.GetNext()) }},
		{Key: "pilots", Value: func(p provider) any { return show.DescribeAll(p.GetPilots(), pilotColumns(a)) }},
		{Key: "endings", Value: func(p provider) any { return show.DescribeAll(p.GetEndings(), endingColumns(a)) }},
		{Key: "why", Head: "WHY", Value: func(p provider) any { return p.GetWhy() },
			Text: func(p provider) string { return command.Flat(why(p)) }},
	}
}

// why is what people want to know first.
func why(p *pb.Provider) string {
	switch {
	case p.GetPaused() != "":
		return "paused by " + p.GetPaused()
	case p.GetSilent() != "":
		return p.GetSilent()
	}
	return p.GetWhy()
}

// seconds are the lengths for programs.
func seconds(p *pb.Provider) []float64 {
	list := []float64{}
	for _, d := range p.GetLengths() {
		list = append(list, d.AsDuration().Seconds())
	}
	return list
}

func lengths(p *pb.Provider) string {
	var list []string
	for _, d := range p.GetLengths() {
		list = append(list, command.Short(d.AsDuration()))
	}
	return strings.Join(list, ",")
}

// counts are how many have ended in which way, for programs.
func counts(p *pb.Provider) command.Record {
	r := command.Record{}
	for _, e := range p.GetEnded() {
		r = append(r, command.Pair{Key: pb.Word(e.GetHow()), Value: e.GetCount()})
	}
	return r
}

func ended(p *pb.Provider) string {
	var list []string
	for _, e := range p.GetEnded() {
		list = append(list, fmt.Sprintf("%d %s", e.GetCount(), pb.Word(e.GetHow())))
	}
	return strings.Join(list, ", ")
}

func pilotColumns(a *session.Session) []command.Column[*pb.Pilot] {
	type pilot = *pb.Pilot
	return []command.Column[pilot]{
		{Key: "name", Head: "PILOT", Value: func(p pilot) any { return p.GetName() }},
		{Key: "state", Head: "STATE", Value: func(p pilot) any { return pb.Word(p.GetState()) }},
		{Key: "id", Head: "ID", Wide: true, Value: func(p pilot) any { return p.GetId() }},
		{Key: "lengthSeconds", Head: "LENGTH", Value: func(p pilot) any { return show.Seconds(p.GetLength()) },
			Text: func(p pilot) string { return show.Briefly(p.GetLength()) }},
		{Key: "asked", Head: "ASKED", Value: func(p pilot) any { return show.Stamp(p.GetAsked()) },
			Text: func(p pilot) string { return show.Clock(a, p.GetAsked()) }},
		{Key: "expected", Head: "EXPECTED", Wide: true, Value: func(p pilot) any { return show.Stamp(p.GetExpected()) },
			Text: func(p pilot) string { return show.Clock(a, p.GetExpected()) }},
		{Key: "started", Head: "STARTED", Value: func(p pilot) any { return show.Stamp(p.GetStarted()) },
			Text: func(p pilot) string { return show.Clock(a, p.GetStarted()) }},
		{Key: "joined", Head: "JOINED", Value: func(p pilot) any { return show.Stamp(p.GetJoined()) },
			Text: func(p pilot) string { return show.Clock(a, p.GetJoined()) }},
		{Key: "until", Head: "UNTIL", Value: func(p pilot) any { return show.Stamp(p.GetUntil()) },
			Text: func(p pilot) string { return show.Clock(a, p.GetUntil()) }},
		{Key: "idle", Head: "IDLE", Wide: true, Value: func(p pilot) any { return show.Stamp(p.GetIdle()) },
			Text: func(p pilot) string { return show.Clock(a, p.GetIdle()) }},
		{Key: "why", Head: "WHY", Value: func(p pilot) any { return p.GetWhy() },
			Text: func(p pilot) string { return command.Flat(p.GetWhy()) }},
	}
}

func endingColumns(a *session.Session) []command.Column[*pb.PilotEnding] {
	type ending = *pb.PilotEnding
	return []command.Column[ending]{
		{Key: "name", Head: "ENDED", Value: func(e ending) any { return e.GetName() }},
		{Key: "how", Head: "HOW", Value: func(e ending) any { return pb.Word(e.GetHow()) }},
		{Key: "lengthSeconds", Head: "LENGTH", Value: func(e ending) any { return show.Seconds(e.GetLength()) },
			Text: func(e ending) string { return show.Briefly(e.GetLength()) }},
		{Key: "asked", Head: "ASKED", Wide: true, Value: func(e ending) any { return show.Stamp(e.GetAsked()) },
			Text: func(e ending) string { return show.Clock(a, e.GetAsked()) }},
		{Key: "started", Head: "STARTED", Value: func(e ending) any { return show.Stamp(e.GetStarted()) },
			Text: func(e ending) string { return show.Clock(a, e.GetStarted()) }},
		{Key: "joined", Head: "JOINED", Value: func(e ending) any { return show.Stamp(e.GetJoined()) },
			Text: func(e ending) string { return show.Clock(a, e.GetJoined()) }},
		{Key: "ended", Head: "AT", Value: func(e ending) any { return show.Stamp(e.GetEnded()) },
			Text: func(e ending) string { return show.Clock(a, e.GetEnded()) }},
		{Key: "why", Head: "WHY", Value: func(e ending) any { return e.GetWhy() },
			Text: func(e ending) string { return command.Flat(e.GetWhy()) }},
	}
}

// mostEndings are shown in a table; -o wide and programs get all.
const mostEndings = 10

// one shows one provider with its pilots.
func one(a *session.Session, p *pb.Provider) error {
	switch a.Format {
	case "json", "yaml":
		return a.Dump(command.Describe(p, columns(a)))
	case "name":
		_, err := fmt.Fprintln(a.Out, p.GetName())
		return err
	}
	show.Lines(a, standing(a, p))
	wide := a.Format == "wide"
	if len(p.GetPilots()) > 0 {
		fmt.Fprintln(a.Out)
		if err := command.Grid(a.Out, wide, p.GetPilots(), pilotColumns(a)); err != nil {
			return err
		}
	}
	endings := p.GetEndings()
	if len(endings) == 0 {
		return nil
	}
	if !wide {
		endings = endings[:min(len(endings), mostEndings)]
	}
	fmt.Fprintln(a.Out)
	return command.Grid(a.Out, wide, endings, endingColumns(a))
}

// standing is a provider in a few lines.
func standing(a *session.Session, p *pb.Provider) [][2]string {
	seen := "not since the daemon came up"
	if p.GetSeen() != nil {
		seen = "last at " + show.Clock(a, p.GetSeen())
	}
	if p.GetSilent() != "" {
		seen += "; " + p.GetSilent()
	} else if p.GetBlind() && p.GetSeen() != nil {
		seen += "; it shows no gaps"
	}
	decision := p.GetWhy()
	if decision == "" {
		decision = "nothing was decided yet"
	}
	return [][2]string{
		{"provider", p.GetName()}, {"asks", p.GetDescribes()}, {"state", stateOf(p)}, {"paused by", p.GetPaused()},
		{"host answered", seen},
		{"pilots", fmt.Sprintf("%d of %d, %s each; %s", len(p.GetPilots()), p.GetAtMost(),
			show.Plural(int(p.GetSlices()), "slice", "slices"), lengths(p))},
		{"ended", ended(p)}, {"decision", decision},
	}
}

func pauseCmd(a *session.Session) *cobra.Command {
	var reason string
	c := &cobra.Command{
		Use: "pause NAME...", Short: "Ask a provider for nothing more, and give back what waits",
		Long: `Pause providers: nothing more is asked for, pilots that wait at their hosts are given back, and
those that run go on to their ends. It holds until sluice providers resume, also over a
restart of the daemon.`,
		Example: "  sluice providers pause scavenger --why maintenance",
		Args:    cobra.MinimumNArgs(1),
		RunE: calling(a, func(ctx context.Context, c client, names []string) error {
			return a.ForEach(names, "paused", func(name string) error {
				_, err := c.PauseProvider(ctx, connect.NewRequest(&pb.PauseProviderRequest{Name: name, Why: reason}))
				return err
			})
		}),
	}
	c.Flags().StringVar(&reason, "why", "", "why, for other people")
	return a.Output(c)
}

func resumeCmd(a *session.Session) *cobra.Command {
	return a.Output(&cobra.Command{
		Use: "resume NAME...", Short: "Ask a paused provider again",
		Example: "  sluice providers resume scavenger",
		Args:    cobra.MinimumNArgs(1),
		RunE: calling(a, func(ctx context.Context, c client, names []string) error {
			return a.ForEach(names, "resumed", func(name string) error {
				_, err := c.ResumeProvider(ctx, connect.NewRequest(&pb.ResumeProviderRequest{Name: name}))
				return err
			})
		}),
	})
}

func testCmd(a *session.Session) *cobra.Command {
	return a.Output(&cobra.Command{
		Use: "test NAME", Short: "Say what would be asked for now, and whether the host would take it; nothing is asked for",
		Long: `Say what a provider would be asked for now, for the jobs that wait, or why nothing is; and ask
its host whether it would take such a pilot, or the shortest one where none is wanted. Nothing
is asked for. It ends with 1 where the host would not take the pilot.`,
		Example: "  sluice providers test scavenger\n  sluice providers test scavenger -o json",
		Args:    cobra.ExactArgs(1),
		RunE: calling(a, func(ctx context.Context, c client, args []string) error {
			resp, err := c.TryProvider(ctx, connect.NewRequest(&pb.TryProviderRequest{Name: args[0]}))
			if err != nil {
				return err
			}
			return tried(a, args[0], resp.Msg)
		}),
	})
}

// tried shows what a host said to a pilot that it was not asked for.
func tried(a *session.Session, name string, t *pb.TryProviderResponse) error {
	p := t.GetProvider()
	var err error
	if !t.GetTaken() {
		err = &command.Failure{Code: command.ExitFailed, Err: fmt.Errorf("the host of provider %s would not take a pilot of %s: %s", name,
			show.Briefly(t.GetLength()), t.GetWhy())}
	}
	switch a.Format {
	case "json", "yaml":
		if bad := a.Dump(command.Record{{Key: "name", Value: name}, {Key: "decision", Value: why(p)}, {Key: "wanted", Value: t.GetWanted()},
			{Key: "lengthSeconds", Value: show.Seconds(t.GetLength())}, {Key: "taken", Value: t.GetTaken()},
			{Key: "starts", Value: show.Stamp(t.GetStarts())}, {Key: "why", Value: t.GetWhy()},
			{Key: "command", Value: t.GetCommand()}}); bad != nil {
			return bad
		}
		return err
	case "name":
		fmt.Fprintln(a.Out, name)
		return err
	}
	decision, wanted, host := why(p), "no; the shortest is tried all the same", "it would not take it: "+t.GetWhy()
	if decision == "" {
		decision = "nothing was decided yet"
	}
	if t.GetWanted() {
		wanted = "yes"
	}
	if t.GetTaken() {
		if host = "it would take it"; t.GetStarts() != nil {
			host += ", and start it at " + show.Clock(a, t.GetStarts())
		}
	}
	show.Lines(a, [][2]string{{"provider", name}, {"asks", p.GetDescribes()}, {"decision", decision}, {"wanted now", wanted},
		{"tried", "a pilot of " + show.Briefly(t.GetLength())}, {"host", host}, {"command", t.GetCommand()}})
	return err
}
