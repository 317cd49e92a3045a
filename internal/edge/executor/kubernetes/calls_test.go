//go:build kubernetes

package kubernetes

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestWhatPassesIsTriedAgain: a subjob does not pay for rights that its operator lacks for a while.
func TestWhatPassesIsTriedAgain(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	for _, c := range []struct {
		err     error
		refused bool
	}{
		{apierrors.NewForbidden(pods, "x",
			errors.New(`User "system:serviceaccount:sluice:sluice" cannot create resource "pods" in API group "" in the namespace "team"`)),
			false},
		{apierrors.NewForbidden(pods, "x", errors.New("status unknown for quota: gpus, resources: requests.nvidia.com/gpu")), false},
		{apierrors.NewForbidden(pods, "x", errors.New("no PriorityClass with name sluice-leftover was found")), false},
		{apierrors.NewForbidden(pods, "x", errors.New(`error looking up service account team/default: serviceaccount "default" not found`)),
			false},
		{apierrors.NewUnauthorized("the token has expired"), false},
		{apierrors.NewServiceUnavailable("not now"), false},
		{apierrors.NewTooManyRequests("later", 1), false},
		{apierrors.NewForbidden(pods, "x", errors.New("exceeded quota: gpus, requested: 1, used: 4, limited: 4")), true},
		{apierrors.NewForbidden(pods, "x", errors.New("failed quota: cpus: must specify requests.cpu")), true},
		{apierrors.NewForbidden(pods, "x", errors.New(`violates PodSecurity "restricted:latest": runAsNonRoot != true`)), true},
	} {
		if why, _ := refusal(c.err); (why != "") != c.refused {
			t.Errorf("%v: refused %q, want %v", c.err, why, c.refused)
		}
	}
}
