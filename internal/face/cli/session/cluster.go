package session

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	"cmp"

	pb "sluice.dev/sluice/api/sluice/v1alpha1/sluicev1alpha1connect"
	"sluice.dev/sluice/internal/edge/command"
)

const pluginHelp = `Sluice turns leftover GPU time into finished work.

These are its commands for the jobs of one namespace of a cluster that has an operator of
Sluice. They read and write its objects as you: what you may do your roles in that namespace
say. ClusterRole sluice-user of the chart has all that is needed.

Exit codes: 0 done; 1 the operation failed, or a job waited for did not complete;
2 wrong arguments or a wrong file; 3 no API server answers; 4 wait's time was over.`

const pluginExample = "  kubectl sluice submit train.yaml --wait\n  kubectl sluice jobs -n team-a\n  kubectl sluice explain train\n  " +
	"kubectl sluice logs train -f"

// InCluster reports whether a command is there for a namespace of a cluster too.
func InCluster(c *cobra.Command) bool {
	return slices.Contains([]string{"submit", "init", "jobs", "job", "explain", "logs", "wait", "cancel", "delete", "version", "help",
		"completion", "__complete", "__completeNoDesc"}, c.Name())
}

// clusterFlags are those by which a cluster is named. A build that can't reach one has them too, to say so.
func (a *Session) clusterFlags(root *cobra.Command) {
	f := root.PersistentFlags()
	f.StringVar(&a.where.Context, "context", "", "call a Kubernetes cluster, by this context of your kubeconfig, in place of a daemon")
	f.StringVarP(&a.where.Namespace, "namespace", "n", "", "with --context: whose jobs (default: the context's namespace)")
	f.StringVar(&a.where.Kubeconfig, "kubeconfig", "", "with --context: the file that has it (default: KUBECONFIG, ~/.kube/config)")
	f.StringVar(&a.where.StoreAddress, "store-address", "",
		"with --context: host:port at which the cluster's store is reached from here (default: as its operator reaches it)")
	own := []string{"context", "namespace", "kubeconfig", "store-address"}
	switch {
	case a.Options.Plugin:
		root.Use, root.Long, root.Example = "kubectl-sluice", pluginHelp, pluginExample
		f.Lookup("context").Usage = "which context of your kubeconfig (default: its current one)"
		for _, name := range own[1:] {
			f.Lookup(name).Usage = strings.TrimPrefix(f.Lookup(name).Usage, "with --context: ")
		}
		own = []string{"server", "token", "tls-ca"}
	case a.Options.Cluster != nil:
		own = nil
	}
	for _, name := range own {
		f.Lookup(name).Hidden = true
	}
	root.PersistentPreRunE = func(c *cobra.Command, _ []string) error { return a.reaches(c, root) }
}

// Clustered reports whether a cluster is meant, and no daemon.
func (a *Session) Clustered() bool { return a.Options.Plugin || a.where != Where{} }

// numbers are the flags that -n N stands for where no cluster is named, by command.
func numbers() map[string]string { return map[string]string{"logs": "tail", "jobs": "limit"} }

// count takes -n for the number that people mean with it, where no --context gives it another meaning.
func (a *Session) count(c *cobra.Command) error {
	text := a.where.Namespace
	if a.Options.Plugin || a.where != (Where{Namespace: text}) || text == "" {
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
func (a *Session) reaches(c, root *cobra.Command) error {
	if err := a.count(c); err != nil {
		return err
	}
	for c.HasParent() && c.Parent() != root {
		c = c.Parent()
	}
	f := root.PersistentFlags()
	switch {
	case !a.Clustered():
		return nil
	case a.Options.Cluster == nil:
		return command.Usage("this build has no Kubernetes in it, so that there is no --context and what goes with it: `make build " +
			"TAGS=\"s3 kubernetes\"` makes one that has")
	case !a.Options.Plugin && a.where.Context == "":
		return command.Usage("--namespace, --kubeconfig and --store-address go with --context NAME; as kubectl-sluice the program takes " +
			"the current context")
	case !InCluster(c):
		return command.Usage("%s is not there for a namespace of a cluster: who runs the operator has it beside that: kubectl -n "+
			"sluice-system exec deploy/sluice -- /sluice %s", c.Name(), c.Name())
	case f.Changed("server") || f.Changed("token") || f.Changed("tls-ca"):
		return command.Usage("--server, --token and --tls-ca name a daemon, and --context a cluster: want one of them")
	}
	return nil
}

// clusterClient calls what answers for the namespace.
func (a *Session) clusterClient() (pb.SluiceServiceClient, error) {
	answers, where, err := a.Options.Cluster(a.where)
	if err != nil {
		return nil, err
	}
	a.server, a.token, a.http = where, "", &http.Client{Transport: answers}
	return pb.NewSluiceServiceClient(a.http, "http://cluster", connect.WithInterceptors(&caller{Session: a}),
		connect.WithReadMaxBytes(256<<20)), nil
}

// Flags are those of every command: which daemon or cluster is called.
func (a *Session) Flags(root *cobra.Command) {
	f := root.PersistentFlags()
	f.StringVar(&a.server, "server", cmp.Or(a.Getenv("SLUICE_SERVER"), DefaultServer),
		"the daemon's address (SLUICE_SERVER): host:port, https://host:port, or unix:PATH")
	f.StringVar(&a.token, "token", "", "your token, or the daemon's (better: SLUICE_TOKEN, which other users can't see)")
	f.StringVar(&a.ca, "tls-ca", a.Getenv("SLUICE_TLS_CA"), "trust this PEM file for the daemon's certificate (SLUICE_TLS_CA)")
	a.clusterFlags(root)
}
