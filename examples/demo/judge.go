package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"sort"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/edge/picture"
	"sluice.dev/sluice/internal/edge/terminal"
)

// draw reads sides, the first of them in pieces and the second in blocks, and concludes.
func draw(out io.Writer, file, plan string, sides []string) error {
	reserved, err := readPlan(plan)
	if err != nil {
		return err
	}
	var results []*result
	for _, s := range sides {
		r, err := load(s, reserved)
		if err != nil {
			return err
		}
		results = append(results, r)
	}
	return conclude(out, results, file, reserved)
}

// off says the plan in words.
func off(plan []reserved) string {
	var all []string
	for _, r := range plan {
		where := "everywhere"
		if r.memory != 0 {
			where = fmt.Sprintf("on %d MiB", r.memory)
		}
		all = append(all, fmt.Sprintf("  %-12s %-10s from %s to %s", r.kind, where, r.start, r.start+r.last))
	}
	return strings.Join(all, "\n")
}

// conclude draws the sides, the first of them in pieces and the second in blocks, says what they show, and returns what
// is not as it has to be.
func conclude(out io.Writer, sides []*result, file string, plan []reserved) error {
	if len(sides) == 0 {
		return errors.New("neither side came to anything that could be drawn")
	}
	measure := sides[0].took()
	for _, r := range sides {
		measure = min(measure, r.took())
	}
	panels := make([]picture.Panel, len(sides))
	for i, r := range sides {
		panels[i] = picture.Panel{Title: r.title, History: r.history, Measure: measure}
	}
	var svg bytes.Buffer
	if err := picture.SVG(&svg, panels); err != nil {
		return err
	}
	if err := os.WriteFile(file, svg.Bytes(), 0o644); err != nil {
		return err
	}
	whole := len(sides) == 2
	if whole {
		fmt.Fprintln(out, outcome(sides, panels[0].Share(), panels[1].Share())+"\n")
	}
	if err := picture.Terminal(out, panels, columns(), terminal.Is(out) && os.Getenv("TERM") != "dumb" &&
		os.Getenv("NO_COLOR") == ""); err != nil {
		return err
	}
	fmt.Fprint(out, "\n"+weatherReport(sides))
	if !whole {
		return nil // what is missing has said why
	}
	pieces, blocks := sides[0], sides[1]
	known, total := knownEnds(pieces.windows)
	fmt.Fprintf(out, `
Both sides did the same work on the same slices. Off the market, known from the start:
%s
  The first side had done all of it after %s; up to there both had work left, so that is the time measured.
  Cut to fit ran %d pieces, the other side %d blocks. A block's walltime is two to five times what it takes, as people ask,
  by what the machine was measured to be before: more where it was slower then.
  Pieces that committed nothing count as empty time, blocks do not. The gaps are short on purpose: on slices that nobody
  takes back, blocks fill as well. Windows, cut to fit: %d of %d (%.0f%%) end at something known: %s.
  The daemon was killed once on each side, after 8s, and started again 1s later: %d and %d subjobs ran on without it. When it
  came back %d and %d still ran; the others had ended by themselves. In all, %d subjobs ended without a result that counts.
`, off(plan), seconds(measure), pieces.pieces, blocks.pieces, known, total, share(known, total), kinds(pieces.windows),
		pieces.killed, blocks.killed, pieces.survived, blocks.survived, pieces.lost+blocks.lost)
	return judge(sides, panels[0].Share(), panels[1].Share())
}

// busy is the share of their time that a side's processes waited for a processor.
func (r *result) busy() float64 { return float64(r.waited) / float64(max(1, r.ran)) }

// fair is the share from which on a comparison says as much about the machine as about the sides.
const fair = 0.2

// weatherReport says how busy the machine was on each side.
func weatherReport(sides []*result) string {
	text := ""
	for _, r := range sides {
		text += fmt.Sprintf("  %s: the machine was busy %.0f%% of the time: so long its programs waited for a processor.\n", r.title,
			100*r.busy())
	}
	if len(sides) == 2 && disturbed(sides) {
		text += "  On a machine as busy as this, and not equally busy all the time, their times don't tell which way is better: " +
			"what counts is that all of it was done.\n"
	}
	return text
}

// disturbed says whether the machine was so busy, or one side's so much busier than the other's, that their times don't tell which way is
// better.
func disturbed(sides []*result) bool {
	a, b := sides[0].busy(), sides[1].busy()
	slow := os.Getenv("SLOW") // how many times longer samples of the work took than on an idle machine, at least 1
	return slow != "" && slow != "1" || max(a, b) >= fair
}

// outcome is the result in a sentence.
func outcome(sides []*result, a, b picture.Share) string {
	pieces, blocks := sides[0].took(), sides[1].took()
	if disturbed(sides) {
		return fmt.Sprintf("All of the work was done on both sides, cut to fit in %s and in rigid blocks in %s. This machine is too "+
			"busy to compare them.",
			seconds(pieces), seconds(blocks))
	}
	verb := "did the same work in"
	if pieces >= blocks || a.Ratio() <= b.Ratio() {
		verb = "did not pay this time: the work took"
	}
	return fmt.Sprintf("Cutting to fit %s %s, and filled %.0f%% of the time for sale; in rigid blocks it took %s and filled %.0f%%.",
		verb, seconds(pieces), 100*a.Ratio(), seconds(blocks), 100*b.Ratio())
}

// judge lists what a good run has to show and this one does not.
func judge(sides []*result, pieces, blocks picture.Share) error {
	var wrong []error
	comparable := !disturbed(sides)
	if comparable && pieces.Ratio() <= blocks.Ratio() {
		wrong = append(wrong, fmt.Errorf("cutting did not fill more: %.1f%% against %.1f%% in blocks", 100*pieces.Ratio(),
			100*blocks.Ratio()))
	}
	if comparable && sides[0].took() >= sides[1].took() {
		wrong = append(wrong, fmt.Errorf("cut to fit, the same work took no less time: %s against %s in blocks, so what was filled was "+
			"no gain",
			seconds(sides[0].took()), seconds(sides[1].took())))
	}
	if known, total := knownEnds(sides[0].windows); 2*known < total || total == 0 {
		wrong = append(wrong, fmt.Errorf("only %d of %d windows end at something known: want at least half", known, total))
	}
	// Both sides together: a single block may well end by itself while its daemon is away, which is as good.
	if sides[0].survived+sides[1].survived == 0 {
		wrong = append(wrong, fmt.Errorf("no subjob lived through the kill of the daemons: %d and %d ran before", sides[0].killed,
			sides[1].killed))
	}
	return errors.Join(wrong...)
}

// knownEnds counts windows that end at something known.
func knownEnds(windows map[string]int) (known, total int) {
	for kind, n := range windows {
		total += n
		if kind != "" {
			known += n
		}
	}
	return known, total
}

// kinds says what ends windows.
func kinds(windows map[string]int) string {
	var all []string
	for kind, n := range windows {
		if kind != "" {
			all = append(all, fmt.Sprintf("%s %d", kind, n))
		}
	}
	sort.Strings(all)
	return strings.Join(all, ", ")
}

func share(n, of int) float64 { return 100 * float64(n) / float64(max(of, 1)) }

func seconds(d time.Duration) string { return d.Round(100 * time.Millisecond).String() }

// columns of the terminal: as the environment says, else as it is, else enough for a file.
func columns() int {
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		return n
	}
	if size, err := unix.IoctlGetWinsize(int(os.Stdout.Fd()), unix.TIOCGWINSZ); err == nil && size.Col > 0 {
		return min(int(size.Col), 200)
	}
	return 110
}
