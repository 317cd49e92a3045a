package daemon

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sluice.dev/sluice/internal/core/arrangement"
	"sluice.dev/sluice/internal/core/departure"
	"sluice.dev/sluice/internal/core/ends"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/node"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/edge/authority"
	"sluice.dev/sluice/internal/edge/clock"
	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/executor/process"
	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/fabric/stream"
	inventories "sluice.dev/sluice/internal/edge/inventory/all"
	"sluice.dev/sluice/internal/edge/journal"
	"sluice.dev/sluice/internal/edge/journal/local"
	"sluice.dev/sluice/internal/edge/membership"
	"sluice.dev/sluice/internal/edge/store"
	stores "sluice.dev/sluice/internal/edge/store/all"
	headstore "sluice.dev/sluice/internal/edge/store/head"
	survivals "sluice.dev/sluice/internal/edge/survival/all"
	"sluice.dev/sluice/internal/face/api"
	"sluice.dev/sluice/internal/face/cli/data"
	"sluice.dev/sluice/internal/face/cli/session"
	"sluice.dev/sluice/internal/host"
	"sluice.dev/sluice/internal/host/datadir"
	"sluice.dev/sluice/internal/host/processes"
)

// membershipDir is where a machine keeps who it is in its cluster, below its data directory.
const membershipDir = "membership"

// JoinCmd is the command join.
func JoinCmd(a *session.Session, open func(context.Context, Options) (*Daemon, error)) *cobra.Command {
	var o Options
	var f stayFlags
	var logLevel, config, tokenFile string
	c := &cobra.Command{
		Use: "join [ADDRESS]", Short: "Have this machine join a cluster, and run what it is given",
		Long: `Have this machine join the cluster whose head listens at the address, by a token that
sluice token create has made there, and run as its node: offer its slices, and run what
jobs at the head win on them. Connections go out from here only.

A token is needed once. What the machine is from then on, its key and its certificate,
lie in the data directory, so the same command without a token, or with the one that it
has joined by, starts it again, also where its head has another address by now. While the
head is away what runs goes on, and is told once it is back. Other users of this machine
can read its arguments: the token is kept from them in SLUICE_TOKEN, or in a file that
--token-file names.

Jobs are asked for at the head. Here the daemon answers for its own slices alone.

--address is where other machines reach this one, for members of gangs, which speak to
each other without Sluice; --rack and --block say where it stands.

With --ephemeral the machine is gone for good once its daemon ends, as a pilot in a batch
job or a spot machine is, and with --until at that time at the latest. Windows on it end
--hand-over before; by then all that it was given has ended, and is handed over. Then it
leaves the cluster by itself, and its daemon ends. So it does when it is told to end, by
SIGTERM or Ctrl-C: nothing more is started, what runs is warned, leaves a checkpoint, and
has ended --hand-over before --grace is over. If it dies without a word the head removes it
shortly after --until, or without that some minutes after all that it was sold is over.

With --ownerless 60s it leaves in the same way once it has heard nothing of its head for so
long, since nobody would have it give way to others then. Pilots of providers do so.

--ephemeral and --until hold for later starts without them; --ephemeral=false ends that.`,
		Example: `  sluice join head.example:7118 --token sluice-join-1-...
  sluice join head.example:7118 --token-file /run/user/1000/token
  sluice join --data /var/lib/sluice
  sluice join head.example:7118 --token ... --name rack1-7 --gpus nvml
  sluice join head.example:7118 --token ... --ephemeral --until 2h
  sluice join head.example:7118 --token ... --ephemeral --until 2026-12-01T08:00:00Z
  sluice join head.example:7118 --token ... --ephemeral --until 2h --ownerless 60s
  sluice join --rack r1 --block b2 --address 10.0.0.7`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if open == nil {
				return command.Usage("this build has no daemon in it")
			}
			if len(args) > 0 {
				o.Head = args[0]
				if _, _, err := net.SplitHostPort(o.Head); err != nil {
					o.Head = net.JoinHostPort(o.Head, DefaultHeadPort)
				}
			}
			var level slog.Level
			if err := level.UnmarshalText([]byte(logLevel)); err != nil {
				return command.Usage("--log %q: want debug, info, warn or error", logLevel)
			}
			o.Log = slog.New(slog.NewTextHandler(a.Err, &slog.HandlerOptions{Level: level}))
			o.Version, o.Commit = a.Version()
			o.File.Ends = ends.DefaultTheta
			if config != "" {
				d, err := data.ReadDaemon(config)
				if err != nil {
					return err
				}
				o.Config, o.File = config, d
			}
			o.Join = true
			var err error
			if o.Invitation, err = invitation(a.Secret(), cmd.Flags().Changed("token"), tokenFile); err != nil {
				return err
			}
			o.Leaving, err = f.leaving(cmd.Flags().Changed("ephemeral"), hasJoined(o.DataDir), time.Now())
			if err = errors.Join(o.checkPlace(), err); err != nil {
				return errkind.Errorf(errkind.Invalid, "%w", err)
			}
			return join(cmd.Context(), a, open, o)
		},
	}
	c.Flags().StringVar(&o.DataDir, "data", data.DefaultData(a.Getenv), "the directory for everything durable")
	c.Flags().StringVar(&o.Name, "name", "", "the machine's name in the cluster (default: the host's name)")
	c.Flags().StringVar(&o.Listen, "listen", session.DefaultServer, "the address on this machine to answer on for its slices")
	c.Flags().StringVar(&o.Address, "address", "", addressUsage+" (default: its end of the connection to the head)")
	c.Flags().StringVar(&o.Rack, "rack", "", "the rack that the machine stands in, for jobs that ask for nodes of one")
	c.Flags().StringVar(&o.Block, "block", "", "the block that the rack stands in")
	c.Flags().StringVar(&o.GPUs, "gpus", "auto", "where slices come from, as of sluice up")
	c.Flags().StringVar(&tokenFile, "token-file", "", "a file that holds the token and that others can't read, instead of --token")
	f.add(c)
	c.Flags().StringVar(&config, "config", "", "a file of bounds of subjobs and of what is done where memory runs out, as of sluice up")
	c.Flags().StringVar(&logLevel, "log", "info", "what to log: debug, info, warn or error")
	return a.Output(c)
}

// maxToken is the largest file that is read as a token, in bytes.
const maxToken = 4096

// invitation is the token to join by: that of a file if one is named, before one of the environment. Errors: Invalid, ExitUsage for two.
func invitation(token string, flag bool, file string) (string, error) {
	switch {
	case file == "":
		return token, nil
	case flag:
		return "", command.Usage("give --token or --token-file, not both")
	}
	f, err := os.Open(file)
	if err != nil {
		return "", errkind.Errorf(errkind.Invalid, "--token-file: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return "", errkind.Errorf(errkind.Invalid, "--token-file: %w", err)
	case info.Mode().IsRegular() && info.Mode().Perm()&0o077 != 0:
		return "", errkind.Errorf(errkind.Invalid, "--token-file %s: other users may read it (%v), and join by it: chmod 600 it, and make "+
			"another token if they may have", file, info.Mode())
	}
	text, err := io.ReadAll(io.LimitReader(f, maxToken+1))
	token = strings.TrimSpace(string(text))
	switch {
	case err != nil:
		return "", errkind.Errorf(errkind.Invalid, "--token-file %s: %w", file, err)
	case len(text) > maxToken || token == "" || strings.ContainsAny(token, "\n\r\x00"):
		return "", errkind.Errorf(errkind.Invalid, "--token-file %s: want one line, the token as sluice token create has printed it", file)
	}
	return token, nil
}

func join(ctx context.Context, a *session.Session, open func(context.Context, Options) (*Daemon, error), o Options) error {
	d, err := open(ctx, o)
	if err != nil {
		return err
	}
	return errors.Join(serve(ctx, a, d, o, api.Options{
		Service: d.Service, Listen: o.Listen, Socket: d.Socket, OwnerToken: d.Token, OwnerTokenFile: d.TokenFile,
		Metrics: d.Monitor.Metrics, Health: d.Monitor.Health, Ready: d.Monitor.Ready, Machines: d.Machines, Log: o.Log,
	}), d.Close())
}

// belong makes the machine a member of its cluster, or reads that it is one. The data directory is locked meanwhile.
func belong(ctx context.Context, o *Options, data string, single bool, measured func(head time.Time, round time.Duration)) (
	m *membership.Membership, err error) {
	dir, err := datadir.Take(data)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	if err = neverWhole(data); err != nil {
		return nil, err
	}
	kept := membership.Options{Dir: filepath.Join(data, membershipDir), MapsUsers: !single, Stay: o.Leaving.Stay, Build: o.Version,
		Measured: measured, Log: o.Log}
	if !authority.IsInvitation(o.Invitation) {
		if m, err = membership.Open(kept); err == nil && o.Head != "" {
			err = m.Move(o.Head)
		}
		return m, err
	}
	name := job.NodeID(o.Name)
	if was, none := membership.Open(kept); none == nil && name == "" {
		name = was.Name()
	}
	if name == "" {
		if name, err = hostName(); err != nil {
			return nil, err
		}
	}
	if o.Head == "" {
		return nil, errkind.Errorf(errkind.Invalid, "a token is for joining: give the head's address too, as sluice token create "+
			"has printed it")
	}
	return membership.Join(ctx, kept, membership.Invited{Head: o.Head, Token: o.Invitation, Name: name})
}

// hasJoined reports whether a data directory is that of a machine of a cluster.
func hasJoined(data string) bool {
	_, err := membership.Open(membership.Options{Dir: filepath.Join(data, membershipDir)})
	return err == nil
}

// neverWhole refuses the data directory of a daemon that has jobs of its own, before a token is used up: its journal has facts of a gate
// and a zone, which a machine has not.
func neverWhole(data string) error {
	for _, part := range []string{datadir.ArchiveDir, authorityDir} {
		switch _, err := os.Stat(filepath.Join(data, part)); {
		case err == nil:
			return errkind.Errorf(errkind.Conflict, "%s is the data directory of a daemon with jobs of its own (sluice up): give the "+
				"machine that joins another one with --data; nothing was changed", data)
		case !errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("look at the data directory: %w", err)
		}
	}
	return nil
}

// neverJoined refuses the data directory of a machine of a cluster, whose subjobs are its head's.
func neverJoined(data string) error {
	m, err := membership.Open(membership.Options{Dir: filepath.Join(data, membershipDir)})
	switch {
	case errkind.Of(err) == errkind.NotFound:
		return nil
	case err != nil:
		return err
	}
	return errkind.Errorf(errkind.Conflict, "%s is the data directory of machine %s of the head at %s: start it with sluice join --data "+
		"%s, or give this daemon another one with --data; nothing was changed", data, m.Name(), m.Head(), data)
}

// openMember puts the parts of a joined machine together: its node, whose zone is at the head, and subjobs as processes.
func openMember(ctx context.Context, o Options) (d *Daemon, err error) {
	data, err := filepath.Abs(o.DataDir)
	if err != nil {
		return nil, fmt.Errorf("--data %s: %w", o.DataDir, err)
	}
	single, err := singleUser(o, data)
	if err != nil {
		return nil, err
	}
	now := clock.Follow(time.Now())
	m, err := belong(ctx, &o, data, single, now.Measured)
	if err != nil {
		return nil, err
	}
	settings, err := m.Settings(ctx)
	if err != nil {
		return nil, err
	}
	if o.Leaving.Ownerless > 0 && !settings.Stay.Ephemeral {
		return nil, errkind.Errorf(errkind.Invalid, "--ownerless: this machine does not leave for good: give --ephemeral too")
	}
	inv, note, errGPUs := inventories.Detect(ctx, o.GPUs)
	memory, said, errMemory := survivals.Detect(o.File.Airlock.Kind, "")
	var held string
	if err = errors.Join(errGPUs, errMemory); err == nil {
		held, err = o.look(ctx, inv, memory)
	}
	if err != nil {
		return nil, closing(inv, err)
	}
	stands := o.location()
	actors, err := arrangement.Joined(node.Config{ID: m.Name(), Number: m.Number(), Zone: job.ZoneID(settings.Zone),
		HandOver: o.Leaving.HandOver, TruncateGrace: o.Leaving.atOnce(settings.Stay), Rack: stands.Rack, Block: stands.Block,
		Address: memberAddress(ctx, o.Address, m.Local()), Horizon: settings.Horizon,
		Airlock: o.File.Airlock.Lines, Host: o.found.memory})
	if err != nil {
		return nil, closing(inv, err)
	}
	where, away, err := memberStore(ctx, m, settings)
	if err != nil {
		return nil, closing(inv, err)
	}
	supervisor, err := findSupervisor()
	if err != nil {
		return nil, closing(inv, err)
	}
	executors := processes.New(process.Options{
		DataDir: data, ShimPath: supervisor, Logger: o.Log, SharedTmp: o.File.Subjobs.SharedTmp, Survival: memory, Now: now.Now,
		Airlock: o.File.Airlock.Lines, Watch: memory != nil, Store: where, Keep: true, Away: away,
		Joined: process.Cluster{Owner: settings.Store.Owner, TakesNothing: settings.Store.TakesNothing},
		Limits: shim.Limits{Processes: o.File.Subjobs.Processes, Scratch: int64(o.File.Subjobs.Scratch), Files: o.File.Subjobs.Files},
		User:   func(queue string) (*shim.User, error) { return o.mapped(queue, single) },
	})
	removed := make(chan error, 1)
	link := stream.Join(stream.MemberOptions{Machine: m.Name(), Head: m.Head(), TLS: m.TLS, Start: m.Start, MapsUsers: !single,
		Build: o.Version, Log: o.Log, Measured: now.Measured, Removed: func(err error) { removed <- err }})
	var isolation string
	h, err := host.OpenMember(ctx, host.Options{
		DataDir: data, Machine: m.Name(), Now: now.Now, Until: settings.Stay.Until, Actors: actors, Fabric: link,
		Inventory: inv, Ours: processes.Ours, Log: o.Log,
		Journal: func(dir string) (journal.Journal, error) {
			return local.Open(dir, local.Options{Notice: func(text string) { o.Log.Warn("journal", "notice", text) }})
		},
		Executor: func(e host.Env) (executor.Executor, host.Files, error) {
			x, files, failed := executors(e)
			if failed == nil {
				isolation = x.Isolation()
			}
			return x, files, failed
		},
		Guard: guard(memory, said), About: status.About{
			Version: o.Version, Commit: o.Commit, Mechanism: settings.Mechanism, Listen: o.Listen, SingleUser: single,
		},
	})
	if err != nil {
		return nil, err
	}
	if note == "" {
		note = inv.Describe()
	}
	d = &Daemon{
		Service: outpost{h, m}, Machines: outpost{h, m}, Close: h.Close, Monitor: h.Monitor(),
		Run: func(ctx context.Context) error {
			o := outing{member: m, host: h, now: now.Now, stay: settings.Stay, handOver: o.Leaving.HandOver,
				grace: o.Leaving.Grace, log: o.Log, vigil: departure.Vigil{Limit: o.Leaving.Ownerless}, heard: link.Heard,
				elapsed: clock.Elapsed}
			return o.run(ctx, removed)
		},
		Notes: []string{fmt.Sprintf("cluster: machine %s of the head at %s%s", m.Name(), m.Head(), leaves(settings.Stay)),
			"isolation: " + isolation, "airlock: " + said, "memory: " + held, "store: " + where.String(), "slices: " + note},
		Socket: filepath.Join(data, socketName), TokenFile: filepath.Join(data, datadir.TokenFile),
	}
	if d.Token, err = datadir.Token(data); err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return d, nil
}

// mapped is the user that a queue's subjobs run as here: the one that this machine's own file names for the queue. In single-user mode it
// is the daemon's own (nil).
func (o *Options) mapped(queue string, single bool) (*shim.User, error) {
	if single {
		return nil, nil
	}
	for _, q := range o.File.Queues {
		if q.Name == queue {
			return lookup(q.User)
		}
	}
	return nil, errkind.Errorf(errkind.Denied, "queue %s: %s maps it to no user of this machine: name one there, or let its jobs run "+
		"elsewhere", queue, o.Config)
}

// memberStore is the cluster's store as a machine reaches it; away is why it does not answer now.
func memberStore(ctx context.Context, m *membership.Membership, s membership.Settings) (where store.Store, away, err error) {
	switch s.Store.Kind {
	case bySpec:
		return stores.OpenLater(ctx, string(s.Store.Spec))
	case headstore.Name:
	default:
		return nil, nil, errkind.Errorf(errkind.Unsupported, "the cluster keeps its files in a store of kind %q, which this build does "+
			"not know: upgrade this machine", s.Store.Kind)
	}
	config, err := m.TLS()
	if err != nil {
		return nil, nil, err
	}
	config.Certificates = nil
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { // it is renewed meanwhile
		now, bad := m.TLS()
		if bad != nil {
			return nil, bad
		}
		return &now.Certificates[0], nil
	}
	where, err = headstore.Open(headstore.Options{URL: "https://" + m.Head(), Client: &http.Client{Transport: &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: config, ForceAttemptHTTP2: true, HTTP2: headstore.ClientHTTP2(),
	}}})
	if err != nil {
		return nil, nil, err
	}
	_, away = where.Now(ctx)
	return where, away, nil
}
