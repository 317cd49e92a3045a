package report

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
)

// style is how a mechanism looks in every plot of every report. Its hue is one of Okabe and Ito's, which people with any
// kind of color blindness tell apart, without yellow and black, which vanish on white and on black; dashes and marks say
// the same a second time.
type style struct {
	color, dash string
	marker      byte
}

// styleTable is fixed, so that two reports can be laid side by side.
var styleTable = map[string]style{
	"sja":          {"#D55E00", "", 'o'},
	"jasda":        {"#CC79A7", "", 's'},
	"fcfs":         {"#8A8A8A", "", 'o'},
	"skip":         {"#8A8A8A", "6 3", 's'},
	"easy":         {"#0072B2", "", 's'},
	"conservative": {"#56B4E9", "", 't'},
	"bestfit":      {"#009E73", "", 'd'},
	"fgd":          {"#E69F00", "", 't'},
	"staticmig":    {"#A6761D", "", 's'},
	"migrate":      {"#CC79A7", "6 3", 't'},
	"random":       {"#8A8A8A", "2 3", 'd'},
	"dotproduct":   {"#009E73", "6 3", 'o'},
	"clustering":   {"#E69F00", "6 3", 's'},
	"packing":      {"#56B4E9", "6 3", 'o'},
	"sjf":          {"#009E73", "2 3", 's'},
	"sjf-easy":     {"#009E73", "", 'o'},
	"easy-sjbf":    {"#0072B2", "6 3", 'o'},
	"wspt":         {"#009E73", "8 3 2 3", 't'},
	"saf":          {"#56B4E9", "2 3", 'd'},
	"f1":           {"#A6761D", "6 3", 'o'},
	"wfp3":         {"#A6761D", "2 3", 't'},
	"srpt":         {"#E69F00", "", 's'},
	"las":          {"#CC79A7", "2 3", 'd'},

	"laminar":           {"#D55E00", "", 'o'},
	"laminar:argmax":    {"#0072B2", "", 's'},
	"laminar:uniform":   {"#CC79A7", "", 't'},
	"laminar:forgetful": {"#E69F00", "", 'd'},
	"laminar:blind":     {"#A6761D", "", 's'},
	"fluid model":       {"#8A8A8A", "5 3", 'd'},
	"central":           {"#0072B2", "", 's'},
	"two-level":         {"#56B4E9", "", 't'},
	"spillback":         {"#009E73", "", 't'},
	"omega":             {"#E69F00", "", 'd'},
	"sparrow":           {"#A6761D", "6 3", 's'},
	"two-choices":       {"#CC79A7", "6 3", 'o'},
	"omniscient":        {"#8A8A8A", "2 3", 'o'},
}

// policyNames give a mechanism's variants ("sja:throughput") dashes and marks of their own.
var policyNames = []string{"", "fifo", "throughput", "deadline", "fair", "shortest"}

// styleOf a mechanism. One that is not in the table draws its style from its name.
func styleOf(name string) style {
	if s, known := styleTable[name]; known {
		return s
	}
	base, variant, varied := strings.Cut(name, ":")
	s, known := styleTable[base]
	if !known {
		hues := []string{"#D55E00", "#0072B2", "#009E73", "#E69F00", "#56B4E9", "#CC79A7", "#8A8A8A"}
		n := number(base)
		s = style{color: hues[n%len(hues)], dash: "8 3 2 3", marker: "ostd"[n/len(hues)%4]}
	}
	if varied {
		n := slices.Index(policyNames, variant)
		if n < 0 {
			n = 1 + number(variant)%4
		}
		s.dash, s.marker = []string{s.dash, "6 3", "2 3", "10 3 2 3", "1 2", "4 2"}[n], "otdsos"[n]
	}
	return s
}

// number that stands for a name.
func number(name string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // a hash takes everything
	return int(h.Sum32() >> 1)
}

// dashes is the attribute of a line.
func (s style) dashes() string {
	if s.dash == "" {
		return ""
	}
	return fmt.Sprintf(` stroke-dasharray="%s"`, s.dash)
}

// mark is the marker at a place.
func (s style) mark(x, y float64) string {
	switch s.marker {
	case 's':
		return fmt.Sprintf(`<rect x="%.1f" y="%.1f" width="7" height="7" fill="%s"/>`, x-3.5, y-3.5, s.color)
	case 't':
		return fmt.Sprintf(`<path d="M%.1f %.1f l4.5 8 h-9 z" fill="%s"/>`, x, y-5, s.color)
	case 'd':
		return fmt.Sprintf(`<path d="M%.1f %.1f l4.5 4.5 -4.5 4.5 -4.5 -4.5 z" fill="%s"/>`, x, y-4.5, s.color)
	default:
		return fmt.Sprintf(`<circle cx="%.1f" cy="%.1f" r="3.5" fill="%s"/>`, x, y, s.color)
	}
}
