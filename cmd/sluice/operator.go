//go:build kubernetes

package main

import (
	"github.com/spf13/cobra"

	policies "sluice.dev/sluice/internal/core/policy/all"
	stores "sluice.dev/sluice/internal/edge/store/all"

	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/face/operator"
)

// inCluster is the command of an operator.
func inCluster(run *command.App) *cobra.Command {
	return operator.Command(run, operator.Deps{Version: version, Commit: commit, Policies: policies.Names(), Policy: policies.ByName,
		Store: stores.OpenLater})
}
