//go:build kubernetes

package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/policy"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/command"
	pods "sluice.dev/sluice/internal/edge/executor/kubernetes"
	"sluice.dev/sluice/internal/edge/store"
)

// Deps are the command's dependencies that main chooses.
type Deps struct {
	Version, Commit string
	// Policies are the names, the default first; Policy looks one up.
	Policies []string
	Policy   func(name string) (policy.Policy, error)
	// Store opens a store by its spec. away is why it does not answer, if it was opened all the same.
	Store func(ctx context.Context, spec string) (s store.Store, away, err error)
}

// flags that are not Options.
type flags struct {
	kubeconfig, context, store, shim, policy, log string
	horizon, retain                               string
	requests, limits                              string
}

// Command makes `sluice operator`.
func Command(run *command.App, d Deps) *cobra.Command {
	var o Options
	var f flags
	c := &cobra.Command{
		Use: "operator", Short: "Run Sluice in a Kubernetes cluster", GroupID: "daemon", Args: cobra.NoArgs,
		Long: `Be the daemon of a Kubernetes cluster: offer what its scheduler leaves over of its GPUs
to jobs, run their subjobs as Pods of a priority below everything, and give back what
others wait for.

It reads three kinds of objects of sluice.dev/v1alpha1: a Job is the file of sluice
submit, a Queue its share and limits, a SlicePool which devices are offered. It writes
their status. The definitions of all three are in the Helm chart (deploy/helm/sluice),
which is how an operator is put into a cluster.

Without --kubeconfig it uses the Pod's own account, or else what kubectl would use. One
operator of a name works at a time: it holds a lease, and ends if it loses that. Operators
of several names share a cluster: a Job belongs to the first that takes it; --namespace
restricts one to a namespace. Keep --data-dir on a volume: what is in it must not be lost.
Subjobs go on while no operator is there, and the next one finds them.

--store must be one that lends objects to Pods, which is s3; Pods get URLs that expire,
and no keys. The keys are in the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY).

The API of sluice is on --listen, of this machine alone: kubectl exec has sluice beside
it, and kubectl port-forward reaches it with the token of the data directory. --health
serves /healthz, /readyz and /metrics, and nothing of jobs.`,
		Example: `  sluice operator --store 's3://sluice?endpoint=https://minio.storage:9000' --shim-image registry.example.com/sluice:v1
  sluice operator --kubeconfig ~/.kube/config --operator-namespace sluice --data-dir ./data --store s3://sluice --shim-image registry.example.com/sluice:v1
  sluice operator --name a --namespace team-a --store s3://team-a --shim-image registry.example.com/sluice:v1      # and another for team-b`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return start(cmd.Context(), run, d, o, f)
		},
	}
	p := c.Flags()
	p.StringVar(&f.kubeconfig, "kubeconfig", "", "the cluster, as kubectl reads it (default: the Pod's own account, KUBECONFIG, "+
		"~/.kube/config)")
	p.StringVar(&f.context, "context", "", "which context of that file (default: its current one)")
	p.StringVar(&o.Watch, "namespace", "", "take jobs of this namespace alone (default: of all)")
	p.StringSliceVar(&o.JobNamespaces, "job-namespaces", nil,
		"the namespaces that it may write Pods in, by its roles; jobs of others are refused (default: all)")
	p.StringVar(&o.Namespace, "operator-namespace", "", "where the operator's lease is (default: POD_NAMESPACE, or the Pod's own)")
	p.StringVar(&o.Name, "name", "sluice", "what this operator is called: two of one name don't work at once, and each of several in a "+
		"cluster needs its own")
	p.StringVar(&o.DataDir, "data-dir", "/var/lib/sluice", "the directory for everything durable, on a volume")
	p.BoolVar(&o.NewJournal, "new-journal", false, "begin with an empty journal though Pods or Jobs say that there was one: what runs "+
		"is ended, and jobs that are not over begin anew")
	p.StringVar(&f.store, "store", "", "where work directories, outputs and checkpoints lie, such as s3://BUCKET?endpoint=URL")
	p.StringVar(&f.shim, "shim-image", "", "an image with /sluice-shim, such as this operator's own")
	p.StringVar(&f.requests, "pod-requests", "cpu=100m,memory=128Mi",
		"what each subjob's Pod asks for beside its device: cpu, memory, ephemeral-storage; empty: nothing")
	p.StringVar(&f.limits, "pod-limits", "", "what a subjob's Pod may take of these; empty: as much as there is")
	p.StringVar(&o.Listen, "listen", "127.0.0.1:7117", "the address of the API, of this machine alone")
	p.StringVar(&o.Health, "health", ":8080", "the address of health and metrics")
	p.StringVar(&f.policy, "policy", d.Policies[0], "who goes first: "+strings.Join(d.Policies, ", "))
	p.StringVar(&o.Mechanism, "mechanism", "sja", "how windows are sold: sja or jasda")
	p.StringVar(&f.horizon, "horizon", "1h", "how far ahead windows are offered")
	p.StringVar(&f.retain, "retain", "168h", "how long a job is kept after its end; its object stays")
	p.StringVar(&f.log, "log", "info", "what to log: debug, info, warn or error")
	return c
}

// start reports all errors of the flags at once, then reaches the cluster and the store, and runs the operator.
func start(ctx context.Context, run *command.App, d Deps, o Options, f flags) (err error) {
	var errs []error
	wrong := func(flag string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("--%s: %w", flag, err))
		}
	}
	length := func(flag, text string) time.Duration {
		d, failed := quantity.ParseDuration(text)
		wrong(flag, failed)
		return d
	}
	o.Horizon, o.Retention.Age = length("horizon", f.horizon), length("retain", f.retain)
	requests, err := pods.ParseResources(f.requests)
	wrong("pod-requests", err)
	limits, err := pods.ParseResources(f.limits)
	wrong("pod-limits", err)
	for name, most := range limits {
		if q, asked := requests[name]; asked && q.Cmp(most) > 0 {
			wrong("pod-limits", fmt.Errorf("%s=%s is less than the %s that --pod-requests asks for", name, most.String(), q.String()))
		}
	}
	o.Policy, err = d.Policy(f.policy)
	wrong("policy", err)
	var level slog.Level
	wrong("log", level.UnmarshalText([]byte(f.log)))
	o.Log = slog.New(slog.NewTextHandler(run.Err, &slog.HandlerOptions{Level: level}))
	if f.shim == "" {
		wrong("shim-image", errors.New("is missing: name an image with /sluice-shim"))
	}
	if f.store == "" {
		wrong("store", errors.New("is missing: name one such as s3://BUCKET?endpoint=URL"))
	}
	o.Namespace = cmp.Or(o.Namespace, run.Getenv("POD_NAMESPACE"), ownNamespace())
	o.Identity, err = identity(run.Getenv)
	wrong("name", err)
	o.Version, o.Commit = d.Version, d.Commit
	if err = errors.Join(errs...); err != nil {
		return command.Usage("%w", err)
	}
	boundMemory("/sys/fs/cgroup", o.Log)
	if o.Cluster, err = reach(f); err != nil {
		return err
	}
	where, away, err := d.Store(ctx, f.store)
	if err != nil {
		return fmt.Errorf("--store: %w", err)
	}
	if away != nil {
		o.Log.Warn("the store is away: what runs goes on, and nothing is started until it answers", "error", away)
	}
	o.Parts = Kinds{Store: where, ShimImage: f.shim, Requests: requests, Limits: limits}.Parts(&o)
	o.Ready = func(api, health string) {
		o.Log.Info("the operator works", "version", o.Version, "api", api, "health", health, "data", o.DataDir)
	}
	return errors.Join(Run(ctx, o), where.Close())
}

// reach is the cluster's configuration, without a client-side rate limit: the API server's own priority and fairness knows who else calls.
func reach(f flags) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.kubeconfig
	c, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules,
		&clientcmd.ConfigOverrides{CurrentContext: f.context}).ClientConfig()
	if err != nil {
		return nil, errkind.Errorf(errkind.Invalid, "--kubeconfig: %w", err)
	}
	return Client(c), nil
}

// Client sets a configuration up for an operator's clients, and returns it: no rate limit, and protobuf, which costs the API server less
// than JSON for each Pod and each of its watchers. Dynamic clients use JSON regardless, as custom resources need.
func Client(c *rest.Config) *rest.Config {
	c.QPS, c.UserAgent = -1, "sluice-operator"
	c.ContentType, c.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON
	return c
}

// ownNamespace is the namespace of the Pod that this process is in; empty: not in a Pod.
func ownNamespace() string {
	text, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// identity names this process in the lease. In a Pod (POD_UID) it is the Pod's UID, so that a restarted container has its lease at once: a
// kubelet starts a container only after the last one has ended.
func identity(getenv func(string) string) (string, error) {
	host, err := os.Hostname()
	if uid := getenv("POD_UID"); uid != "" {
		return host + "_" + uid, err
	}
	return fmt.Sprintf("%s_%d_%d", host, os.Getpid(), time.Now().UnixNano()), err
}
