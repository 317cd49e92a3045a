package slurm

import (
	"bytes"
	"fmt"
	"strconv"
)

// mostHosts bounds what one list of nodes may stand for.
const mostHosts = 1 << 16

// Hosts gives the nodes of a list such as "n[1-3,07],m5" or "rack[1-2]n[01-16]". ok is false for what is no such list.
func Hosts(list []byte) (hosts []string, ok bool) {
	depth, from := 0, 0
	for i := 0; i <= len(list); i++ {
		switch {
		case i == len(list) || list[i] == ',' && depth == 0:
			if i == from {
				return nil, false
			}
			if hosts, ok = expandOne(hosts, "", list[from:i]); !ok {
				return nil, false
			}
			from = i + 1
		case list[i] == '[':
			depth++
		case list[i] == ']':
			depth--
		case list[i] <= ' ' || list[i] == 0x7f || list[i] == '|':
			return nil, false
		}
		if depth < 0 || depth > 1 {
			return nil, false
		}
	}
	return hosts, depth == 0
}

// expandOne adds what one element stands for, behind what is expanded of it already.
func expandOne(hosts []string, head string, element []byte) ([]string, bool) {
	before, rest, has := bytes.Cut(element, []byte("["))
	if !has {
		return append(hosts, head+string(before)), len(hosts) < mostHosts
	}
	ranges, rest, has := bytes.Cut(rest, []byte("]"))
	if !has {
		return hosts, false
	}
	for r := range bytes.SplitSeq(ranges, []byte(",")) {
		low, high, two := bytes.Cut(r, []byte("-"))
		if !two {
			high = low
		}
		a, err := strconv.ParseUint(string(low), 10, 32)
		b, err2 := strconv.ParseUint(string(high), 10, 32)
		if err != nil || err2 != nil || b < a || b-a > mostHosts {
			return hosts, false
		}
		for n := a; n <= b; n++ {
			var ok bool
			if hosts, ok = expandOne(hosts, head+string(before)+fmt.Sprintf("%0*d", len(low), n), rest); !ok {
				return hosts, false
			}
		}
	}
	return hosts, true
}

// nodes gives the numbers of the nodes of a list.
func (f *file) nodes(list []byte) (numbers []int32, ok bool) {
	if known, has := f.hosts[string(list)]; has {
		return known, known != nil
	}
	names, ok := Hosts(list)
	for _, name := range names {
		if ok {
			numbers = append(numbers, f.book.Node([]byte(name)))
		}
	}
	if len(f.hosts) < mostHosts {
		f.hosts[string(list)] = numbers
	}
	return numbers, ok
}
