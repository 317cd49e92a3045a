package slurm

import (
	"bytes"
	"strconv"

	"sluice.dev/sluice/internal/lab/history"
)

// gpu is a kind of GPU with a number of them; kind is empty where it is not said.
type gpu struct {
	kind  []byte
	count int64
}

// mostGPUs bounds what one job may hold.
const mostGPUs = 1 << 20

// tres reads "billing=1,cpu=1,gres/gpu:1g.10gb=2,gres/gpu=2", in which the total stands beside the types and is not to be added.
func (f *file) tres(text []byte) load {
	return f.cached(text, func(rest []byte) (gpus []gpu, shares, ok bool) {
		for item := range bytes.SplitSeq(rest, []byte(",")) {
			name, value, has := bytes.Cut(item, []byte("="))
			if !has || len(name) == 0 {
				return nil, false, false
			}
			name, has = bytes.CutPrefix(name, []byte("gres/"))
			if !has {
				continue
			}
			name, kind, _ := bytes.Cut(name, []byte(":"))
			shares = shares || string(name) == "shard" || string(name) == "mps"
			if string(name) != "gpu" {
				continue
			}
			n, ok := count(value)
			if !ok {
				return nil, false, false
			}
			gpus = append(gpus, gpu{kind, n})
		}
		return gpus, shares, true
	})
}

// gres reads "gpu:a100:2(S:0-1),gpu:1" as older versions, sinfo and scontrol have it.
func gres(text []byte) (gpus []gpu, shares, ok bool) {
	if string(text) == "(null)" || string(text) == "N/A" {
		return nil, false, true
	}
	depth, from := 0, 0
	for i := 0; i <= len(text); i++ {
		if i < len(text) && text[i] == '(' {
			depth++
		}
		if i < len(text) && text[i] == ')' {
			depth--
		}
		if i < len(text) && (text[i] != ',' || depth > 0) {
			continue
		}
		item, _, _ := bytes.Cut(text[from:i], []byte("("))
		from = i + 1
		item = bytes.TrimPrefix(item, []byte("gres:"))
		item = bytes.TrimPrefix(item, []byte("gres/"))
		parts := bytes.Split(item, []byte(":"))
		shares = shares || string(parts[0]) == "shard" || string(parts[0]) == "mps"
		if string(parts[0]) != "gpu" {
			continue
		}
		g := gpu{count: 1}
		parts = parts[1:]
		if n := len(parts); n > 0 {
			if c, is := count(parts[n-1]); is {
				g.count, parts = c, parts[:n-1]
			}
		}
		if len(parts) > 1 {
			return nil, false, false
		}
		if len(parts) == 1 {
			g.kind = parts[0]
		}
		gpus = append(gpus, g)
	}
	return gpus, shares, depth == 0
}

// count reads a number, which may end in K.
func count(text []byte) (int64, bool) {
	digits, kilo := bytes.CutSuffix(text, []byte("K"))
	n, err := strconv.ParseUint(string(digits), 10, 32)
	if kilo {
		n *= 1024
	}
	return int64(n), err == nil && n <= mostGPUs
}

// cached reads a text with read, or remembers what it said.
func (f *file) cached(text []byte, read func([]byte) ([]gpu, bool, bool)) load {
	if len(text) == 0 {
		return load{}
	}
	if l, known := f.loads[string(text)]; known {
		return l
	}
	gpus, shares, ok := read(text)
	l := load{wrong: !ok, shares: shares}
	if parts := f.parts(gpus); ok && len(parts) > 0 {
		l.number = f.book.Load(parts)
	}
	const most = 1 << 16
	if len(f.loads) < most {
		f.loads[string(text)] = l
	}
	return l
}

// parts are devices by kind: what is in a total without a type has none.
func (f *file) parts(gpus []gpu) (parts []history.Part) {
	total := int64(-1)
	left := int64(0)
	add := func(kind []byte, n int64) {
		k := f.book.Kind(kind)
		for i := range parts {
			if parts[i].Kind == k {
				parts[i].Count += int32(n)
				return
			}
		}
		parts = append(parts, history.Part{Kind: k, Count: int32(n), Milli: 1000})
	}
	for _, g := range gpus {
		switch {
		case len(g.kind) == 0:
			total = max(total, 0) + g.count
		case g.count > 0:
			add(g.kind, g.count)
			left -= g.count
		}
	}
	if total+left > 0 {
		add([]byte("gpu"), total+left)
	}
	return parts
}
