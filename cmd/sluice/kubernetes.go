//go:build kubernetes

package main

import (
	"net/http"

	"github.com/spf13/cobra"

	policies "sluice.dev/sluice/internal/core/policy/all"
	"sluice.dev/sluice/internal/edge/command"
	stores "sluice.dev/sluice/internal/edge/store/all"
	"sluice.dev/sluice/internal/face/cli/session"
	"sluice.dev/sluice/internal/face/operator"
	"sluice.dev/sluice/internal/face/operator/client"
)

// inCluster is the command of an operator.
func inCluster(run *command.App) *cobra.Command {
	return operator.Command(run, operator.Deps{Version: version, Commit: commit, Policies: policies.Names(), Policy: policies.ByName,
		Store: stores.OpenLater})
}

// cluster reaches the jobs of a namespace of a cluster.
func cluster(w session.Where) (http.RoundTripper, string, error) {
	return client.Open(client.Options(w))
}
