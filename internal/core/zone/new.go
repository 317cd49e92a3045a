package zone

import (
	"sluice.dev/sluice/internal/core/backfill"
	"sluice.dev/sluice/internal/core/home"
	"sluice.dev/sluice/internal/core/home/view"
	"sluice.dev/sluice/internal/core/market"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/zone/bets"
	"sluice.dev/sluice/internal/core/zone/caps"
	"sluice.dev/sluice/internal/core/zone/reach"
	"sluice.dev/sluice/internal/core/zone/sites"
)

// New makes a zone without jobs.
func New(cfg Config) (*Zone, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	z := &Zone{cfg: cfg, self: protocol.Address{Role: protocol.Zone, ID: string(cfg.ID)}, bets: bets.New(cfg.Ends), caps: caps.New()}
	z.home = home.New(cfg.ledger(z.self), (*watcher)(z), (*fleet)(z))
	z.assemble()
	z.view = view.New(cfg.view(), (*viewSource)(z).parts())
	return z, nil
}

// assemble makes what offers and sells.
func (z *Zone) assemble() {
	z.floor = market.NewFloor(z.cfg.floor(z.self), (*seller)(z))
	z.planner = backfill.New(z.cfg.planner(), z.floor, (*placer)(z))
	z.sites = sites.New(z.floor, z.planner, z.home, z.bets, z.cfg.AskTTL, z.cfg.Own)
	z.reach = reach.New(z.floor, z.planner, z.cfg.Market != nil, z.cfg.elsewhere())
	z.federate()
}
