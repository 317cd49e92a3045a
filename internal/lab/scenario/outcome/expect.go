package outcome

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/strict"
	"sluice.dev/sluice/internal/lab/measure"
)

// Expectation is one line about the outcome. There are three kinds:
//
//	invariants hold
//	METRIC OP METRIC|NUMBER     sja.waitMean < easy.waitMean, utilization >= 0.8, waitP95 <= 10m, finished == 20
//	METRIC OP SHARE of METRIC   sja.startTime <= 50% of sja:cold.startTime
//	JOB EVENT RELATION MOMENT   train ends before 10m, big starts after small ends, big starts at 5m
//	JOB pieces OP NUMBER        train pieces == 3
//	JOB finishes|fails          train finishes
//
// METRIC@GROUP is the metric of the jobs of one kind of agents. A metric without a mechanism is that of the scenario's first one, and
// holds for every seed by itself. Where a line names a mechanism it is about means over the seeds. Lines about jobs are about the first
// mechanism.
type Expectation struct {
	Text string
	// Line in the file.
	test test
}

// test is one of compare, order, pieces, state and sound.
type test interface{ isTest() }

// side of a comparison: a number, or a metric of a mechanism ("" for the first), or number times that where it isn't 0.
type side struct {
	mechanism, metric string
	number            float64
}

type (
	compare struct {
		left  side
		op    string
		right side
	}
	order struct {
		job, event, relation string
		moment               quantity.Instant
		other, otherEvent    string
	}
	pieces struct {
		job, op string
		n       int64
	}
	state struct {
		job      string
		finishes bool
	}
	sound struct{}
)

func (compare) isTest() {}
func (order) isTest()   {}
func (pieces) isTest()  {}
func (state) isTest()   {}
func (sound) isTest()   {}

// operator reports whether a word compares.
func operator(word string) bool {
	return slices.Contains([]string{"<=", ">=", "==", "!=", "<", ">"}, word)
}

func holds(a float64, op string, b float64) bool {
	switch op {
	case "<=":
		return a <= b
	case ">=":
		return a >= b
	case "==":
		return a == b
	case "!=":
		return a != b
	case "<":
		return a < b
	}
	return a > b
}

// Known is what a line may name.
type Known struct {
	// Jobs that are written out, and Groups of jobs that figures are given of.
	Jobs, Groups []string
}

// Parse reads a line.
func (k Known) Parse(text string) (Expectation, error) {
	t, err := k.test(text)
	return Expectation{Text: strings.Join(strings.Fields(text), " "), test: t}, err
}

func (k Known) test(text string) (test, error) {
	words := strings.Fields(text)
	if len(words) == 2 && words[0] == "invariants" && words[1] == "hold" {
		return sound{}, nil
	}
	if len(words) == 3 && operator(words[1]) {
		return k.comparison(words)
	}
	if len(words) == 5 && operator(words[1]) && words[3] == "of" {
		return k.shareOf(words)
	}
	if len(words) >= 2 && !strings.Contains(words[0], ".") {
		return k.jobLineTest(words)
	}
	return nil, fmt.Errorf("%q is no expectation; write for example \"utilization >= 0.8\", \"sja.waitMean < easy.waitMean\", \"train "+
		"ends before 10m\", \"train pieces == 3\" or \"invariants hold\"", text)
}

func (k Known) comparison(words []string) (test, error) {
	left, err := k.parseSide(words[0])
	if err != nil {
		return nil, err
	}
	right, err := k.parseSide(words[2])
	if err != nil {
		return nil, err
	}
	if left.metric == "" {
		return nil, fmt.Errorf("%q begins with a number; put the metric first", strings.Join(words, " "))
	}
	return compare{left, words[1], right}, nil
}

// shareOf reads a comparison with a share of a metric.
func (k Known) shareOf(words []string) (test, error) {
	share, err := k.parseSide(words[2])
	if err != nil {
		return nil, err
	}
	t, err := k.comparison([]string{words[0], words[1], words[4]})
	if err != nil {
		return nil, err
	}
	c := t.(compare)
	if share.metric != "" || share.number <= 0 || c.right.metric == "" {
		return nil, fmt.Errorf("%q: want a share of a metric, such as 50%% of waitMean", strings.Join(words[2:], " "))
	}
	c.right.number = share.number
	return c, nil
}

// parseSide reads a number, a share in percent, a length of time (seconds), a metric, or MECHANISM.METRIC.
func (k Known) parseSide(word string) (side, error) {
	if n, percent := strings.CutSuffix(word, "%"); percent {
		if f, err := strconv.ParseFloat(n, 64); err == nil {
			return side{number: f / 100}, nil
		}
	}
	if f, err := strconv.ParseFloat(word, 64); err == nil && f-f == 0 {
		return side{number: f}, nil
	}
	if word != "" && word[0] >= '0' && word[0] <= '9' {
		d, err := quantity.ParseDuration(word)
		if err != nil {
			return side{}, fmt.Errorf("%q is neither a number nor a length of time nor a metric", word)
		}
		return side{number: d.Seconds()}, nil
	}
	mechanism, metric, named := strings.Cut(word, ".")
	if !named {
		mechanism, metric = "", word
	}
	if known := k.metricNames(); !slices.Contains(known, metric) {
		return side{}, fmt.Errorf("%q is no metric; %s", metric, strict.Hint(metric, known))
	}
	return side{mechanism: mechanism, metric: metric}, nil
}

// jobLineTest reads a line that begins with a job's name.
func (k Known) jobLineTest(words []string) (test, error) {
	name := words[0]
	if err := k.knowsJob(name); err != nil {
		return nil, err
	}
	switch verb := words[1]; {
	case len(words) == 2 && (verb == "finishes" || verb == "fails"):
		return state{name, verb == "finishes"}, nil
	case len(words) == 4 && verb == "pieces" && operator(words[2]):
		n, err := strconv.ParseInt(words[3], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%q is no number of pieces", words[3])
		}
		return pieces{name, words[2], n}, nil
	case (len(words) == 4 || len(words) == 5) && (verb == "starts" || verb == "ends"):
		return k.orderTest(words)
	}
	return nil, fmt.Errorf("job %s: want %s starts|ends before|after|at MOMENT, %s pieces == N, %s finishes or %s fails", name, name, name,
		name, name)
}

func (k Known) orderTest(words []string) (test, error) {
	o := order{job: words[0], event: words[1], relation: words[2]}
	if !slices.Contains([]string{"before", "after", "at"}, o.relation) {
		return nil, fmt.Errorf("%q is no relation; want before, after or at", o.relation)
	}
	if len(words) == 5 {
		o.other, o.otherEvent = words[3], words[4]
		if o.otherEvent != "starts" && o.otherEvent != "ends" {
			return nil, fmt.Errorf("%q: want %s starts or %s ends", o.otherEvent, o.other, o.other)
		}
		return o, k.knowsJob(o.other)
	}
	d, err := quantity.ParseDuration(words[3])
	if err != nil {
		return nil, fmt.Errorf("%q is no moment; write the time since the start, such as 10m: %w", words[3], err)
	}
	o.moment = quantity.Instant(d)
	return o, nil
}

// knowsJob is an error unless there is an explicit job of that name.
func (k Known) knowsJob(name string) error {
	if slices.Contains(k.Jobs, name) {
		return nil
	}
	if len(k.Jobs) == 0 {
		return fmt.Errorf("%q is no job: this scenario writes no jobs out", name)
	}
	return fmt.Errorf("%q is no job; %s", name, strict.Hint(name, k.Jobs[:min(50, len(k.Jobs))]))
}

// metricNames lists what a comparison may name.
func (k Known) metricNames() []string {
	var out []string
	for _, m := range slices.Concat(measure.Table(), measure.NegotiationTable(), measure.LeftoverTable(), measure.FlowTable(),
		measure.SurvivalTable(),
		measure.VisitsTable(), measure.LentTable(), measure.StartsTable()) {
		out = append(out, m.Name)
	}
	for _, group := range k.Groups {
		for _, m := range measure.GroupTable() {
			out = append(out, measure.InGroup(m, group))
		}
	}
	return append(out, Finished)
}
