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

	"sluice.dev/sluice/internal/edge/cluster"
	"sluice.dev/sluice/internal/edge/command"
	pb "sluice.dev/sluice/internal/edge/wire/sluice/v1alpha1/sluicev1alpha1connect"
)

// manager is who we are where fields of an object have owners.
const manager = "kubectl-sluice"

// Our custom resources of these names.
var (
	jobs     = schema.GroupVersionResource{Group: cluster.Group, Version: cluster.Version, Resource: "jobs"}     //nolint:gochecknoglobals // read-only by use; Go has no constant structs
	requests = schema.GroupVersionResource{Group: cluster.Group, Version: cluster.Version, Resource: "requests"} //nolint:gochecknoglobals // as jobs
)

// Options say which cluster is meant, as kubectl's flags of these names do.
type Options struct {
	// Kubeconfig is a file; empty: KUBECONFIG, ~/.kube/config, or the account of the Pod that this is. Context is one of it; empty: its current one. Namespace; empty:
	// that of the context.
	Kubeconfig, Context, Namespace string
	// StoreAddress is host:port by which the operator's store is reached from here; empty: that of its URLs.
	StoreAddress string
}

// handler is the API of one namespace: of it the calls that served names.
type handler struct {
	pb.SluiceServiceHandler // nil: the rest of it is not reached
	client                  kubernetes.Interface
	objects                 dynamic.Interface
	say                     sayer
	// storeAddress is where uploads go; empty: where their URL says.
	storeAddress string
}

// sayer is what errors name: whom it was that was asked.
type sayer struct{ context, namespace, server string }

// Open finds the cluster, and asks it nothing. It returns what answers the API's calls, and what people are told that this is. Errors are of usage.
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
	return within(h.served()), h.say.String(), nil
}

// served has the calls that there are for a namespace. All others are about the whole cluster, which no namespace's rights cover.
func (h *handler) served() http.Handler {
	_, all := pb.NewSluiceServiceHandler(h)
	mux := http.NewServeMux()
	for _, call := range []string{
		pb.SluiceServiceSubmitProcedure, pb.SluiceServiceDryRunProcedure, pb.SluiceServiceListJobsProcedure, pb.SluiceServiceWaitJobProcedure,
		pb.SluiceServiceCancelProcedure, pb.SluiceServiceDeleteProcedure, pb.SluiceServiceLogsProcedure,
		pb.SluiceServiceExplainProcedure, pb.SluiceServiceGetJobProcedure,
	} {
		mux.Handle(call, all)
	}
	refuse := connect.NewErrorWriter()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		_ = refuse.Write(w, r, connect.NewError(connect.CodeUnimplemented, errors.New("this is not there for a namespace of a cluster"))) // to ourselves
	})
	return mux
}

func newHandler(config *rest.Config, say sayer) (*handler, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	objects, err := dynamic.NewForConfig(config)
	return &handler{client: client, objects: objects, say: say}, err
}

func contextOf(loader clientcmd.ClientConfig, o Options) string {
	if raw, err := loader.RawConfig(); err == nil && o.Context == "" {
		return raw.CurrentContext
	}
	return o.Context
}

// misconfigured says what is wrong with a kubeconfig, and which contexts there are.
func misconfigured(loader clientcmd.ClientConfig, o Options, err error) error {
	raw, unread := loader.RawConfig()
	switch _, there := raw.Contexts[o.Context]; {
	case unread != nil:
		return command.Usage("--kubeconfig: %w", unread)
	case o.Context != "" && !there && len(raw.Contexts) > 0:
		return command.Usage("--context %s: there is no such context: want %s", o.Context, strings.Join(slices.Sorted(maps.Keys(raw.Contexts)), ", "))
	case len(raw.Contexts) == 0:
		return command.Usage("no cluster is known here: name its file with --kubeconfig or KUBECONFIG (%w)", err)
	}
	return command.Usage("--context %s: %w", contextOf(loader, o), err)
}

// String is for people.
func (s sayer) String() string {
	if s.context == "" {
		return fmt.Sprintf("namespace %s of %s", s.namespace, s.server)
	}
	return fmt.Sprintf("namespace %s of context %s", s.namespace, s.context)
}

// of is the namespace's objects of ours.
func (h *handler) of(r schema.GroupVersionResource) dynamic.ResourceInterface {
	return h.objects.Resource(r).Namespace(h.say.namespace)
}
