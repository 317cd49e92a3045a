//go:build kubernetes

package kubernetes

import (
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"sluice.dev/sluice/internal/core/errkind"
)

// said is an API server's refusal as an error of ours; nil for none. Whatever is not surely a refusal is Unavailable: what was asked may
// have been done.
func said(what string, err error) error {
	if err == nil {
		return nil
	}
	return errkind.Errorf(kindOf(err), "kubernetes: %s: %w", what, err)
}

// kindOf is the kind of error that an answer means.
func kindOf(err error) errkind.Kind {
	var status apierrors.APIStatus
	if !errors.As(err, &status) { // nobody answered
		return errkind.Unavailable
	}
	text := err.Error()
	has := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(text, w) {
				return true
			}
		}
		return false
	}
	switch {
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsRequestEntityTooLargeError(err),
		apierrors.IsMethodNotSupported(err):
		return errkind.Invalid
	case apierrors.IsNotFound(err): // the namespace
		return errkind.Invalid
	case apierrors.IsUnauthorized(err):
		return errkind.Denied
	case !apierrors.IsForbidden(err):
		return errkind.Unavailable
	case has("exceeded quota", "status unknown for quota"):
		return errkind.Exhausted
	case has("no PriorityClass with name", "priority admission controller", "must specify", "per Container", "per Pod"):
		return errkind.Invalid // of the class, a quota or a LimitRange
	}
	return errkind.Denied
}
