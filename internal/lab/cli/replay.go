package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"sluice.dev/sluice/internal/core/airlock"
	"sluice.dev/sluice/internal/core/arrangement"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/federation/flow"
	"sluice.dev/sluice/internal/core/filing"
	"sluice.dev/sluice/internal/core/gang"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/joint"
	"sluice.dev/sluice/internal/core/market/auction"
	"sluice.dev/sluice/internal/core/market/starvation"
	policies "sluice.dev/sluice/internal/core/policy/all"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/edge/tape"
	"sluice.dev/sluice/internal/lab/sim"
)

func (a *app) simReplayCmd() *cobra.Command {
	var boot string
	c := &cobra.Command{
		Use: "replay TAPE", Short: "Play a daemon's tape again and compare every decision",
		Long: `Play the tape of a daemon into fresh actors and compare the digest of their state after
every call. TAPE is a daemon's data directory, or the folder of its tapes. Without --boot
it is the last boot. Nothing is changed.

Exit 0: every digest is the same. Exit 1: one differs, which another build or a bug makes;
the message names the call.`,
		Example: "  sluice sim replay /var/lib/sluice\n  sluice sim replay ./data --boot 20260301T120000.000000000",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			dir := args[0]
			if sub := filepath.Join(dir, "tape"); isDir(sub) {
				dir = sub
			}
			return a.replay(dir, boot)
		},
	}
	c.Flags().StringVar(&boot, "boot", "", "which run of the daemon (default: the last)")
	return a.OutputAs(c, "table", "json")
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func (a *app) replay(dir, boot string) (err error) {
	boots, err := tape.Boots(dir)
	if err != nil {
		return err
	}
	if len(boots) == 0 {
		return errkind.Errorf(errkind.Invalid, "%s holds no tapes; give a daemon's data directory", dir)
	}
	if boot == "" {
		boot = boots[len(boots)-1]
	}
	r, err := tape.Open(dir, boot)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	h := r.Header()
	var shown struct {
		Mechanism, Policy, Rigid, Horizon, Node string
		Market                                  *auction.Config
		Starve                                  starvation.Limit
		Archive                                 *filing.Config
		Ends                                    int64
		Zones, Nodes                            int
		ZoneNames                               []job.ZoneID
		Places                                  []arrangement.Location
		Flow                                    *flow.Config
		Capacities                              []quantity.Amount
		Airlock                                 airlock.Config
		Memory                                  joint.Config
		Fixed                                   bool
		Address                                 string
		Ports                                   gang.Ports
	}
	if err = json.Unmarshal(h.Config, &shown); err != nil {
		return errkind.Errorf(errkind.Invalid, "tape %s: its configuration can't be read: %w", boot, err)
	}
	horizon, err := time.ParseDuration(shown.Horizon)
	if err != nil {
		return errkind.Errorf(errkind.Invalid, "tape %s: its horizon can't be read: %w", boot, err)
	}
	p, err := policies.ByName(shown.Policy)
	if err != nil {
		return err
	}
	// Tapes of before there was a choice name no mechanism and no way with rigid jobs.
	config, err := arrangement.Choice{
		Policy: p, Mechanism: cmp.Or(shown.Mechanism, "sja"), Market: shown.Market, Rigid: cmp.Or(shown.Rigid, "easy"),
		Starvation: shown.Starve, Horizon: horizon, Node: job.NodeID(shown.Node),
		Archive: shown.Archive, Ends: shown.Ends, Zones: shown.Zones, ZoneNames: shown.ZoneNames, Nodes: shown.Nodes, Places: shown.Places,
		Flow: shown.Flow, Capacities: shown.Capacities, Airlock: shown.Airlock, Memory: shown.Memory, Fixed: shown.Fixed,
		Address: shown.Address, Ports: shown.Ports,
	}.Config()
	if err != nil {
		return err
	}
	build, err := config.Build()
	if err != nil {
		return err
	}
	done, err := sim.Replay(r, build().Parties(), nil)
	if err != nil {
		return fmt.Errorf("tape %s of %s %s: %w", boot, h.Version, h.Commit, err)
	}
	if a.Format == "json" {
		return a.Dump(command.Record{
			{Key: "boot", Value: boot}, {Key: "version", Value: h.Version}, {Key: "commit", Value: h.Commit},
			{Key: "recovered", Value: done.Recovered}, {Key: "calls", Value: done.Calls},
			{Key: "facts", Value: done.Facts}, {Key: "effects", Value: done.Effects}, {Key: "compared", Value: done.Compared},
		})
	}
	fmt.Fprintf(a.Out, "tape %s, made by %s %s: %d facts recovered, %d calls played, %d facts decided again, %d digests compared, all "+
		"equal\n",
		boot, h.Version, h.Commit, done.Recovered, done.Calls, done.Facts, done.Compared)
	return nil
}
