//go:build !kubernetes

package main

import (
	"net/http"

	"sluice.dev/sluice/internal/face/cli/session"
)

// cluster is nil: this build has no Kubernetes in it.
var cluster func(session.Where) (http.RoundTripper, string, error) //nolint:gochecknoglobals // a build has it or not
