//go:build kubernetes

package kubernetes

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/lab/live"
)

// Open begins to watch a cluster, until the context ends. Errors have kind Invalid: the cluster is named wrongly. One that does not answer
// is no error here, but of each look.
func Open(ctx context.Context, o Options) (live.Source, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.Kubeconfig
	c, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules,
		&clientcmd.ConfigOverrides{CurrentContext: o.Context}).ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, errkind.Errorf(errkind.Invalid, "no cluster is known here: name its file with --kubeconfig or KUBECONFIG (%w)", err)
	}
	if err != nil {
		return nil, errkind.Errorf(errkind.Invalid, "--kubeconfig: %w", err)
	}
	return connect(ctx, c)
}

// connect begins to watch by a configuration.
func connect(ctx context.Context, c *rest.Config) (*Source, error) {
	c.QPS, c.UserAgent, c.WarningHandler = -1, "sluice-forecast", rest.NoWarnings{}
	c.ContentType, c.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON
	client, err := kubernetes.NewForConfig(c)
	if err != nil {
		return nil, errkind.Errorf(errkind.Invalid, "--kubeconfig: %w", err)
	}
	return watch(ctx, client, c.Host), nil
}
