package cli

import (
	"errors"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/lab/experiment/forecast"
)

func (a *app) simCheckForecastCmd() *cobra.Command {
	var data string
	var all bool
	c := &cobra.Command{
		Use: "forecast", Short: "Hold what is learned of memory against published series and jobs",
		Long: `Predict the next hour's peak of the GPU memory of Alibaba's Stable Diffusion service, and the
peaks of the training runs of MISO and CARMA, from what came before, and compare how often the
bounds are passed and how much is allocated with rules such as the most of 3 hours x 1.2.

First comes the rule that is the default, in a rolling test: at the begin of each hour a rule is
chosen by the hours whose outcomes are known by then, on other pods, and judged on the hour and
the pods that follow. Behind it stands what looks better: rules chosen on hours that they are
judged on. It ends with exit code 1 if a promised share of misses is not kept on jobs in random
orders; whether the target on the series is met is said and decides nothing.

The folders genai2026, miso and carma of the data are read.`,
		Example: "  sluice sim check forecast --data ./data\n  sluice sim check forecast --data ./data -o json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if data == "" {
				return command.Usage("--data: want the folder of published traces; its folders are genai2026, miso and carma")
			}
			r, err := forecast.Check(data)
			if err != nil {
				return err
			}
			if err := a.forecastReport(r, all); err != nil {
				return err
			}
			if !r.OK() {
				return &command.Failure{Code: command.ExitFailed,
					Err: errors.New("a promised share of misses is not kept on jobs in random orders; see the lines that say FAIL")}
			}
			return nil
		},
	}
	c.Flags().StringVar(&data, "data", a.Getenv("SLUICE_DATA"), "the folder of published traces (SLUICE_DATA)")
	c.Flags().BoolVar(&all, "all", false, "also list every way of predicting that was tried")
	return a.OutputAs(c, "table", "json")
}

// forecastScore, forecastPoint and forecastLine are the report in the form for programs; figures in percent.
type forecastScore struct {
	Predictions int     `json:"predictions"`
	Under       float64 `json:"under"`
	Over        float64 `json:"over"`
	Held        float64 `json:"held"`
}

type forecastPoint struct {
	Rule     string         `json:"rule"`
	Theta    float64        `json:"theta,omitempty"`
	Chosen   *forecastScore `json:"chosen,omitempty"`
	Reported *forecastScore `json:"reported,omitempty"`
}

type forecastPublished struct {
	Rule  string        `json:"rule"`
	Ours  forecastScore `json:"ours"`
	Under float64       `json:"publishedUnder"`
	Over  float64       `json:"publishedOver"`
}

type forecastLine struct {
	Data   string  `json:"data"`
	Rule   string  `json:"rule"`
	Theta  float64 `json:"theta,omitempty"`
	Listed bool    `json:"listed"`
	Jobs   int     `json:"jobs"`
	Seen   int     `json:"seen"`
	forecastScore
	OK bool `json:"ok"`
}

type forecastRolled struct {
	Rule  string  `json:"rule"`
	Asked float64 `json:"asked,omitempty"`
	forecastScore
	// WorstHour is the largest share of misses of any hour, in percent.
	WorstHour float64  `json:"worstHour"`
	Picked    []string `json:"picked,omitempty"`
}

type forecastRolling struct {
	First      int              `json:"firstHour"`
	Hours      int              `json:"hours"`
	Candidates int              `json:"candidates"`
	Default    *forecastRolled  `json:"default"`
	Former     *forecastRolled  `json:"former"`
	Next       string           `json:"next"`
	Ways       []forecastRolled `json:"ways"`
	Fixed      []forecastRolled `json:"fixed"`
}

func forecastRolledOf(r *forecast.Rolled) *forecastRolled {
	s := forecastScoreOf(r.Score)
	if s == nil {
		return nil
	}
	return &forecastRolled{r.Rule, r.Asked, *s, fourDigits(r.Worst), r.Picked}
}

func forecastRollingOf(r *forecast.Rolling) forecastRolling {
	list := func(of []forecast.Rolled) []forecastRolled {
		out := []forecastRolled{}
		for i := range of {
			if x := forecastRolledOf(&of[i]); x != nil {
				out = append(out, *x)
			}
		}
		return out
	}
	return forecastRolling{r.First, r.Hours, r.Candidates, forecastRolledOf(&r.Default), forecastRolledOf(&r.Former), r.Next, list(r.Ways),
		list(r.Fixed)}
}

type forecastReport struct {
	OK        bool                `json:"ok"`
	TargetMet bool                `json:"targetMet"`
	Pods      int                 `json:"pods"`
	Hours     float64             `json:"hours"`
	Rolling   forecastRolling     `json:"rolling"`
	Setting   string              `json:"setting"`
	Published []forecastPublished `json:"published"`
	Naive     []forecastPoint     `json:"naive"`
	Ours      []forecastPoint     `json:"ours"`
	Hindsight []forecastPoint     `json:"hindsight"`
	Tried     []forecastPoint     `json:"tried"`
	Jobs      []forecastLine      `json:"jobs"`
}

func forecastScoreOf(s forecast.Score) *forecastScore {
	if s.Predictions == 0 {
		return nil
	}
	return &forecastScore{s.Predictions, fourDigits(s.UnderRate()), fourDigits(s.Over()), fourDigits(s.Held())}
}

func forecastPoints(points []forecast.Point) []forecastPoint {
	out := []forecastPoint{}
	for _, p := range points {
		out = append(out, forecastPoint{p.Rule, p.Theta, forecastScoreOf(p.Chosen), forecastScoreOf(p.Reported)})
	}
	return out
}

func forecastJSON(r *forecast.Report) forecastReport {
	g := r.Series
	out := forecastReport{
		OK: r.OK(), TargetMet: g.Met(), Pods: g.Pods, Hours: fourDigits(g.Hours), Rolling: forecastRollingOf(g.Rolling), Setting: g.Setting,
		Published: []forecastPublished{},
		Naive:     forecastPoints(g.Naive), Ours: forecastPoints(g.Ours), Hindsight: forecastPoints(g.Hindsight),
		Tried: forecastPoints(g.Tried),
		Jobs:  []forecastLine{},
	}
	for _, p := range g.Published {
		if s := forecastScoreOf(p.Ours); s != nil {
			out.Published = append(out.Published, forecastPublished{p.Rule, *s, p.Under, p.Over})
		}
	}
	for _, l := range r.Jobs {
		if s := forecastScoreOf(l.Score); s != nil {
			out.Jobs = append(out.Jobs, forecastLine{l.Data, l.Rule, l.Theta, l.Listed, l.Jobs, l.Seen, *s, l.OK})
		}
	}
	return out
}

func (a *app) forecastReport(r *forecast.Report, all bool) error {
	if a.Format == "json" {
		return a.printJSON(forecastJSON(r))
	}
	g := r.Series
	if err := a.forecastRolling(g.Rolling, g.Met(), all); err != nil {
		return err
	}
	fmt.Fprintf(a.Out, "\nThe next hour's peak: %d pods over %.1f h. UNDER is the share of predictions that the peak passed, OVER "+
		"the\nmean of bound over peak less 1. Published is of the whole day's 144 pods.\n\n", g.Pods, g.Hours)
	w := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "RULE\tUNDER\tOVER\tPUBLISHED UNDER\tOVER")
	for _, p := range g.Published {
		fmt.Fprintf(w, "%s\t%.1f%%\t%.1f%%\t%.1f%%\t%.1f%%\n", p.Rule, p.Ours.UnderRate(), p.Ours.Over(), p.Under, p.Over)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(a.Out, "\nThe frontier of a setting that was chosen on the other %d pods over all hours, also those that it is judged "+
		"on; it looks\nbetter than it was on hours that nobody had seen. History 3 h, nothing above the card. Learned: %s.\n\n", g.Chosen,
		g.Setting)
	fmt.Fprintln(w, "RULE\tASKED\tUNDER\tOVER\tHELD\tUNDER, OTHER PODS\tOVER")
	for _, p := range g.Ours {
		fmt.Fprintf(w, "learned\t%g%%\t%s\t%s\n", p.Theta, forecastCells(p.Reported, true), forecastCells(p.Chosen, false))
	}
	for _, p := range g.Naive {
		fmt.Fprintf(w, "%s\t\t%s\t%s\n", p.Rule, forecastCells(p.Reported, true), forecastCells(p.Chosen, false))
	}
	for _, p := range g.Hindsight {
		fmt.Fprintf(w, "%s, known afterwards\t%g%%\t%s\t\t\n", p.Rule, p.Theta, forecastCells(p.Reported, true))
	}
	if all {
		for _, p := range g.Tried {
			fmt.Fprintf(w, "tried: %s\t%g%%\t\t\t\t%s\n", p.Rule, p.Theta, forecastCells(p.Chosen, false))
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprint(a.Out, "\nPeaks of jobs, from those before.\n\n")
	fmt.Fprintln(w, "JOBS\tORDER\tSEEN\tRULE\tASKED\tUNDER\tOVER\tHELD\t")
	for _, l := range r.Jobs {
		order, asked, ok := "random", "", ""
		if l.Listed {
			order = "as listed"
		}
		if l.Theta > 0 {
			asked, ok = fmt.Sprintf("%g%%", l.Theta), "ok"
		}
		if l.Listed {
			ok = ""
		}
		if !l.OK {
			ok = "FAIL"
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\t%s\t%s\n", l.Data, order, l.Seen, l.Rule, asked, forecastCells(l.Score, true), ok)
	}
	return w.Flush()
}

// forecastRolling prints the rolling test, the result first.
func (a *app) forecastRolling(r *forecast.Rolling, met, all bool) error {
	d := &r.Default
	if d.Predictions == 0 {
		fmt.Fprintf(a.Out, "The series is too short for the rolling test, which judges from hour %d on.\n", r.First)
		return nil
	}
	word := "not met"
	if met {
		word = "met"
	}
	fmt.Fprintf(a.Out, "The default, %s, is passed by the next hour's peak in %.2f%% of the predictions, at a mean of %.1f%% over "+
		"it.\nThe target, at most %g%% under at no more than %g%% over, is %s.\n\n",
		d.Rule, d.UnderRate(), d.Over(), forecast.TargetUnder, forecast.TargetOver, word)
	fmt.Fprintf(a.Out, "The rolling test over %d hours, from hour %d on, %d predictions: chosen of %d candidates by what was known "+
		"before, on other pods.\n\n",
		r.Hours, r.First, d.Predictions, r.Candidates)
	w := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "RULE\tASKED\tUNDER\tOVER\tWORST HOUR")
	line := func(x *forecast.Rolled, note string) {
		asked := ""
		if x.Asked > 0 {
			asked = fmt.Sprintf("%g%%", x.Asked)
		}
		fmt.Fprintf(w, "%s%s\t%s\t%.2f%%\t%.1f%%\t%.1f%%\n", x.Rule, note, asked, x.UnderRate(), x.Over(), x.Worst)
	}
	line(d, " (default)")
	line(&r.Former, " (the former default)")
	for i := range r.Ways {
		line(&r.Ways[i], "")
	}
	for i := range r.Fixed {
		if x := &r.Fixed[i]; all || x.Asked == 0 {
			line(x, "")
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(a.Out, "\nBy all of these hours and pods the plain rule for %g%% is %s.\n", forecast.TargetUnder, r.Next)
	return err
}

// forecastCells are the columns of a score.
func forecastCells(s forecast.Score, held bool) string {
	text := fmt.Sprintf("%.2f%%\t%.1f%%", s.UnderRate(), s.Over())
	if held {
		text += fmt.Sprintf("\t%.1f%%", s.Held())
	}
	return text
}
