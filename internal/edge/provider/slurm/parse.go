package slurm

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// parseTime reads a moment as Slurm's commands print it in UTC; zero: it has none.
func parseTime(s string) (time.Time, error) {
	switch s {
	case "", "N/A", "NONE", "None", "Unknown", "(null)":
		return time.Time{}, nil
	}
	return time.Parse("2006-01-02T15:04:05", s)
}

// maxLength bounds lengths of time that are read: some 100 years.
const maxLength = 100 * 366 * 24 * time.Hour

// parseLength reads a length such as 1-02:03:04, 2:03:04, 3:04. 0: it has no limit, or none is known.
func parseLength(s string) (time.Duration, error) {
	switch s {
	case "UNLIMITED", "INVALID", "NOT_SET", "Partition_Limit", "N/A", "NONE", "":
		return 0, nil
	}
	days, rest, dashed := strings.Cut(s, "-")
	if !dashed {
		days, rest = "0", s
	}
	parts := append([]string{days}, strings.Split(rest, ":")...)
	if len(parts) == 3 {
		parts = append([]string{days, "0"}, parts[1:]...)
	}
	if len(parts) != 4 {
		return 0, fmt.Errorf("%q is no length of time", s)
	}
	var sum time.Duration
	for i, unit := range []time.Duration{24 * time.Hour, time.Hour, time.Minute, time.Second} {
		n, err := strconv.ParseUint(parts[i], 10, 31)
		if err != nil || time.Duration(n) > maxLength/unit {
			return 0, fmt.Errorf("%q is no length of time", s)
		}
		sum += time.Duration(n) * unit
	}
	return sum, nil
}

// maxHosts is how many names a list of hosts may stand for.
const maxHosts = 1 << 17

// parseHosts expands a list such as n[01-03,7],gpu1. Errors: it is none, or longer than maxHosts.
func parseHosts(s string) (list []string, err error) {
	if s == "" || s == "(null)" || s == "None assigned" {
		return nil, nil
	}
	for s != "" {
		var word string
		if word, s, err = cutHosts(s); err != nil {
			return nil, err
		}
		if list, err = expand(list, "", word); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// cutHosts takes the first word off a list.
func cutHosts(s string) (word, rest string, err error) {
	depth := 0
	for i, c := range s {
		switch {
		case c == '[':
			depth++
		case c == ']':
			depth--
		case c == ',' && depth == 0:
			return s[:i], s[i+1:], nil
		}
		if depth < 0 || depth > 1 {
			break
		}
	}
	if depth != 0 {
		return "", "", fmt.Errorf("%q is no list of hosts", s)
	}
	return s, "", nil
}

// expand appends what a word with brackets stands for, each after a prefix.
func expand(list []string, prefix, word string) ([]string, error) {
	head, rest, ranged := strings.Cut(word, "[")
	if !ranged {
		if prefix+word == "" || len(list) >= maxHosts {
			return nil, fmt.Errorf("a list of hosts has an empty name, or more than %d", maxHosts)
		}
		return append(list, prefix+word), nil
	}
	inside, tail, ok := strings.Cut(rest, "]")
	if !ok {
		return nil, fmt.Errorf("%q is no list of hosts", word)
	}
	for part := range strings.SplitSeq(inside, ",") {
		from, to, many := strings.Cut(part, "-")
		if !many {
			to = from
		}
		a, err := strconv.ParseUint(from, 10, 31)
		b, failed := strconv.ParseUint(to, 10, 31)
		if err != nil || failed != nil || b < a || b-a >= maxHosts {
			return nil, fmt.Errorf("%q is no range of hosts", part)
		}
		for n := a; n <= b; n++ {
			var bad error
			if list, bad = expand(list, fmt.Sprintf("%s%s%0*d", prefix, head, len(from), n), tail); bad != nil {
				return nil, bad
			}
		}
	}
	return list, nil
}

// gres is a number of devices of one kind.
type gres struct {
	name, kind string
	count      int64
}

// of reports whether devices of g serve a request for r: one without a kind takes any.
func (g gres) of(r gres) bool { return g.name == r.name && (r.kind == "" || g.kind == r.kind) }

// brackets are remarks in a list of devices: sockets and indices.
var brackets = regexp.MustCompile(`\([^()]*\)`)

// parseGres reads a list of devices such as gpu:1g.10gb:7(S:0),gpu:a100:2 or gres:gpu:2, one entry for each.
func parseGres(s string) (list []gres, err error) {
	switch s {
	case "", "(null)", "N/A":
		return nil, nil
	}
	for part := range strings.SplitSeq(brackets.ReplaceAllString(s, ""), ",") {
		words := strings.Split(strings.TrimPrefix(strings.Replace(part, "gres/", "gres:", 1), "gres:"), ":")
		g := gres{name: words[0], count: 1}
		last := words[len(words)-1]
		if n, unit, ok := quantity(last); ok && len(words) > 1 {
			g.count, words = n*unit, words[:len(words)-1]
		}
		switch {
		case g.name == "" || len(words) > 2:
			return nil, fmt.Errorf("%q is no kind of device", part)
		case len(words) == 2:
			g.kind = words[1]
		}
		list = append(list, g)
	}
	return list, nil
}

// quantity reads a number with one of Slurm's suffixes, of 1024 each.
func quantity(s string) (n, unit int64, ok bool) {
	unit = 1
	if i := strings.IndexAny(s, "kKmMgGtT"); i > 0 && i == len(s)-1 {
		unit = 1 << (10 * (1 + strings.IndexByte("KMGT", s[i]&^0x20)))
		s = s[:i]
	}
	u, err := strconv.ParseUint(s, 10, 62)
	if err != nil || u > math.MaxInt64/uint64(unit) {
		return 0, 0, false
	}
	return int64(u), unit, true
}

// pairs reads a line of scontrol's: words KEY=VALUE, where a value may have blanks. Of a key that is there twice the first counts: what
// people wrote (reasons, comments) stands last.
func pairs(line string) map[string]string {
	out := map[string]string{}
	last, open := "", false
	for word := range strings.SplitSeq(line, " ") {
		key, value, ok := strings.Cut(word, "=")
		switch {
		case ok && keyForm.MatchString(key):
			if _, there := out[key]; !there {
				out[key], last, open = value, key, true
			} else {
				open = false
			}
		case open && word != "":
			out[last] += " " + word
		}
	}
	return out
}

var keyForm = regexp.MustCompile(`^[A-Z][A-Za-z_/:]*$`)

// records are the lines of scontrol's that begin with a key, each as pairs. There may be no line where it says none; "": there is one at
// least.
func records(text, key, none string) (list []map[string]string, err error) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line == none {
			continue
		}
		if !strings.HasPrefix(line, key+"=") {
			return nil, fmt.Errorf("%q does not begin with %s=", brief(line), key)
		}
		list = append(list, pairs(line))
	}
	if len(list) == 0 && (none == "" || strings.TrimSpace(text) != none) {
		return nil, errors.New("it listed nothing")
	}
	return list, nil
}
