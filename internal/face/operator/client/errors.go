//go:build kubernetes

package client

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"connectrpc.com/connect"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/cluster"
	"sluice.dev/sluice/internal/face/api"
)

// sent converts an error to the API's.
func sent(err error) error {
	if err == nil {
		return nil
	}
	return connect.NewError(api.Code(errkind.Of(err)), err)
}

// explain turns the API server's error into what it means for a user who wanted to do verb, and who can fix it.
func (s sayer) explain(err error, verb, what string) error {
	var lost net.Error
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return nil
	case apierrors.IsForbidden(err):
		return errkind.Errorf(errkind.Denied, "%s: you may not %s %s in namespace %s: its administrator can let you: kubectl -n %s "+
			"create rolebinding sluice-NAME --clusterrole=%s --user=NAME",
			words(err), verb, what, s.namespace, s.namespace, cluster.UserRole)
	case apierrors.IsUnauthorized(err):
		return errkind.Errorf(errkind.Denied, "context %s: the cluster at %s does not take its credentials: log in again, or choose "+
			"another with --context", s.context, s.server)
	case apierrors.IsNotFound(err) && unknown(err):
		return errkind.Errorf(errkind.Unsupported, "the cluster at %s knows no %s.%s: no operator is installed there, or one older than "+
			"this program: kubectl apply --server-side --force-conflicts -f deploy/helm/sluice/crds, and helm upgrade",
			s.server, what, cluster.Group)
	case apierrors.IsNotFound(err):
		return errkind.Errorf(errkind.NotFound, "%s: `kubectl sluice jobs -n %s` lists them", words(err), s.namespace)
	case apierrors.IsAlreadyExists(err):
		return errkind.Errorf(errkind.Exists, "%s", words(err))
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return errkind.Errorf(errkind.Invalid, "%s", words(err))
	case apierrors.IsConflict(err):
		return errkind.Errorf(errkind.Conflict, "%s: try again", words(err))
	case apierrors.IsTooManyRequests(err), apierrors.IsServiceUnavailable(err), apierrors.IsServerTimeout(err), apierrors.IsTimeout(err):
		return errkind.Errorf(errkind.Unavailable, "the cluster at %s is busy: %s", s.server, words(err))
	case errors.As(err, &status):
		return fmt.Errorf("%s %s: %s", verb, what, words(err))
	case errors.As(err, &lost):
		return errkind.Errorf(errkind.Unavailable, "no API server answers at %s: %w", s.server, err)
	}
	return fmt.Errorf("%s %s in namespace %s: %w", verb, what, s.namespace, err)
}

// unknown reports whether the kind itself is not defined, rather than one object missing.
func unknown(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && strings.Contains(status.Status().Message, "could not find the requested resource")
}

// words are the API server's own message.
func words(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return status.Status().Message
	}
	return err.Error()
}
