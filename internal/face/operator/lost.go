//go:build kubernetes

package operator

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/cluster"
)

// notLost refuses to begin an empty journal where the cluster shows traces of an earlier one: Pods under this operator's name that have
// not ended, or unfinished Jobs of it with committed work. Most likely the
// wrong volume is mounted, or another operator uses the name, and to begin would end what runs.
func notLost(ctx context.Context, client kubernetes.Interface, dynamics dynamic.Interface, o *Options) error {
	why, err := signs(ctx, client, dynamics, o)
	if err != nil {
		return errkind.Errorf(errkind.Unavailable, "what runs under the name %s: %w", o.Name, err)
	}
	if why == "" {
		return nil
	}
	return errkind.Errorf(errkind.Conflict, "the journal in %s is empty, but %s: mount the volume that has it; or, if another operator "+
		"of this cluster is called %s too, give this one another --name; "+
		"or, if the journal is lost, start once with --new-journal: what runs is ended then, and jobs that are not over begin anew. "+
		"Nothing was changed", o.DataDir, why, o.Name)
}

// signs describes such traces; empty: none.
func signs(ctx context.Context, client kubernetes.Interface, dynamics dynamic.Interface, o *Options) (string, error) {
	pods, err := client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
		LabelSelector: cluster.LabelOperator + "=" + o.Name, FieldSelector: "status.phase!=Succeeded,status.phase!=Failed", Limit: 1,
	})
	if err != nil {
		return "", err
	}
	if len(pods.Items) > 0 {
		p := &pods.Items[0]
		return fmt.Sprintf("subjobs run under the name %s, Pod %s/%s is one", o.Name, p.Namespace, p.Name), nil
	}
	page := metav1.ListOptions{Limit: 500}
	for {
		list, err := dynamics.Resource(jobs).Namespace(o.Watch).List(ctx, page)
		if err != nil {
			return "", err
		}
		for i := range list.Items {
			j := &list.Items[i]
			if done, _, _ := unstructured.NestedInt64(j.Object, "status", "committed"); done > 0 && Owner(j) == o.Name &&
				!over(conditionsOf(j)) {
				return fmt.Sprintf("Job %s, which operator %s has taken, has %d units done", keyOf(j), o.Name, done), nil
			}
		}
		if page.Continue = list.GetContinue(); page.Continue == "" {
			return "", nil
		}
	}
}
