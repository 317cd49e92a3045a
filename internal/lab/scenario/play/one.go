package play

import (
	"context"
	"errors"
	"fmt"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/lab/measure"
	"sluice.dev/sluice/internal/lab/scenario/outcome"
)

// check lists what can't be run.
func (o *Options) check() error {
	var problems []error
	if len(o.Mechanisms) == 0 {
		problems = append(problems, errors.New("no mechanism is given"))
	}
	if o.Scenario.NeedsData() && o.Data.Dir == "" {
		problems = append(problems, fmt.Errorf("scenario %s is composed of published traces; give their folder with --data DIR",
			o.Scenario.Name))
	}
	for i := range o.Mechanisms {
		problems = append(problems, playable(o.Scenario, &o.Mechanisms[i]))
	}
	if err := errors.Join(problems...); err != nil {
		return errkind.Errorf(errkind.Invalid, "%w", err)
	}
	return nil
}

// runner runs a scenario's runs. What the runs of one seed share is found once.
type runner struct {
	Options
	worlds []world // by place of the seed
}

// one runs the scenario once. There is no result if ctx ends before anything has happened.
func (r *runner) one(ctx context.Context, m *Mechanism, seed int, progress func(quantity.Instant, int)) (*outcome.Result, error) {
	s := r.Scenario
	if s.Swarm != nil {
		return playLean(ctx, s, m, r.Seeds[seed], r.Data, r.Clock, progress)
	}
	w, err := r.worlds[seed].see(ctx, s, m, r.Seeds[seed], r.Data)
	if err != nil {
		return nil, notBegun(ctx, err)
	}
	from, err := offer(ctx, s, r.Seeds[seed], r.Data)
	if err != nil {
		return nil, notBegun(ctx, err)
	}
	window := w.window(s)
	usable := judge{classes: w.classes}
	collector, err := measure.New(measure.Config{Classes: w.measured, Window: window, Usable: usable.usable})
	if err != nil {
		return nil, err
	}
	witness := newWitness(from.named, s.Slices())
	observers := measure.Observers{witness, collector}
	var leftover *measure.Leftover
	if s.Host != nil {
		leftover = newLeftover(s, w)
		observers = append(observers, leftover)
	}
	var starts *measure.Starts
	if s.Workload.Stays() && m.Policy != nil {
		starts = measure.NewStarts(window, s.Slices(), w.host.Gaps(window.From, window.To))
		observers = append(observers, starts)
	}
	if r.Observe != nil {
		if own := r.Observe(m.Name, r.Seeds[seed]); own != nil {
			observers = append(observers, own)
		}
	}
	var recorder *measure.Recorder
	if r.Spans > 0 && seed == 0 {
		recorder = measure.NewRecorder(w.measured, r.Spans)
		observers = append(observers, recorder)
	}
	play := playProtocol
	switch {
	case m.Planner != nil:
		play = playPlanner
	case m.Filler != nil:
		play = playFiller
	}
	var market measure.Negotiation
	var survival measure.Survival
	var visits measure.Visits
	var lent measure.Lent
	var strains []status.Strain
	var reclaims []status.ReclaimStep
	var mail *measure.Mail
	if r.Mail {
		mail = &measure.Mail{}
	}
	at, over, err := play(ctx, stage{s, m, r.Seeds[seed], w, from, observers, progress, &market, &survival, &visits, &lent, &strains,
		&reclaims, mail})
	if err != nil {
		return nil, err
	}
	if over {
		at = max(at, window.To)
	}
	out := &outcome.Result{
		Run:      measure.Run{Scenario: s.Name, Mechanism: m.Name, Seed: r.Seeds[seed], Metrics: collector.Finish(at)},
		Finished: witness.finished, Live: witness.live, Partial: ctx.Err() != nil && !over, At: at, Broken: witness.broken,
		Fates: witness.fates, Strains: strains, Reclaims: reclaims, Mail: mail.List(),
	}
	if over && witness.live > 0 {
		out.Broken = append(out.Broken, fmt.Sprintf("%d jobs are lost: the run is over and they have no final state", witness.live))
	}
	if leftover != nil {
		leftover.Set(&out.Metrics)
	}
	if starts != nil {
		starts.Set(&out.Metrics)
	}
	if m.Market != nil {
		market.Set(&out.Metrics, collector.Messages())
	}
	if s.Memory != nil {
		survival.Set(&out.Metrics)
	}
	if s.Guests != nil {
		visits.Set(&out.Metrics)
	}
	if s.Pools != nil {
		lent.Set(&out.Metrics)
	}
	if market.Waits > 0 {
		out.Metrics.Set(measure.WaitCoverage, 1-float64(market.Sooner+market.Later)/float64(market.Waits))
		out.Told, out.Sooner, out.Later = market.Waits, market.Sooner, market.Later
	}
	if market.Kept > 0 {
		out.Metrics.Set(measure.CutShort, float64(market.CutShort)/float64(market.Kept))
	}
	if !out.Partial {
		out.Metrics.Set(measure.BoundShare, w.share(out.Metrics.Get(measure.UsefulWork)))
		out.Metrics.Set(measure.CompletionOverBound, w.times(out.Metrics))
	}
	if recorder != nil {
		out.Recording = recorder.Recording()
	}
	out.Waits = collector.Waits()
	return out, nil
}
