//go:build !kubernetes

package main

import (
	"net/http"

	"github.com/spf13/cobra"

	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/face/cli/session"
)

// inCluster and cluster are nil: this build has no Kubernetes in it.
var (
	inCluster func(*command.App) *cobra.Command                      //nolint:gochecknoglobals // a build has it or not
	cluster   func(session.Where) (http.RoundTripper, string, error) //nolint:gochecknoglobals // the same
)
