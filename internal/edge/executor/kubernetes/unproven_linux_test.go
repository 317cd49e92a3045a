//go:build kubernetes

package kubernetes_test

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
)

// TestAStopIsHeardThoughNobodySaysWhetherThereAreKeys: what can't be found out holds no order up.
func TestAStopIsHeardThoughNobodySaysWhetherThereAreKeys(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.open()
	d.Kubelet.Silence(true)
	d.do(d.lease(tok(1), job.Range{To: 10}, nil, "p 10"))
	d.Until("there is a Pod", func() bool { return d.Pod(tok(1)) != nil })
	d.api.Fail(func(verb, resource, _ string) error {
		if verb == "get" && resource == "secrets" {
			return apierrors.NewServiceUnavailable("not now")
		}
		return nil
	})
	d.open()
	d.do(protocol.Message{Kind: protocol.Stop, Token: tok(1), Job: "train", Body: &protocol.Halt{Text: "enough", Now: true}})
	d.Until("its end is asked for", func() bool { p := d.Pod(tok(1)); return p == nil || p.DeletionTimestamp != nil })
}
