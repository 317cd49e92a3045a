package submit

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/edge/config"
	"sluice.dev/sluice/internal/edge/strict"
)

// runFlag is a flag of `sluice run` that gives a key of the job file; its help is the key's.
type runFlag struct {
	flag, path string
	// text: the value is text, not YAML.
	text bool
}

// unitFlags are those of run that commands have which count the units of their jobs themselves; what a unit takes has a name of its own.
func unitFlags(perUnit string) []runFlag {
	list := []runFlag{{flag: perUnit, path: "spec.items.perItem"}}
	for _, r := range runFlags() {
		if slices.Contains([]string{"parallel", "mem", "queue", "priority", "deadline", "grace", "name"}, r.flag) {
			list = append(list, r)
		}
	}
	return list
}

// asked is a job that a command line asks for.
type asked struct {
	// verb is the command, flags are those it has, and given their values; need are those that have to be given.
	verb  string
	flags []runFlag
	given map[string]string
	need  []string
	// own is what the command itself says of the job. What people give comes behind it, and replaces it.
	own             []strict.Set
	env, sets, argv []string
}

// compose makes the job.
func (q *asked) compose() (submission, error) {
	list := []strict.Set{{Path: "apiVersion", Value: config.APIVersion}, {Path: "kind", Value: config.JobKind},
		{Path: "spec.command", Value: quoted(q.argv)}}
	if q.given["name"] == "" {
		list = append(list, strict.Set{Path: "metadata.name", Value: runName(q.argv[0])})
	}
	list = append(list, q.own...)
	for _, r := range q.flags {
		v, ok := q.given[r.flag]
		if ok && r.text {
			v = quoted(v)
		}
		if ok {
			list = append(list, strict.Set{Path: r.path, Value: v})
		}
	}
	more, err := asSets(q.env, q.sets)
	if err != nil {
		return submission{}, err
	}
	if err = needed(q.given, q.flags, q.need...); err != nil {
		return submission{}, err
	}
	spec, workdir, err := config.Compose(append(list, more...))
	if err != nil {
		return submission{}, asFlags(err, q.flags)
	}
	s, err := submissionOf(q.verb, ".", config.Job{Spec: spec, Workdir: workdir})
	s.verb = q.verb
	return s, err
}

// asSets are the values of --env and --set.
func asSets(env, sets []string) (list []strict.Set, err error) {
	variables := map[string]string{}
	for _, e := range env {
		k, v, ok := strings.Cut(e, "=")
		if !ok {
			return nil, command.Usage("--env %s: want KEY=VALUE", e)
		}
		variables[k] = v
	}
	if len(variables) > 0 {
		list = append(list, strict.Set{Path: "spec.env", Value: quoted(variables)})
	}
	for _, s := range sets {
		k, v, ok := strings.Cut(s, "=")
		if !ok {
			return nil, command.Usage("--set %s: want KEY=VALUE, such as theta=0.05", s)
		}
		list = append(list, strict.Set{Path: "spec." + k, Value: v})
	}
	return list, nil
}

// quoted is a value of a job file.
func quoted(v any) string {
	data, _ := json.Marshal(v) // strings, and lists and mappings of them
	return string(data)
}

// replacing gives --replace to a command that makes one job, whose name is a new one unless it is given.
func replacing(c *cobra.Command, to *bool) {
	c.Flags().BoolVar(to, "replace", false, replaceUsage)
	run := c.RunE
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if *to && !cmd.Flags().Changed("name") {
			return command.Usage("--replace puts the job in place of another of its name, and this gets a new name: give the other's, " +
				"with --name")
		}
		return run(cmd, args)
	}
}

// replaceUsage is what --replace does.
const replaceUsage = "in place of a job of that name that is over; its output is removed"

// needed names the flags of a list that are wanted and not given.
func needed(given map[string]string, flags []runFlag, want ...string) error {
	var errs []error
	for _, r := range flags {
		for _, flag := range want {
			if _, ok := given[flag]; r.flag == flag && !ok {
				_, example := config.Describe(r.path)
				errs = append(errs, fmt.Errorf("--%s is missing; give for example --%s %s", flag, flag, example))
			}
		}
	}
	if len(errs) > 0 {
		return &command.Failure{Code: command.ExitUsage, Err: errors.Join(errs...)}
	}
	return nil
}

// asFlags says what is wrong with a composed job in terms of the flags.
func asFlags(err error, flags []runFlag) error {
	var found *strict.Problems
	if !errors.As(err, &found) {
		return err
	}
	var errs []error
	for _, p := range found.List {
		at := p.Path
		for _, r := range flags {
			if r.path == at {
				at = "--" + r.flag
			}
		}
		errs = append(errs, fmt.Errorf("%s: %s", at, p.Text))
	}
	return &command.Failure{Code: command.ExitUsage, Err: &errkind.Error{Kind: errkind.Invalid, Err: errors.Join(errs...)}}
}

// runName is a name for a job that has none: that of its command with a random end.
func runName(command string) string {
	base := strings.ToLower(filepath.Base(command))
	base = strings.TrimSuffix(base, filepath.Ext(base))
	base = strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, base), "-")
	if len(base) > 40 {
		base = strings.Trim(base[:40], "-")
	}
	var b [3]byte
	_, _ = rand.Read(b[:]) // never fails (package crypto/rand)
	return strings.TrimPrefix(base+"-"+hex.EncodeToString(b[:]), "-")
}
