package cli

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	pb "sluice.dev/sluice/api/sluice/v1alpha1/sluicev1alpha1connect"
	"sluice.dev/sluice/internal/edge/command"
)

// Where says which cluster is meant, as kubectl's flags of these names do; empty: what kubectl would take. StoreAddress is where its operator's store is reached from
// here; empty: where it says.
type Where struct{ Kubeconfig, Context, Namespace, StoreAddress string }

const pluginHelp = `Sluice turns leftover GPU time into finished work.

These are its commands for the jobs of one namespace of a cluster that has an operator of
Sluice. They read and write its objects as you: what you may do your roles in that namespace
say. ClusterRole sluice-user of the chart has all that is needed.

Exit codes: 0 done; 1 the operation failed, or a job waited for did not complete;
2 wrong arguments or a wrong file; 3 no API server answers; 4 wait's time was over.`

const pluginExample = "  kubectl sluice submit train.yaml --wait\n  kubectl sluice jobs -n team-a\n  kubectl sluice explain train\n  kubectl sluice logs train -f"

// inCluster says whether a command is there for a namespace of a cluster too.
func inCluster(c *cobra.Command) bool {
	return slices.Contains([]string{"submit", "init", "jobs", "job", "explain", "logs", "wait", "cancel", "delete", "version", "help", "completion", "__complete", "__completeNoDesc"}, c.Name())
}

// clusterFlags are those by which a cluster is named. A build that can't reach one has them too, to say so.
func (a *app) clusterFlags(root *cobra.Command) {
	f := root.PersistentFlags()
	f.StringVar(&a.where.Context, "context", "", "call a Kubernetes cluster, by this context of your kubeconfig, in place of a daemon")
	f.StringVarP(&a.where.Namespace, "namespace", "n", "", "with --context: whose jobs (default: the context's namespace)")
	f.StringVar(&a.where.Kubeconfig, "kubeconfig", "", "with --context: the file that has it (default: KUBECONFIG, ~/.kube/config)")
	f.StringVar(&a.where.StoreAddress, "store-address", "", "with --context: host:port at which the cluster's store is reached from here (default: as its operator reaches it)")
	own := []string{"context", "namespace", "kubeconfig", "store-address"}
	switch {
	case a.deps.Plugin:
		root.Use, root.Long, root.Example = "kubectl-sluice", pluginHelp, pluginExample
		f.Lookup("context").Usage = "which context of your kubeconfig (default: its current one)"
		for _, name := range own[1:] {
			f.Lookup(name).Usage = strings.TrimPrefix(f.Lookup(name).Usage, "with --context: ")
		}
		own = []string{"server", "token", "tls-ca"}
	case a.deps.Cluster != nil:
		own = nil
	}
	for _, name := range own {
		f.Lookup(name).Hidden = true
	}
	root.PersistentPreRunE = func(c *cobra.Command, _ []string) error { return a.reaches(c, root) }
}

// clustered says whether a cluster is meant, and no daemon.
func (a *app) clustered() bool { return a.deps.Plugin || a.where != Where{} }

// numbers are the flags that -n N stands for where no cluster is named, by command.
func numbers() map[string]string { return map[string]string{"logs": "tail", "jobs": "limit"} }

// count takes -n for the number that people mean with it, where no --context gives it another meaning.
func (a *app) count(c *cobra.Command) error {
	text := a.where.Namespace
	if a.deps.Plugin || a.where != (Where{Namespace: text}) || text == "" {
		return nil
	}
	name := numbers()[c.Name()]
	if _, err := strconv.ParseUint(text, 10, 31); name == "" || err != nil {
		how := "a namespace and what else names a part of a cluster go with --context NAME; a daemon has no namespaces"
		if name != "" {
			how += ". Without it -n N is --" + name + " N"
		}
		return command.Usage("-n %s: %s", text, how)
	}
	a.where.Namespace = ""
	if c.Flags().Changed(name) {
		return command.Usage("-n %s and --%s: want one of them", text, name)
	}
	return c.Flags().Set(name, text)
}

// reaches refuses flags of a cluster where they would do nothing.
func (a *app) reaches(c, root *cobra.Command) error {
	if err := a.count(c); err != nil {
		return err
	}
	for c.HasParent() && c.Parent() != root {
		c = c.Parent()
	}
	f := root.PersistentFlags()
	switch {
	case !a.clustered():
		return nil
	case a.deps.Cluster == nil:
		return command.Usage("this build has no Kubernetes in it, so that there is no --context and what goes with it: `make build TAGS=\"s3 kubernetes\"` makes one that has")
	case !a.deps.Plugin && a.where.Context == "":
		return command.Usage("--namespace, --kubeconfig and --store-address go with --context NAME; as kubectl-sluice the program takes the current context")
	case !inCluster(c):
		return command.Usage("%s is not there for a namespace of a cluster: who runs the operator has it beside that: kubectl -n sluice-system exec deploy/sluice -- /sluice %s", c.Name(), c.Name())
	case f.Changed("server") || f.Changed("token") || f.Changed("tls-ca"):
		return command.Usage("--server, --token and --tls-ca name a daemon, and --context a cluster: want one of them")
	}
	return nil
}

// clusterClient calls what answers for the namespace.
func (a *app) clusterClient() (pb.SluiceServiceClient, error) {
	answers, where, err := a.deps.Cluster(a.where)
	if err != nil {
		return nil, err
	}
	a.server, a.token, a.http = where, "", &http.Client{Transport: answers}
	return pb.NewSluiceServiceClient(a.http, "http://cluster", connect.WithInterceptors(&caller{app: a}), connect.WithReadMaxBytes(256<<20)), nil
}
