package queue

import (
	"strings"
	"testing"
)

// TestJudge: what the judge sees, and what it lets pass.
func TestJudge(t *testing.T) {
	const file = "push 2\npull 0 1\npull 1 2\ncommit 0 1\nback 1 2\npull 1 3\ncommit 1 3\n"
	for _, c := range []struct {
		what, file, witness string
		redone              int
		wrong               string
	}{
		{"all of it", file, "0 1\n1 3\n", 0, ""},
		{"done again", file, "0 1\n1 2\n1 3\n", 1, ""},
		{"nothing", "push 2\n", "0 1\n", 1, "unit 0 is committed 0 times"},
		{"one lost", strings.Replace(file, "commit 0 1\n", "", 1), "0 1\n1 3\n", 1, "unit 0 is committed 0 times"},
		{"one twice", file + "commit 0 4\n", "0 1\n1 3\n0 4\n", 0, "unit 0 is committed 2 times"},
		{"not done", file, "0 1\n", 0, "unit 1 is committed by token 3, whose process has not done it"},
		{"done under another grant", file, "0 1\n1 2\n", 1, "whose process has not done it"},
		{"beyond the end", file + "commit 7 9\n", "0 1\n1 3\n7 9\n", 0, "unit 7 of 2 is committed"},
	} {
		wrong, redone := Judge(2, []byte(c.file), []byte(c.witness))
		if all := strings.Join(wrong, "\n"); redone != c.redone || (all == "") != (c.wrong == "") || !strings.Contains(all, c.wrong) {
			t.Errorf("%s: %d done again, want %d; found %q, want %q", c.what, redone, c.redone, all, c.wrong)
		}
	}
}
