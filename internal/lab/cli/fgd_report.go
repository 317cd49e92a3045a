package cli

import (
	"fmt"
	"text/tabwriter"

	"sluice.dev/sluice/internal/lab/experiment/fgd"
)

// fgdLine, fgdOrder and fgdVerdict are the report of a check in the form for programs; all figures in percent or
// percentage points.
type fgdLine struct {
	Workload            string  `json:"workload"`
	Policy              string  `json:"policy"`
	Seeds               int     `json:"seeds"`
	Allocated           float64 `json:"allocated"`
	Published           float64 `json:"published"`
	Difference          float64 `json:"difference"`
	Deviation           float64 `json:"deviation"`
	Band                float64 `json:"band"`
	OK                  bool    `json:"ok"`
	Fragmented          float64 `json:"fragmented"`
	PublishedFragmented float64 `json:"publishedFragmented"`
}

type fgdOrder struct {
	Workload  string  `json:"workload"`
	Better    string  `json:"better"`
	Worse     string  `json:"worse"`
	Lead      float64 `json:"lead"`
	Published float64 `json:"published"`
	OK        bool    `json:"ok"`
}

type fgdVerdict struct {
	OK    bool       `json:"ok"`
	Means []fgdLine  `json:"means"`
	Order []fgdOrder `json:"order"`
}

func fgdReportJSON(r *fgd.Report) fgdVerdict {
	v := fgdVerdict{OK: r.OK(), Means: []fgdLine{}, Order: []fgdOrder{}}
	for _, l := range r.Lines {
		v.Means = append(v.Means, fgdLine{
			l.Workload, l.Policy, l.Seeds, fourDigits(l.Allocated), fourDigits(l.Published), fourDigits(l.Difference),
			fourDigits(l.Deviation), l.Band, l.OK, fourDigits(l.Fragmented), fourDigits(l.PublishedFragmented),
		})
	}
	for _, o := range r.Orders {
		v.Order = append(v.Order, fgdOrder{o.Workload, o.Better, o.Worse, fourDigits(o.Lead), fourDigits(o.Published), o.OK})
	}
	return v
}

// fgdReport prints a check for people: every mean, and the order where it is broken.
func (a *app) fgdReport(r *fgd.Report) error {
	w := tabwriter.NewWriter(a.Out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "WORKLOAD\tPOLICY\tSEEDS\tALLOCATED\tPUBLISHED\tDIFFERENCE\tBAND\t\tFRAGMENTED\tPUBLISHED")
	kept := 0
	for _, l := range r.Lines {
		word := "FAIL"
		if l.OK {
			word = "ok"
			kept++
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%.2f%%\t%.2f%%\t%+.2f\t%.1f\t%s\t%.1f%%\t%.1f%%\n",
			l.Workload, l.Policy, l.Seeds, l.Allocated, l.Published, l.Difference, l.Band, word, l.Fragmented, l.PublishedFragmented)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	ordered := 0
	for _, o := range r.Orders {
		if o.OK {
			ordered++
			continue
		}
		fmt.Fprintf(a.Out, "FAIL  %s: %s is not above %s: %+.2f, published %+.2f\n", o.Workload, o.Better, o.Worse, o.Lead, o.Published)
	}
	_, err := fmt.Fprintf(a.Out, "\n%d of %d means are in their band, %d of %d pairs in the published order; FRAGMENTED at %d%% arrived\n",
		kept, len(r.Lines), ordered, len(r.Orders), fgd.Knee)
	return err
}
