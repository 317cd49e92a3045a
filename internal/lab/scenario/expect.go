package scenario

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/strict"
)

// Expectation is one line about the outcome. There are three kinds:
//
//	invariants hold
//	METRIC OP METRIC|NUMBER     sja.waitMean < easy.waitMean, utilization >= 0.8, waitP95 <= 10m, finished == 20
//	JOB EVENT RELATION MOMENT   train ends before 10m, big starts after small ends, big starts at 5m
//	JOB pieces OP NUMBER        train pieces == 3
//	JOB finishes|fails          train finishes
//
// METRIC@GROUP is the metric of the jobs of one kind of agents. A metric without a mechanism is that of the scenario's first one, and holds for every seed by itself. Where a line names
// a mechanism it is about means over the seeds. Lines about jobs are about the first mechanism.
type Expectation struct {
	Text string
	// Line in the file.
	test test
}

// test is one of compare, order, pieces, state and sound.
type test interface{ isTest() }

// side of a comparison: a number, or a metric of a mechanism ("" for the first).
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

// operator says whether a word compares.
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

func (s *Scenario) expect(v strict.Value) {
	for _, e := range v.List("a list of lines such as [\"utilization >= 0.8\", \"train ends before 10m\"]", 1000) {
		text := e.Text("a line such as utilization >= 0.8", "")
		if text == "" {
			continue
		}
		t, err := s.parseExpectation(text)
		if err != nil {
			e.Wrong("%v", err)
			continue
		}
		s.Expect = append(s.Expect, Expectation{Text: strings.Join(strings.Fields(text), " "), test: t})
	}
}

func (s *Scenario) parseExpectation(text string) (test, error) {
	words := strings.Fields(text)
	if len(words) == 2 && words[0] == "invariants" && words[1] == "hold" {
		return sound{}, nil
	}
	if len(words) == 3 && operator(words[1]) {
		return s.comparison(words)
	}
	if len(words) >= 2 && !strings.Contains(words[0], ".") {
		return s.jobLineTest(words)
	}
	return nil, fmt.Errorf("%q is no expectation; write for example \"utilization >= 0.8\", \"sja.waitMean < easy.waitMean\", \"train ends before 10m\", \"train pieces == 3\" or \"invariants hold\"", text)
}

func (s *Scenario) comparison(words []string) (test, error) {
	left, err := s.parseSide(words[0])
	if err != nil {
		return nil, err
	}
	right, err := s.parseSide(words[2])
	if err != nil {
		return nil, err
	}
	if left.metric == "" {
		return nil, fmt.Errorf("%q begins with a number; put the metric first", strings.Join(words, " "))
	}
	return compare{left, words[1], right}, nil
}

// parseSide reads a number, a share in percent, a length of time (seconds), a metric, or MECHANISM.METRIC.
func (s *Scenario) parseSide(word string) (side, error) {
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
	if known := s.metricNames(); !slices.Contains(known, metric) {
		return side{}, fmt.Errorf("%q is no metric; %s", metric, strict.Hint(metric, known))
	}
	return side{mechanism: mechanism, metric: metric}, nil
}

// jobLineTest reads a line that begins with a job's name.
func (s *Scenario) jobLineTest(words []string) (test, error) {
	name := words[0]
	if err := s.knowsJob(name); err != nil {
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
		return s.orderTest(words)
	}
	return nil, fmt.Errorf("job %s: want %s starts|ends before|after|at MOMENT, %s pieces == N, %s finishes or %s fails", name, name, name, name, name)
}

func (s *Scenario) orderTest(words []string) (test, error) {
	o := order{job: words[0], event: words[1], relation: words[2]}
	if !slices.Contains([]string{"before", "after", "at"}, o.relation) {
		return nil, fmt.Errorf("%q is no relation; want before, after or at", o.relation)
	}
	if len(words) == 5 {
		o.other, o.otherEvent = words[3], words[4]
		if o.otherEvent != "starts" && o.otherEvent != "ends" {
			return nil, fmt.Errorf("%q: want %s starts or %s ends", o.otherEvent, o.other, o.other)
		}
		return o, s.knowsJob(o.other)
	}
	d, err := quantity.ParseDuration(words[3])
	if err != nil {
		return nil, fmt.Errorf("%q is no moment; write the time since the start, such as 10m: %w", words[3], err)
	}
	o.moment = quantity.Instant(d)
	return o, nil
}

// knowsJob is an error unless there is an explicit job of that name.
func (s *Scenario) knowsJob(name string) error {
	var names []string
	for i := range s.Workload.Jobs {
		if s.Workload.Jobs[i].Name == name {
			return nil
		}
		if i < 50 {
			names = append(names, s.Workload.Jobs[i].Name)
		}
	}
	if len(names) == 0 {
		return fmt.Errorf("%q is no job: this scenario writes no jobs out", name)
	}
	return fmt.Errorf("%q is no job; %s", name, strict.Hint(name, names))
}
