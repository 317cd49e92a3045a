// Package daemon has the command that starts a daemon, and puts its parts together for one machine: a journal, subjobs as
// processes, and who may use which queue.
package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sluice.dev/sluice/internal/core/backfill"
	"sluice.dev/sluice/internal/core/ends"
	"sluice.dev/sluice/internal/core/filing"
	"sluice.dev/sluice/internal/core/joint"
	policies "sluice.dev/sluice/internal/core/policy/all"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/edge/config"
	"sluice.dev/sluice/internal/edge/membership"
	"sluice.dev/sluice/internal/edge/provider"
	"sluice.dev/sluice/internal/edge/users"
	"sluice.dev/sluice/internal/face/api"
	"sluice.dev/sluice/internal/face/cli/data"
	"sluice.dev/sluice/internal/face/cli/session"
	"sluice.dev/sluice/internal/face/cli/show"
	"sluice.dev/sluice/internal/host"
)

// Options is what `sluice up` was asked for.
type Options struct {
	// DataDir holds everything durable of this daemon.
	DataDir string
	// Name of the machine; empty: the one that the data directory keeps, else the host's.
	Name string
	// Listen is the address that the API was given, for people.
	Listen string
	// Cluster is where a head listens for machines that join; empty: none may.
	Cluster string
	// Address at which other machines reach this one; empty: it is found. Rack and Block are where a machine that joins stands.
	Address, Rack, Block string
	// Join: this is a machine of a cluster, whose Head (empty: as it is kept) it joins by Invitation, a token (empty: it has joined).
	Join             bool
	Head, Invitation string
	// Leaving is of machines that leave for good.
	Leaving Leaving
	// Providers opens those of a head's file; nil: by the table of kinds.
	Providers OpenProvider
	// GPUs names the inventory, and how its GPUs are cut.
	GPUs string
	// Mechanism chooses among what this build has, Rigid the planner of rigid jobs; empty: backfill.Default.
	Mechanism, Rigid string
	// Horizon is how far ahead windows are offered.
	Horizon time.Duration
	Journal Journaling
	// Hot says how long jobs that are over stay in memory before they are archived.
	Hot   filing.Config
	found found
	// File is what the configuration file says, and what flags say in its place; Config is its name.
	File   config.Daemon
	Config string
	// Token: callers must show one.
	Token bool
	Log   *slog.Logger
	// Version and Commit of the build.
	Version, Commit string
}

// Journaling says how the journal is opened and kept short.
type Journaling struct {
	// Depose: one in etcd is taken over from a daemon that has it open.
	Depose bool
	// SnapshotRecords is after how many records it is replaced by a snapshot; 0: as package host has it.
	SnapshotRecords uint64
}

// found is what is known of the machine once its slices were looked at.
type found struct {
	// capacities of the slices that there are, where they count.
	capacities []quantity.Amount
	// memory against which starts are checked.
	memory joint.Config
}

// OpenProvider opens a provider of a head's file. mark tells this cluster's pilots from all else at the host.
type OpenProvider = func(mark string, p *config.Provider) (provider.Provider, error)

// Leaving says when machines leave their cluster for good.
type Leaving struct {
	// Stay is how long a machine that joins belongs to the cluster; nil: as before. HandOver is how long before its end it is closed, Grace
	// how long it has from the signal by which its daemon is to end.
	Stay            *membership.Stay
	HandOver, Grace time.Duration
	// Ownerless is for how long an ephemeral machine may hear nothing of its head; 0: for ever.
	Ownerless time.Duration
	// Silence is after how long a head removes a machine that was to be gone with its daemon.
	Silence time.Duration
}

// Daemon is a daemon whose parts are open and recovered, and which does not run yet.
type Daemon struct {
	Service api.Service
	// Run works until ctx is done and returns nil then. The service answers only while it runs.
	Run func(ctx context.Context) error
	// Close gives everything back, after Run or instead of it.
	Close func() error
	// Machines are those of the cluster whose head it is; nil: it is none.
	Machines api.Machines
	// Providers lend machines to the head that it is; nil: it is none.
	Providers api.Providers
	// Users may call beside its own user, whose name is Self; nil: nobody may.
	Users *users.Users
	Self  string
	// Monitor and Page are what the API serves besides; each may be nil.
	Monitor host.Monitor
	Page    http.Handler
	// Socket is where the API listens for the daemon's own user besides; empty: nowhere. Token is what others have to show
	// where none was given at the start, and TokenFile where that lies.
	Socket, Token, TokenFile string
	// Notes are printed at the start: the isolation that holds here, and the like.
	Notes []string
}

// DefaultHeadPort is where a head listens for machines where no port is said.
const DefaultHeadPort = "7118"

// upFlags are the flags of `sluice up` that are not Options.
type upFlags struct {
	config, cert, key, logLevel string
	horizon                     show.Length
	retain, silence             show.Span
}

// UpCmd is the command up.
func UpCmd(a *session.Session, open func(context.Context, Options) (*Daemon, error)) *cobra.Command {
	var o Options
	f := upFlags{horizon: show.Length(time.Hour)}
	c := &cobra.Command{
		Use: "up", Short: "Start the daemon",
		Long: `Start the daemon: it finds the GPU slices of this machine, recovers what it knew from
its data directory, takes over subjobs that still run, and serves the API.

It listens on this machine only, and serves the user that it runs as: the kernel names
the caller. Anybody else needs the token in the data directory, or one of their own from
sluice user add. Any other address needs TLS and users, or a token that is given here,
because Sluice runs what it is sent.

--name gives the machine a name, which its data directory keeps, whatever the host is
called later. With another one at a later start it is renamed, with its slices, and
with what runs and is reserved there.

--cluster makes the daemon the head of a cluster, which other machines join by a token
(sluice token create, sluice join): they call it at this address, over TLS by a
certificate authority of its own, and nothing else answers there. Jobs are submitted here
as ever, and run on all machines' slices; what they leave is stored here.

--mechanism says how windows are sold: with sja jobs signal interest and the policy
picks; with jasda they bid, and the market clears. An external job does either
through its own agent.

--policy is the objective, of both and of rigid jobs:
  shortest    the job that ends soonest for its priority, on the slices that suit it
              best: the least mean completion; long jobs wait while short ones come
  fair        the queue that has had least for its weight, and in it the oldest job:
              the least p99 completion; short jobs wait behind long ones
  deadline    the job with the least time to spare until its deadline
  throughput  the job that makes most of a slice: the most work done; slow jobs wait
  fifo        the oldest job; with jasda bids go as under fair, and age orders
              gangs and which jobs are asked

Jobs that are over are kept on disk, for --retain and as long as there are no more than
--retain-jobs of them; then they are forgotten, and their output is removed.

--config names a file of the policy, of queues, of how mechanism jasda negotiates
(market) and tickets of laminar search (flow), of bounds of every subjob (processes with
threads, what it writes besides output and checkpoints, and whether /tmp and /dev/shm
are its own), of how often a learned end of a gap may be wrong where others come and go
on slices (ends), of where work directories, outputs and checkpoints lie besides the
data directory (store), of where facts are kept (journal), of how many zones and nodes the GPUs are dealt among (zones also
by name, where one was drained and is left out), of the ports where members of gangs on
several nodes may meet (gangs), of which host schedulers lend machines to the head of a
cluster (providers), of when jobs are forgotten, where no flag says it, and of what is
done where the machine's memory runs out (airlock: kind auto, cgroup, tree or off; the
lines as shares of the memory; whether class or priority comes first in who is
suspended):

  policy: shortest
  queues:
    - {name: default, weight: 1}
    - {name: research, weight: 3, cap: 4, maxJobs: 100, maxWindow: 15m}
  market: {lambda: 0.5, bidTimeout: 200ms}
  subjobs: {processes: 8192, scratch: 64Gi, files: 1000000, tmp: own}
  ends: {risk: 0.1}
  retention: {age: 168h, jobs: 1000000}
  airlock: {kind: auto, order: class, calm: 0.85, severe: 0.92, emergency: 0.97, timer: 30s}
  store: path:/mnt/shared/sluice
  journal: etcd://10.0.0.1:2379,10.0.0.2:2379,10.0.0.3:2379/sluice/lab?ca=ca.pem
  zones: 1
  nodes: 1
  gangs: {ports: 29400-30399}
  providers:
    - {name: scavenger, kind: slurm, partition: preempt, gres: gpu:1g.10gb:1,
       atMost: 8, lengths: [10m, 30m, 2h], idle: 2m}`,
		Example: `  sluice up --data ./data --gpus sim:a100-80gb=1,layout=3g.40gb+2g.20gb+2x1g.10gb
  sluice up --data /var/lib/sluice --gpus nvml --policy fair
  sluice up --gpus nvml --rigid conservative
  sluice up --mechanism jasda --config market.yml
  sluice up --cluster 0.0.0.0:7118
  SLUICE_TOKEN=... sluice up --listen 0.0.0.0:7117 --tls-cert cert.pem --tls-key key.pem`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return up(cmd.Context(), a, open, o, f)
		},
	}
	c.Flags().StringVar(&o.DataDir, "data", data.DefaultData(a.Getenv), "the directory for everything durable")
	c.Flags().StringVar(&o.Name, "name", "", "the machine's name, which its nodes' and slices' names begin with; "+
		"the data directory keeps it (default: the host's name at the first start)")
	c.Flags().StringVar(&o.Listen, "listen", session.DefaultServer, "the address to serve on")
	c.Flags().StringVar(&o.Cluster, "cluster", "", "be the head of a cluster, and listen for machines that join at this address, such as "+
		"0.0.0.0:"+DefaultHeadPort)
	c.Flags().StringVar(&o.Address, "address", "", addressUsage+" (default: that of --cluster, or the host's name)")
	c.Flags().StringVar(&o.GPUs, "gpus", "auto", "where slices come from: auto, nvml, nvml:0,GPU-UUID, or simulated ones such as "+
		"sim:custom,mem=1Gi+512Mi")
	c.Flags().StringVar(&o.File.Policy, "policy", "", "who goes first: "+strings.Join(policies.Names(), ", ")+" (default "+
		policies.Default().Name()+")")
	c.Flags().StringVar(&o.Rigid, "rigid", backfill.Default,
		"how rigid jobs wait: gangs (as the policy has it, like all work; a place is kept for one of several slices), skip (none is "+
			"kept), fcfs (in order, one), easy (as they fit, one) or conservative (many)")
	c.Flags().StringVar(&o.Mechanism, "mechanism", "sja",
		"how jobs get their places: sja or jasda (windows are sold), or laminar (tickets search for them)")
	c.Flags().Var(&f.horizon, "horizon", "how far ahead windows are offered")
	c.Flags().Var(&f.silence, "silence", "with --cluster: remove a machine that was to be gone with its daemon (sluice join --ephemeral) "+
		"when it has been silent so long after all that it was sold is over (default 10m)")
	c.Flags().Var(&f.retain, "retain", "how long a job is kept after its end (default 168h)")
	c.Flags().Int64Var(&o.File.Retention.Jobs, "retain-jobs", 0, "how many jobs that are over are kept (default 1000000)")
	c.Flags().DurationVar(&o.Hot.Keep, "keep-hot", 0, "archive jobs so long after their end")
	_ = c.Flags().MarkHidden("keep-hot") // it is there: for tests, which can't wait
	c.Flags().BoolVar(&o.Journal.Depose, "depose", false, "take a journal in etcd over from a daemon that has it open; that one can then write nothing more")
	c.Flags().StringVar(&f.config, "config", "", "a file of the policy, of queues, of the market's settings, of when a job has waited "+
		"too long, of bounds of subjobs, of ends of gaps, of retention, of what is done where memory runs out and of a store")
	c.Flags().StringVar(&f.cert, "tls-cert", "", "the certificate to serve with, PEM")
	c.Flags().StringVar(&f.key, "tls-key", "", "its key, PEM")
	c.Flags().Uint64Var(&o.Journal.SnapshotRecords, "snapshot-records", 0, "replace the journal by a snapshot after so many records")
	_ = c.Flags().MarkHidden("snapshot-records") // it is there: for tests, which want many
	c.Flags().StringVar(&f.logLevel, "log", "info", "what to log: debug, info, warn or error")
	return a.Output(c)
}

func up(ctx context.Context, a *session.Session, open func(context.Context, Options) (*Daemon, error), o Options, f upFlags) error {
	if open == nil {
		return command.Usage("this build has no daemon in it")
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(f.logLevel)); err != nil {
		return command.Usage("--log %q: want debug, info, warn or error", f.logLevel)
	}
	if o.Horizon = time.Duration(f.horizon); o.Horizon < time.Second {
		return command.Usage("--horizon %s: want at least 1s", o.Horizon)
	}
	o.Leaving.Silence = time.Duration(f.silence.Length)
	if o.File.Retention.Age = time.Duration(f.retain.Length); o.File.Retention.Age > 0 && o.File.Retention.Age < config.MinRetention ||
		o.File.Retention.Age > config.MaxTime {
		return command.Usage("--retain %s: want %s to %s", command.Short(o.File.Retention.Age), command.Short(config.MinRetention),
			command.Short(config.MaxTime))
	}
	if o.File.Retention.Jobs < 0 || o.File.Retention.Jobs > config.MaxRetained {
		return command.Usage("--retain-jobs %d: want 1 to %d", o.File.Retention.Jobs, config.MaxRetained)
	}
	o.Log = slog.New(slog.NewTextHandler(a.Err, &slog.HandlerOptions{Level: level}))
	o.Version, o.Commit = a.Version()
	o.File.Ends = ends.DefaultTheta
	if f.config != "" {
		d, err := data.ReadDaemon(f.config)
		if err != nil {
			return err
		}
		d.Policy = cmp.Or(o.File.Policy, d.Policy)
		d.Retention.Age, d.Retention.Jobs = cmp.Or(o.File.Retention.Age, d.Retention.Age), cmp.Or(o.File.Retention.Jobs, d.Retention.Jobs)
		o.Config, o.File = f.config, d
		for _, text := range d.Renamed {
			fmt.Fprintf(a.Err, "sluice: %s: %s\n", f.config, text)
		}
	}
	o.File.Policy = cmp.Or(o.File.Policy, policies.Default().Name())
	if err := o.checkPlace(); err != nil {
		return err
	}
	o.Token = a.Secret() != ""
	daemon, err := open(ctx, o)
	if err != nil {
		return err
	}
	served := serve(ctx, a, daemon, o, api.Options{
		Service: daemon.Service, Machines: daemon.Machines, Providers: daemon.Providers, Listen: o.Listen,
		CertFile: f.cert, KeyFile: f.key, Token: a.Secret(), Socket: daemon.Socket, OwnerToken: daemon.Token,
		OwnerTokenFile: daemon.TokenFile, Metrics: daemon.Monitor.Metrics,
		Health: daemon.Monitor.Health, Ready: daemon.Monitor.Ready, Page: daemon.Page, Log: o.Log, Users: daemon.Users, Self: daemon.Self,
	})
	return errors.Join(served, daemon.Close())
}

// serves says that the daemon serves, and where.
func serves(a *session.Session, d *Daemon, o *Options, addr string) error {
	version, _ := a.Version()
	switch a.Format {
	case "json", "yaml":
		return a.Dump(command.Record{{Key: "version", Value: version}, {Key: "listen", Value: addr}, {Key: "dataDir", Value: o.DataDir},
			{Key: "notes", Value: d.Notes}})
	case "name":
		_, err := fmt.Fprintln(a.Out, addr)
		return err
	}
	typed := "sluice up"
	if o.Join {
		typed = "sluice join"
	}
	lines := append([]string{fmt.Sprintf("%s serves on %s, data in %s, version %s", typed, addr, o.DataDir, version)}, d.Notes...)
	_, err := fmt.Fprintln(a.Out, strings.Join(lines, "\n"))
	return err
}

// serve runs the daemon and its API until one of them ends or ctx is done. The API stops first: nothing is accepted that
// could not be answered.
func serve(ctx context.Context, a *session.Session, d *Daemon, o Options, options api.Options) error {
	server, err := api.Listen(options)
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	ran := make(chan error, 1)
	serving, end := context.WithCancel(ctx)
	defer end()
	go func() {
		ran <- d.Run(running)
		end() // a daemon that stopped by itself takes the API with it
	}()
	if err = setQueues(serving, d.Service, o); err != nil {
		stop()
		return errors.Join(err, <-ran, server.Close())
	}
	if err = serves(a, d, &o, server.Addr()); err != nil {
		stop()
		return errors.Join(err, <-ran, server.Close())
	}
	err = server.Serve(serving)
	stop()
	return errors.Join(<-ran, err)
}

// setQueues sets the queues as in the daemon's file, and reports those that it changed. A machine that joins has none: its file says as
// whom those of its head run.
func setQueues(ctx context.Context, service api.Service, o Options) error {
	if len(o.File.Queues) == 0 || o.Join {
		return nil
	}
	list, err := service.Queues(ctx)
	if err != nil {
		return err
	}
	for _, q := range o.File.Queues {
		for i := range list {
			if was := &list[i].Queue; was.Name == q.Name && *was != q && o.Log != nil {
				o.Log.Info("the daemon's file has other settings for a queue than it had, and they hold now", "queue", q.Name, "was",
					queueText(was),
					"is", queueText(&q), "file", o.Config)
			}
		}
		if err := service.SetQueue(ctx, "", q); err != nil {
			return fmt.Errorf("queue %s: %w", q.Name, err)
		}
	}
	return nil
}

// queueText is a queue's settings in one line.
func queueText(q *protocol.Queue) string {
	return fmt.Sprintf("weight %d, cap %d, maxJobs %d, maxWindow %s, user %q", q.Weight, q.Cap, q.MaxJobs, command.Short(q.MaxWindow),
		q.User)
}
