package trace

import (
	"errors"
	"fmt"

	"sluice.dev/sluice/internal/core/errkind"
)

// maxProblems is how many problems of one file are named; a file in the wrong format would have one for each line.
const maxProblems = 20

// problems are what is wrong in one file.
type problems struct {
	file string
	list []error
}

// add notes a problem at a line and column, both from 1.
func (p *problems) add(line, column int, text string) {
	if !p.full() {
		p.list = append(p.list, fmt.Errorf("%s:%d:%d: %s", p.file, line, column, text))
	}
}

func (p *problems) any() bool  { return len(p.list) > 0 }
func (p *problems) full() bool { return len(p.list) >= maxProblems }

// err joins them.
func (p *problems) err() error {
	list := p.list
	if p.full() {
		list = append(list[:maxProblems:maxProblems], fmt.Errorf("%s: stopped at %d problems; the rest was not read", p.file, maxProblems))
	}
	return &errkind.Error{Kind: errkind.Invalid, Err: errors.Join(list...)}
}
