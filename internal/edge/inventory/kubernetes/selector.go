//go:build kubernetes

package kubernetes

import (
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// A selector of a class or a claim is a CEL expression over a device. Terms of the forms in patterns, joined by &&, are understood, as
// nearly all are. Any other term counts as maybe.

// meant is whether a device matches.
type meant uint8

const (
	isNot meant = iota
	maybe
	is
)

// and is the conjunction.
func (m meant) and(n meant) meant { return min(m, n) }

// term is one comparison; of an unknown kind, value is its whole text.
type term struct {
	kind                termKind
	domain, name, value string
	op                  string
}

type termKind uint8

const (
	ofDriver termKind = iota + 1
	ofAttribute
	hasAttribute
	hasCapacity
	ofCapacity
)

// selector is the conjunction of an expression's terms.
type selector []term

const (
	literal = `("[^"\\]*"|'[^'\\]*')`
	// longExpression bounds the bytes of an expression that is parsed: the API server's own limit.
	longExpression = 10 << 10
)

var patterns = []struct { //nolint:gochecknoglobals // a table, written to by nobody
	kind termKind
	at   *regexp.Regexp
	// domain, name, op, value are numbers of capture groups; 0: none.
	domain, name, op, value int
}{
	{ofDriver, regexp.MustCompile(`^device\.driver\s*(==|!=)\s*` + literal + `$`), 0, 0, 1, 2},
	{ofAttribute, regexp.MustCompile(`^device\.attributes\[` + literal + `\]\.(\w+)\s*(==|!=)\s*(` + literal + `|-?\d+|true|false)$`), 1, 2,
		3, 4},
	{ofAttribute, regexp.MustCompile(`^device\.attributes\[` + literal + `\]\[` + literal + `\]\s*(==|!=)\s*(` + literal +
		`|-?\d+|true|false)$`), 1, 2, 3, 4},
	{hasAttribute, regexp.MustCompile(`^` + literal + `\s+in\s+device\.attributes\[` + literal + `\]$`), 2, 1, 0, 0},
	{hasCapacity, regexp.MustCompile(`^` + literal + `\s+in\s+device\.capacity\[` + literal + `\]$`), 2, 1, 0, 0},
	{ofCapacity, regexp.MustCompile(`^device\.capacity\[` + literal + `\]\.(\w+)\.compareTo\(quantity\(` + literal +
		`\)\)\s*(==|!=|>=|>|<=|<)\s*0$`), 1, 2, 4, 3},
}

// parseSelector parses an expression as far as it is understood.
func parseSelector(text string) (s selector) {
	if len(text) > longExpression {
		return selector{{}}
	}
	for _, part := range conjuncts(text) {
		t := term{value: part}
		for _, p := range patterns {
			if m := p.at.FindStringSubmatch(part); m != nil {
				of := func(i int) string {
					if i == 0 {
						return ""
					}
					return strings.Trim(m[i], `"'`)
				}
				t = term{p.kind, of(p.domain), of(p.name), of(p.value), of(p.op)}
				break
			}
		}
		s = append(s, t)
	}
	return s
}

// conjuncts splits an expression at each && outside of brackets and strings.
func conjuncts(text string) (list []string) {
	var quote byte
	depth, from := 0, 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quote != 0 && c == '\\':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '(' || c == '[' || c == '{':
			depth++
		case c == ')' || c == ']' || c == '}':
			depth--
		case depth == 0 && strings.HasPrefix(text[i:], "&&"):
			list = append(list, strings.TrimSpace(text[from:i]))
			i++
			from = i + 1
		case depth == 0 && strings.HasPrefix(text[i:], "||"), depth == 0 && c == '?':
			return []string{text} // an alternative (||): not understood
		}
	}
	return append(list, strings.TrimSpace(text[from:]))
}

// means evaluates the selector for a driver's device.
func (s selector) means(driver string, d *device) meant {
	m := is
	for i := range s {
		m = m.and(s[i].means(driver, d))
	}
	return m
}

func (t *term) means(driver string, d *device) meant {
	yes := false
	switch t.kind {
	case ofDriver:
		yes = (driver == t.value) == (t.op == "==")
	case ofAttribute:
		value, there := d.attribute(t.domain, t.name, driver)
		yes = there && (value == t.value) == (t.op == "==")
	case hasAttribute:
		_, yes = d.attribute(t.domain, t.name, driver)
	case hasCapacity:
		_, yes = d.capacity(t.domain, t.name, driver)
	case ofCapacity:
		n, there := d.capacity(t.domain, t.name, driver)
		q, err := resource.ParseQuantity(t.value)
		if err != nil {
			return maybe
		}
		yes = there && compares(n.cmp(&q), t.op)
	default:
		return maybe
	}
	if yes {
		return is
	}
	return isNot
}

// compares reports whether a sign, as Cmp returns it, is what an operator asks for.
func compares(sign int, op string) bool {
	switch op {
	case "==":
		return sign == 0
	case "!=":
		return sign != 0
	case ">=":
		return sign >= 0
	case ">":
		return sign > 0
	case "<=":
		return sign <= 0
	}
	return sign < 0
}
