package archtest

import (
	"regexp"
	"strings"
	"testing"
)

// retired are words of before docs/glossary.md, each with the one that is used instead. An accepted ADR keeps its words.
var retired = []struct{ word, instead string }{
	{`futile`, "skipped, or without a taker"},
	{`in ?vain`, "unused, or say what did not come"},
	{`ailments?|ailing|ails`, "unhealthy"},
	{`graves?|burials?|farewells?`, "forgotten"},
	{`shunned`, "quarantined, or avoided"},
	{`roomy`, "with room"},
	{`least ?wanted`, "lowest rank"},
	{`unbegun`, "not started"},
	{`stand still|stands still|standing still|stood still`, "suspended, frozen, stopped, stalled or blocked"},
}

func TestRetiredWords(t *testing.T) {
	var rules []*regexp.Regexp
	var all []string
	for _, r := range retired {
		// As a word, or as one of a name in camel case.
		rule := `(?i:\b(?:` + r.word + `)\b)|(?:` + camel(r.word) + `)(?:[A-Z_(]|\b)`
		rules, all = append(rules, regexp.MustCompile(rule)), append(all, rule)
	}
	some := regexp.MustCompile(strings.Join(all, "|"))
	for text, found := range map[string]bool{"it was futile": true, "isInVain(": true, "failing": false, "Ailing": true, "trailing": false,
		"available": false, "engraves": false, "TestHopeIsInVain": true, "details": false,
		"it stands still": true, "WhatStandsStill(": true, "it stands idle": false, `"stoodStill"`: false} {
		any := false
		for _, r := range rules {
			any = any || r.MatchString(text)
		}
		if any != found {
			t.Errorf("%q: found %v", text, any)
		}
	}
	walk(t, func(name string) {
		docs := strings.HasPrefix(name, "docs/") && !strings.HasPrefix(name, "docs/adr/") || !strings.Contains(name, "/")
		if !strings.HasSuffix(name, ".go") && !(docs && strings.HasSuffix(name, ".md")) || strings.HasSuffix(name, "/words_test.go") ||
			name == "CHANGELOG.md" || strings.HasSuffix(name, ".pb.go") {
			return
		}
		text := read(t, name)
		if !some.Match(text) {
			return
		}
		for i, line := range strings.Split(string(text), "\n") {
			for k, r := range rules {
				if w := r.FindString(line); w != "" {
					t.Errorf("%s:%d: %q: say %s (docs/glossary.md)", name, i+1, w, retired[k].instead)
				}
			}
		}
	})
}

// camel is a list of words as they begin within a name.
func camel(words string) string {
	var out []string
	for _, w := range strings.Split(strings.NewReplacer(" ?", "\x00", " ", "\x00").Replace(words), "|") {
		parts := strings.Split(w, "\x00")
		for i, p := range parts {
			parts[i] = strings.ToUpper(p[:1]) + p[1:]
		}
		out = append(out, strings.Join(parts, ""))
	}
	return strings.Join(out, "|")
}
