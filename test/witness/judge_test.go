package witness

import (
	"strings"
	"testing"
)

// TestJudge: what the checker of histories sees, and what it lets pass.
func TestJudge(t *testing.T) {
	of := func(subjob, where string, from, to int64) (all []Unit) {
		for i := from; i < to; i++ {
			all = append(all, Unit{i, subjob, where})
		}
		return all
	}
	whole := []Committed{{"a", 0, 2, of("a", "m1", 0, 2)}, {"b", 2, 4, of("b", "m2", 2, 4)}}
	both := append(of("a", "m1", 0, 2), of("b", "m2", 2, 4)...)
	for _, c := range []struct {
		what             string
		output           []Committed
		witness          []Unit
		duplicates, lost int64
		redone           int64
		wrong            string
	}{
		{"all of it", whole, both, 0, 0, 0, ""},
		{"done again", whole, append(of("z", "m3", 0, 3), both...), 0, 0, 3, ""},
		{"an output with more than counts", []Committed{{"a", 0, 2, of("a", "m1", 0, 3)}, whole[1]},
			append(of("a", "m1", 2, 3), both...), 0, 0, 1, ""},
		{"nothing", nil, both, 0, 4, 4, "in no committed output"},
		{"a gap", whole[:1], both, 0, 2, 2, "unit 2 is in no committed output"},
		{"committed by two", append([]Committed{{"c", 1, 2, of("c", "m1", 1, 2)}}, whole...), append(of("c", "m1", 1, 2), both...), 1, 0, 1,
			"unit 1 is in the committed output 2 times"},
		{"twice in one output", []Committed{{"a", 0, 2, append(of("a", "m1", 0, 2), of("a", "m1", 0, 1)...)}, whole[1]}, both, 1, 0, 0,
			"has it 2 times"},
		{"an empty output", []Committed{{"a", 0, 2, nil}, whole[1]}, both, 0, 2, 2, "has it 0 times"},
		{"of another subjob", []Committed{{"a", 0, 2, of("b", "m1", 0, 2)}, whole[1]}, both, 0, 0, 0, "has unit 0 of subjob b"},
		{"not seen by the witness", whole, both[1:], 0, 0, 0, "its witness has not seen it"},
		{"beyond the end", append([]Committed{{"c", 4, 5, of("c", "m1", 4, 5)}}, whole...), append(of("c", "m1", 4, 5), both...), 0, 0, 1,
			"has committed unit 4 of 4"},
	} {
		h := Judge("j", 4, c.output, c.witness)
		if h.Duplicates != c.duplicates || h.Lost != c.lost || h.Redone != c.redone {
			t.Errorf("%s: %d duplicates, %d lost, %d redone, want %d, %d, %d", c.what, h.Duplicates, h.Lost, h.Redone, c.duplicates, c.lost,
				c.redone)
		}
		if all := strings.Join(h.Wrong, "\n"); (all == "") != (c.wrong == "") || !strings.Contains(all, c.wrong) {
			t.Errorf("%s: found %q, want %q", c.what, all, c.wrong)
		}
	}
}
