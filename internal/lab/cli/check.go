package cli

import "github.com/spf13/cobra"

func (a *app) simCheckCmd() *cobra.Command {
	c := &cobra.Command{
		Use: "check", Short: "Compare simulations with published results",
		Long:    "Run what others have published with their data, and compare the results with theirs.",
		Example: "  sluice sim check fgd --data ./data\n  sluice sim check batsim --data ./data\n  sluice sim check forecast --data ./data",
	}
	c.AddCommand(a.simCheckFGDCmd(), a.simCheckBatsimCmd(), a.simCheckForecastCmd())
	return c
}
