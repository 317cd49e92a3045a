// Package sbatch reads batch scripts as Slurm's sbatch does: the options in #SBATCH lines, and what they mean here. What it does not
// understand it lists with its line; nothing is taken silently.
package sbatch

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"
)

const (
	// mark begins a line of options. Slurm takes it only so, in upper case and in the first column.
	mark = "#SBATCH"
	// MaxBytes is the largest script: it goes along as one argument of its interpreter, and Linux takes no longer one.
	MaxBytes = 128<<10 - 1
)

// Problem is one thing wrong with a script.
type Problem struct {
	// Line counts from 1; 0: an option of the command line.
	Line int
	Text string
}

// Option is one option as it is written.
type Option struct {
	Line int
	// Name is --array for -a too; Value is what stands behind it. Given: something does.
	Name, Value string
	Given       bool
}

// Script is a batch script as read.
type Script struct {
	// Interpreter is the program of its first line, with arguments.
	Interpreter []string
	Options     []Option
	Text        string
}

// Is says whether a file is a script and no job file.
func Is(data []byte) bool { return bytes.HasPrefix(data, []byte("#!")) }

// Lacking says why a file that is no job file either is taken for a script, and what its first line lacks; empty: it is not.
func Lacking(file string, data []byte) string {
	if len(bytes.TrimSpace(data)) == 0 {
		return ""
	}
	options, keys := false, false
	for line := range bytes.Lines(data) {
		word, _, _ := bytes.Cut(line, []byte{':'})
		options = options || bytes.HasPrefix(line, []byte(mark))
		keys = keys || line[0] == '{' || slices.Contains([]string{"apiVersion", "kind", "metadata", "spec"}, string(word))
	}
	switch ext := strings.ToLower(path.Ext(file)); {
	case !options && (keys || ext == ".yml" || ext == ".yaml" || ext == ".json"):
		return ""
	case Is(bytes.TrimLeft(data, "\ufeff \t\r\n")):
		return "#! has to be the first two bytes of a script: take out what stands in front of it"
	}
	return "looks like a script without its first line: begin it with #!/bin/sh, or with another program that runs it, such as " +
		"#!/usr/bin/env python3"
}

// Read reads a script's options: the lines that begin with #SBATCH before the first command. All problems are listed.
func Read(data []byte) (s Script, wrong []Problem) {
	bad := func(line int, format string, args ...any) {
		wrong = append(wrong, Problem{line, fmt.Sprintf(format, args...)})
	}
	switch {
	case len(data) > MaxBytes:
		bad(1, "the script has %d bytes; want at most %d: let it call others that lie in the work directory", len(data), MaxBytes)
		return s, wrong
	case bytes.IndexByte(data, 0) >= 0:
		bad(1, "the script has a zero byte in it; want text")
		return s, wrong
	case bytes.Contains(data, []byte("\r\n")):
		bad(1, "its lines end as in DOS, which shells take for part of the last word; convert it, as with `dos2unix`")
		return s, wrong
	}
	s.Text = string(data)
	over := false
	for i, line := range strings.Split(s.Text, "\n") {
		n := i + 1
		text := strings.TrimSpace(line)
		options, is := strings.CutPrefix(line, mark)
		is = is && (options == "" || strings.ContainsAny(options[:1], " \t"))
		switch {
		case n == 1:
			if s.Interpreter = strings.Fields(strings.TrimPrefix(text, "#!")); !strings.HasPrefix(text, "#!") || len(s.Interpreter) == 0 {
				bad(1, "the first line is %.60q; want the interpreter, such as #!/bin/bash", text)
			}
		case is && over:
			bad(n, "stands behind the first command, where Slurm does not read it; move it up, or take the %s off", mark)
		case is:
			words, err := split(options)
			if err != nil {
				bad(n, "%v", err)
				continue
			}
			list, err := pair(words, n)
			if err != nil {
				bad(n, "%v", err)
			}
			s.Options = append(s.Options, list...)
		case text != "" && text[0] != '#':
			over = true
		}
	}
	return s, wrong
}

// Words reads options that stand on the command line, such as "--time=1:00:00 --array=0-9".
func Words(text string) ([]Option, error) {
	words, err := split(text)
	if err != nil {
		return nil, err
	}
	return pair(words, 0)
}

// split cuts a line into words as sbatch does: quotes of both kinds hold what is between them, a backslash the next character, and what
// comes behind an unquoted # is a comment.
func split(line string) (words []string, err error) {
	var word strings.Builder
	var quote rune
	begun, escaped := false, false
	end := func() {
		if begun {
			words = append(words, word.String())
		}
		word.Reset()
		begun = false
	}
	for _, r := range line {
		switch {
		case escaped:
			word.WriteRune(r)
			escaped = false
		case r == '\\':
			escaped, begun = true, true
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '"' || r == '\'':
			quote, begun = r, true
		case r == '#':
			end()
			return words, nil
		case r == ' ' || r == '\t':
			end()
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("a %c is not closed", quote)
	}
	if escaped {
		return nil, fmt.Errorf("ends in a backslash, and sbatch joins no lines")
	}
	end()
	return words, nil
}

// pair makes options of words: --name=value, --name value, -n value, -nvalue.
func pair(words []string, line int) (list []Option, err error) {
	for i := 0; i < len(words); i++ {
		o, attached := Option{Line: line}, false
		switch w := words[i]; {
		case strings.HasPrefix(w, "--") && len(w) > 2:
			o.Name, o.Value, attached = strings.Cut(w, "=")
		case strings.HasPrefix(w, "-") && len(w) > 1 && w[1] != '-':
			o.Name, o.Value = w[:2], w[2:]
			if attached = o.Value != ""; attached {
				o.Value = strings.TrimPrefix(o.Value, "=")
			}
			if long := shortForms()[o.Name]; long != "" {
				o.Name = long
			}
		default:
			return list, fmt.Errorf("%q is no option; want options such as --time=1:00:00", w)
		}
		o.Given = attached
		takes, known := options()[o.Name]
		// What an unknown option takes is guessed: a word that is no option can only be its value.
		if !attached && i+1 < len(words) && (takes || !known && !strings.HasPrefix(words[i+1], "-")) {
			i++
			o.Value, o.Given = words[i], true
		}
		list = append(list, o)
	}
	return list, nil
}

// shortForms are the short names of options that are understood.
func shortForms() map[string]string {
	return map[string]string{"-a": "--array", "-J": "--job-name", "-o": "--output", "-e": "--error", "-t": "--time", "-d": "--dependency",
		"-G": "--gpus", "-n": "--ntasks", "-N": "--nodes"}
}

// options are those that are understood, and whether each takes a value.
func options() map[string]bool {
	return map[string]bool{"--array": true, "--job-name": true, "--output": true, "--error": true, "--time": true, "--dependency": true,
		"--mem": true, "--gres": true, "--gpus": true, "--signal": true, "--ntasks": true, "--nodes": true, "--requeue": false}
}
