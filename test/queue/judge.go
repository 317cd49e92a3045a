package queue

import (
	"fmt"
	"strings"
)

// Judge compares a queue's file with what the processes of units have witnessed: lines of unit and token, each written when its unit was
// done. Each of n units is to be committed once, by a grant whose process has done it. wrong are the first ten things that are not so, and
// redone is how often a unit was done that counts by another grant.
func Judge(n int, file, witness []byte) (wrong []string, redone int) {
	say := func(format string, args ...any) {
		if len(wrong) < 10 {
			wrong = append(wrong, fmt.Sprintf(format, args...))
		}
	}
	done, commits := map[string]bool{}, map[string]int{}
	for line := range strings.Lines(string(witness)) {
		done[strings.TrimSpace(line)] = true
		redone++
	}
	counted := 0
	for line := range strings.Lines(string(file)) {
		grant, is := strings.CutPrefix(strings.TrimSpace(line), "commit ")
		if !is {
			continue
		}
		unit, token, _ := strings.Cut(grant, " ")
		if commits[unit]++; done[grant] {
			counted++
		} else {
			say("unit %s is committed by token %s, whose process has not done it", unit, token)
		}
	}
	for i := range n {
		if c := commits[fmt.Sprint(i)]; c != 1 {
			say("unit %d is committed %d times", i, c)
		}
		delete(commits, fmt.Sprint(i))
	}
	for unit := range commits {
		say("unit %s of %d is committed", unit, n)
	}
	return wrong, max(0, redone-counted)
}
