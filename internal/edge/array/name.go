// Package array names the files of a job array's tasks. It imports nothing of ours: the small program that runs tasks names them too.
package array

import (
	"fmt"
	"path"
	"strconv"
	"strings"
)

// Task is what a pattern's marks stand for.
type Task struct {
	// Job is its name here, Name what its owner calls it; empty: as Job.
	Job, Name string
	// ID is the task's index.
	ID int64
}

// maxPattern bounds a pattern and what becomes of it, in bytes.
const maxPattern = 1024

// CheckPattern says what is wrong with a pattern of file names; nil: nothing.
func CheckPattern(pattern string) error {
	_, err := File(pattern, Task{Job: "j", Name: "n"})
	return err
}

// Distinct says whether a pattern names another file for each index.
func Distinct(pattern string) bool {
	a, err := File(pattern, Task{Job: "j", ID: 1})
	b, err2 := File(pattern, Task{Job: "j", ID: 2})
	return err == nil && err2 == nil && a != b
}

// File is the name of a task's file by a pattern: %A and %j are the job, %a the index, %x its owner's name for the job, %% a percent sign.
// A
// number behind % pads an index with zeros, as in %4a. The name leads to nowhere but below the folder that it is relative to.
func File(pattern string, t Task) (string, error) {
	if len(pattern) > maxPattern {
		return "", fmt.Errorf("is longer than %d bytes", maxPattern)
	}
	var b strings.Builder
	for rest := pattern; rest != ""; {
		text, mark, found := strings.Cut(rest, "%")
		b.WriteString(text)
		if rest = mark; !found {
			break
		}
		n := 0
		for n < len(rest) && rest[n] >= '0' && rest[n] <= '9' {
			n++
		}
		width, _ := strconv.Atoi(rest[:n]) // only digits; a huge one is 0, and too wide all the same
		if n == len(rest) {
			return "", fmt.Errorf("ends in a %%; want %%%% for the sign itself")
		}
		if n > 2 || width > 10 {
			return "", fmt.Errorf("pads with %%%s; want at most %%10", rest[:n])
		}
		switch c := rest[n]; c {
		case 'A', 'j', 'J':
			b.WriteString(t.Job)
		case 'a':
			fmt.Fprintf(&b, "%0*d", width, t.ID)
		case 'x':
			if t.Name == "" {
				t.Name = t.Job
			}
			b.WriteString(t.Name)
		case '%':
			b.WriteByte('%')
		default:
			return "", fmt.Errorf("has %%%c in it; want %%A, %%a, %%j, %%x or %%%%", c)
		}
		rest = rest[n+1:]
	}
	name := b.String()
	switch clean := path.Clean(name); {
	case name == "" || strings.HasSuffix(name, "/"):
		return "", fmt.Errorf("is %q, which names no file", pattern)
	case strings.ContainsRune(name, 0) || len(name) > 2*maxPattern:
		return "", fmt.Errorf("is %.60q, which no file can be called", pattern)
	case path.IsAbs(clean) || clean == ".." || clean == "." || strings.HasPrefix(clean, "../"):
		return "", fmt.Errorf("is %q, which leads out of the job's output; want a name such as %%x-%%a.out", pattern)
	default:
		return clean, nil
	}
}
