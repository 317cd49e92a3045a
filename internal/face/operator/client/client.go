//go:build kubernetes

package client

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"connectrpc.com/connect"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	pb "sluice.dev/sluice/api/sluice/v1alpha1/sluicev1alpha1connect"
	"sluice.dev/sluice/internal/edge/cluster"
	"sluice.dev/sluice/internal/edge/command"
)

// manager is our field manager.
const manager = "kubectl-sluice"

// Custom resources that the client uses.
//
//nolint:gochecknoglobals // read-only by use; Go has no constant structs
var (
	jobs = schema.GroupVersionResource{Group: cluster.Group, Version: cluster.Version,
		Resource: "jobs"}
	requests = schema.GroupVersionResource{Group: cluster.Group, Version: cluster.Version,
		Resource: "requests"}
)

// Options choose a cluster, like kubectl's flags of these names.
type Options struct {
	// Kubeconfig is a file; empty: KUBECONFIG, ~/.kube/config, or the Pod's service account. Context empty: the current one. Namespace
	// empty: the context's.
	Kubeconfig, Context, Namespace string
	// StoreAddress is the host:port of the operator's store as reached from here; empty: as in its URLs.
	StoreAddress string
}

// handler implements the API for one namespace: the calls listed in served.
type handler struct {
	pb.SluiceServiceHandler // nil: calls that are not served never reach it
	in                      *space
	// storeAddress overrides the address in upload URLs; empty: it does not.
	storeAddress string
}

// space is the namespace, with the objects in it.
type space struct {
	client  kubernetes.Interface
	objects dynamic.Interface
	say     sayer
}

// sayer names the cluster in errors.
type sayer struct{ context, namespace, server string }

// Open reads the configuration and makes no call. It returns a transport that answers the API's calls, and a description of the cluster.
// Errors are usage errors.
func Open(o Options) (answers http.RoundTripper, where string, err error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.Kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: o.Context}
	overrides.Context.Namespace = o.Namespace
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, "", misconfigured(loader, o, err)
	}
	namespace, _, err := loader.Namespace()
	if err != nil {
		return nil, "", misconfigured(loader, o, err)
	}
	config.UserAgent = manager
	h, err := newHandler(config, sayer{context: contextOf(loader, o), namespace: namespace, server: config.Host})
	if err != nil {
		return nil, "", misconfigured(loader, o, err)
	}
	h.storeAddress = o.StoreAddress
	return within(h.served()), h.in.say.String(), nil
}

// served lists the calls that a namespace has. The others are about the whole cluster, beyond a namespace's rights.
func (h *handler) served() http.Handler {
	_, all := pb.NewSluiceServiceHandler(h)
	mux := http.NewServeMux()
	for _, call := range []string{
		pb.SluiceServiceSubmitProcedure, pb.SluiceServiceDryRunProcedure, pb.SluiceServiceListJobsProcedure,
		pb.SluiceServiceWaitJobProcedure,
		pb.SluiceServiceCancelProcedure, pb.SluiceServiceDeleteProcedure, pb.SluiceServiceLogsProcedure,
		pb.SluiceServiceExplainProcedure, pb.SluiceServiceGetJobProcedure,
	} {
		mux.Handle(call, all)
	}
	refuse := connect.NewErrorWriter()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		// the reader is this process
		_ = refuse.Write(w, r, connect.NewError(connect.CodeUnimplemented, errors.New("this is not there for a namespace of a cluster")))
	})
	return mux
}

func newHandler(config *rest.Config, say sayer) (*handler, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	objects, err := dynamic.NewForConfig(config)
	return &handler{in: &space{client, objects, say}}, err
}

func contextOf(loader clientcmd.ClientConfig, o Options) string {
	if raw, err := loader.RawConfig(); err == nil && o.Context == "" {
		return raw.CurrentContext
	}
	return o.Context
}

// misconfigured explains a kubeconfig's error, and lists its contexts.
func misconfigured(loader clientcmd.ClientConfig, o Options, err error) error {
	raw, unread := loader.RawConfig()
	switch _, there := raw.Contexts[o.Context]; {
	case unread != nil:
		return command.Usage("--kubeconfig: %w", unread)
	case o.Context != "" && !there && len(raw.Contexts) > 0:
		return command.Usage("--context %s: there is no such context: want %s", o.Context,
			strings.Join(slices.Sorted(maps.Keys(raw.Contexts)), ", "))
	case len(raw.Contexts) == 0:
		return command.Usage("no cluster is known here: name its file with --kubeconfig or KUBECONFIG (%w)", err)
	}
	return command.Usage("--context %s: %w", contextOf(loader, o), err)
}

// String describes the cluster for people.
func (s sayer) String() string {
	if s.context == "" {
		return fmt.Sprintf("namespace %s of %s", s.namespace, s.server)
	}
	return fmt.Sprintf("namespace %s of context %s", s.namespace, s.context)
}

// of is the client for a resource in the namespace.
func (s *space) of(r schema.GroupVersionResource) dynamic.ResourceInterface {
	return s.objects.Resource(r).Namespace(s.say.namespace)
}
