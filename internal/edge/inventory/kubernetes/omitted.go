//go:build kubernetes

package kubernetes

import (
	"fmt"
)

// omitted counts devices that pools name and that can't be offered, by what is wrong with them.
type omitted map[omission]int

type omission struct{ pool, why string }

func (o omitted) add(p *Pool, n int, format string, args ...any) {
	if o != nil && n > 0 {
		o[omission{p.Name, fmt.Sprintf(format, args...)}] += n
	}
}
