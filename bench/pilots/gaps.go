package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"connectrpc.com/connect"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/test/slurm/cluster"
)

// gap is one that ends in a reservation, and the share of it that is to become committed work.
type gap struct {
	length time.Duration
	target float64
}

// perUnit is what a unit of the work takes, which may be cut after each.
const perUnit = time.Second

// site is a Slurm of one node, and a head that asks it for pilots.
type site struct {
	slurm *cluster.Cluster
	head  *world
}

// gaps are how much of them is committed work, all at once and each at a site of its own.
func gaps(ctx context.Context, s *settings) (rows []row, err error) {
	list := []gap{{2*time.Minute + 15*time.Second, .6}, {5*time.Minute + 15*time.Second, .8}, {20*time.Minute + 15*time.Second, .93}}
	sites := make([]*site, len(list))
	defer func() {
		for _, x := range sites {
			err = errors.Join(err, x.end(context.WithoutCancel(ctx)))
		}
	}()
	for i := range list { // one after the other: a head is started with the commands of its Slurm
		if sites[i], err = newSite(ctx, s, i); err != nil {
			return nil, err
		}
	}
	shares, errs := make([]float64, len(list)), make([]error, len(list))
	var all sync.WaitGroup
	for i, g := range list {
		all.Go(func() { shares[i], errs[i] = sites[i].share(ctx, g.length) })
	}
	all.Wait()
	for i, g := range list {
		rows = append(rows, row{fmt.Sprintf("committed share of a gap of %v that ends in a reservation, one node", g.length),
			fmt.Sprintf("%.2g", g.target), fmt.Sprintf("%.3g", shares[i])})
	}
	return rows, errors.Join(errs...)
}

// newSite starts a site whose pool is paused, with work that waits: as much as anybody can do, cut anywhere.
func newSite(ctx context.Context, s *settings, number int) (x *site, err error) {
	x = &site{}
	x.slurm, err = cluster.Start(ctx, cluster.Config{Dir: filepath.Join(s.temp, fmt.Sprintf("gap-%d", number)), Nodes: 1, CPUs: 1})
	if err != nil {
		return x, err
	}
	if x.head, err = newWorld(s, x.slurm, lending{most: 2, slices: 1, cpus: 1, lengths: "[1m, 30m]"}); err != nil {
		return x, err
	}
	if _, err = x.head.providers.PauseProvider(ctx, connect.NewRequest(&pb.PauseProviderRequest{Name: pool})); err != nil {
		return x, err
	}
	return x, x.head.Send(ctx, fmt.Sprintf(`apiVersion: sluice.dev/v1alpha1
kind: Job
metadata: {name: work}
spec:
  items: {total: 100000, perItem: %v}
  startup: 100ms
  memory: 16Mi
  grace: 500ms
  command:
  - sh
  - -c
  - |
    for i in $(seq $((SLUICE_FROM + 1)) $SLUICE_TO); do
      sleep %g
      echo "{\"progress\": $i}" >"$SLUICE_PROGRESS_FILE.new" && mv "$SLUICE_PROGRESS_FILE.new" "$SLUICE_PROGRESS_FILE"
    done
`, perUnit, perUnit.Seconds()))
}

// share lets the pool ask for pilots as soon as a reservation has made the gap, and returns what of the gap is committed soon after its
// end.
func (x *site) share(ctx context.Context, length time.Duration) (float64, error) {
	begin := time.Now()
	end := begin.Add(length)
	if err := x.slurm.Reserve(ctx, "gap", end, time.Hour, "ALL"); err != nil {
		return 0, err
	}
	if _, err := x.head.providers.ResumeProvider(ctx, connect.NewRequest(&pb.ResumeProviderRequest{Name: pool})); err != nil {
		return 0, err
	}
	select {
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-time.After(time.Until(end.Add(10 * time.Second))):
	}
	r, err := x.head.GetJob(ctx, connect.NewRequest(&pb.GetJobRequest{Name: "work"}))
	if err != nil {
		return 0, err
	}
	units := r.Msg.Job.Progress
	fmt.Printf("# gap of %v: %d units of %v are committed\n", length, units, perUnit)
	return float64(units) * perUnit.Seconds() / length.Seconds(), nil
}

// end ends the site, as far as it was started.
func (x *site) end(ctx context.Context) (err error) {
	if x == nil {
		return nil
	}
	if x.head != nil {
		err = x.head.end(ctx, x.slurm)
	}
	if x.slurm != nil {
		err = errors.Join(err, x.slurm.Stop())
	}
	return err
}
