//go:build !kubernetes

package main

import (
	"github.com/spf13/cobra"

	"sluice.dev/sluice/internal/edge/command"
)

// inCluster is nil: this build has no operator.
var inCluster func(*command.App) *cobra.Command //nolint:gochecknoglobals // a build has it or not
