package config

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
)

// findsNumbers says whether what an expression says in a line may have a digit in it: its first group, or all of it if it has none.
func findsNumbers(by *regexp.Regexp) bool {
	tree, err := syntax.Parse(by.String(), syntax.Perl)
	if err != nil {
		return true
	}
	if group := firstGroup(tree); group != nil {
		tree = group
	}
	return hasDigits(tree)
}

// firstGroup is where an expression has it; nil: it has none.
func firstGroup(e *syntax.Regexp) *syntax.Regexp {
	if e.Op == syntax.OpCapture {
		return e
	}
	for _, sub := range e.Sub {
		if found := firstGroup(sub); found != nil {
			return found
		}
	}
	return nil
}

// hasDigits says whether a match may have a digit in it.
func hasDigits(e *syntax.Regexp) bool {
	if e.Op == syntax.OpAnyChar || e.Op == syntax.OpAnyCharNotNL || e.Op == syntax.OpLiteral &&
		strings.ContainsAny(string(e.Rune), "0123456789") {
		return true
	}
	if e.Op == syntax.OpCharClass {
		for i := 0; i+1 < len(e.Rune); i += 2 {
			if e.Rune[i] <= '9' && e.Rune[i+1] >= '0' {
				return true
			}
		}
	}
	return slices.ContainsFunc(e.Sub, hasDigits)
}

// numbering is an expression that finds the number behind what another one finds.
func numbering(text string) string {
	by, err := regexp.Compile(text)
	if counts := strings.TrimRight(text, " ") + ` (\d+)`; err == nil && by.NumSubexp() == 0 && strings.IndexByte(text, '\'') < 0 {
		if _, err = regexp.Compile(counts); err == nil {
			return counts
		}
	}
	return `step (\d+)`
}
