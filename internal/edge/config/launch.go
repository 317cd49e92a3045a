package config

import (
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/store"
	"sluice.dev/sluice/internal/edge/strict"
)

const (
	maxArgument  = 128<<10 - 1 // Linux's limit for one argument or variable (MAX_ARG_STRLEN), its zero byte off
	maxArguments = 4096
	maxVariables = 1024
)

// signals that a job may ask for as a warning, by Linux number. Those that end a program at once are left out.
func signals() map[string]int {
	return map[string]int{"HUP": 1, "INT": 2, "QUIT": 3, "USR1": 10, "USR2": 12, "ALRM": 14, "TERM": 15, "CONT": 18, "URG": 23, "WINCH": 28}
}

// launch reads how a subjob is started and ended.
func launch(o strict.Object, s *job.Spec) {
	l := &s.Launch
	cmd := o.Must("command")
	for _, e := range cmd.AsList() {
		l.Command = append(l.Command, argumentOf(e))
	}
	if cmd.Listed() && (cmd.Hollow() || len(l.Command) > 0 && l.Command[0] == "") {
		cmd.Wrong("names no program; write for example %s", commandExample)
	}
	l.Adapter = adapterOf(o.Get("adapter"), s)
	if s.Open() && l.Adapter.Directory.Path == "" && !o.Has("adapter") {
		o.Get("steps").AsObject().Must("total") // nobody else sees its end
	}
	l.Image = imageOf(o.Get("image"))
	l.Env = variablesOf(o.Get("env"))
	l.Umask = umaskOf(o.Get("umask"))
	if v := o.Get("subdir"); v.Given() {
		if l.Subdir = directoryOf(v); !inside(l.Subdir) {
			v.Wrong("is %s; want a directory below workdir, such as src", v.What())
		} else if !o.Has("workdir") {
			v.Wrong("is a directory below workdir, which is missing; write for example workdir: .")
		}
		l.Subdir = path.Clean(l.Subdir)
	}
	l.Grace = o.Get("grace").AsLength()
	warn(o.Get("warn"), l)
	limits := o.Get("limits").AsObject()
	l.LogLimit = int64(limits.Get("log").AsAmount(0))
	l.OutputLimit = int64(limits.Get("output").AsAmount(0))
}

// adapterOf is what runs a command that does not know the contract.
func adapterOf(v strict.Value, s *job.Spec) (a job.Adapter) {
	if !v.Given() {
		return a
	}
	o, kinds := v.AsObject(), []string{}
	for _, kind := range []string{"lines", "directory", "array", "trials"} {
		if o.Get(kind).Given() {
			kinds = append(kinds, kind)
		}
	}
	switch {
	case !o.Mapped():
		return a
	case len(kinds) == 0:
		v.Wrong("names none; write for example {lines: {input: prompts.jsonl}}, or leave it out")
		return a
	case len(kinds) > 1:
		v.Wrong("names %s; want exactly one of them", strings.Join(kinds, " and "))
		return a
	case kinds[0] == "directory":
		a.Directory = directoryAdapter(o.Get("directory"), s)
		return a
	case s.Kind != job.Items && s.Kind != 0:
		o.Get(kinds[0]).Wrong("only a job of items has a unit for each %s; give items: {total: N}, or leave it out",
			map[string]string{"lines": "line", "array": "task", "trials": "trial"}[kinds[0]])
	}
	if kinds[0] != "lines" {
		if s.Grid > 1 {
			v.Wrong("runs tasks, of which each is a unit; leave items.grid out")
		}
		a.Array, a.Trials = arrayOf(o.Get("array"), s.Total), trialsOf(o.Get("trials"))
		a.Keep = s.OnBadItem == job.BadItemSkips
		return a
	}
	of := o.Get("lines").AsObject()
	a.Lines = job.Lines{Input: inputOf(of.Must("input")), Index: inputOf(of.Get("index")),
		Format: job.LineFormat(of.Get("format").AsChoice()), Header: of.Get("header").Boolean(false),
		AnswersHeader: of.Get("answersHeader").Boolean(false)}
	return a
}

// directoryAdapter is the adapter for a program that goes on from a directory of its own.
func directoryAdapter(v strict.Value, s *job.Spec) (d job.Directory) {
	if s.Kind != 0 && (s.Kind != job.Steps || s.Grid != 1) {
		v.Wrong("only a chain that may be cut behind any step goes on from such a directory; give steps: {total: N, every: 1}, " +
			"or leave it out")
	}
	of := v.AsObject()
	at := of.Must("path")
	if d.Path = directoryOf(at); at.Given() && (!inside(d.Path) || path.Clean(d.Path) == ".") {
		at.Wrong("is %s; want a directory below the one that the command starts in, such as ckpt", at.What())
	}
	d.Path = path.Clean(d.Path)
	if p := of.Get("progress"); p.Given() {
		switch by, err := regexp.Compile(p.AsText()); {
		case err != nil:
			p.Wrong("is no regular expression (%v); write for example 'step (\\d+)'", err)
		case !findsNumbers(by):
			p.Wrong("finds no number, so nobody would know how many steps are done: its first group, or all of it if it has none, has to "+
				"match digits; write for example '%s'", numbering(p.AsText()))
		}
		d.Progress = p.AsText()
	}
	if s.Open() && d.Progress == "" { // time is the progress
		if s.PerUnit != 0 && s.PerUnit != time.Second {
			v.Wrong("has no progress, and the job no steps.total: so a step is a second of its run; leave perStep out, or give one of them")
		}
		s.PerUnit = time.Second
		if s.Unit == "step" {
			s.Unit = "second"
		}
	}
	return d
}

// inputOf is a file that an adapter reads.
func inputOf(v strict.Value) string {
	s := v.AsText()
	switch {
	case !v.Given():
		return ""
	case s == "" || len(s) > 4095:
		v.Wrong("is %s; want a file such as prompts.jsonl (at most 4095 bytes)", v.What())
	case !path.IsAbs(s) && !inside(s):
		v.Wrong("is %s, which leads out of workdir; want a file below it, or an absolute path", v.What())
	}
	return path.Clean(s)
}

// umaskOf is a file mode creation mask in octal, quoted or not.
func umaskOf(v strict.Value) job.Umask {
	if !v.Given() {
		return job.Umask{}
	}
	bits, err := strconv.ParseUint(strings.TrimPrefix(v.Raw(), "0o"), 8, 16)
	if !v.Plain() || err != nil || bits > 0o777 {
		v.Wrong("is %s; want %s, from 000 to 777", v.What(), v.Want())
		return job.Umask{}
	}
	return job.Umask{Named: true, Bits: uint16(bits)}
}

// variablesOf are entries of an environment, KEY=VALUE, sorted.
func variablesOf(v strict.Value) (out []string) {
	env := v.AsTable()
	if most := int(v.Most()); len(env.Keys()) > most {
		env.Wrong("has %d variables; want at most %d", len(env.Keys()), most)
	}
	for _, k := range env.Keys() {
		e := env.Get(k)
		checkVariable(e, k)
		out = append(out, k+"="+argumentOf(e))
	}
	slices.Sort(out)
	return out
}

// warn reads the early signal.
func warn(v strict.Value, l *job.Launch) {
	if !v.Given() {
		return
	}
	o := v.AsObject()
	sig := o.Must("signal")
	if name := sig.AsText(); name != "" {
		number, ok := signals()[strings.TrimPrefix(strings.ToUpper(name), "SIG")]
		if !ok {
			names := make([]string, 0, len(signals()))
			for n := range signals() {
				names = append(names, n)
			}
			slices.Sort(names)
			_, hint := strict.Suggest(strings.TrimPrefix(strings.ToUpper(name), "SIG"), names)
			sig.Wrong("is %s; %s", sig.What(), hint)
		}
		l.WarnSignal = number
	}
	before := o.Must("before")
	if l.WarnBefore = before.AsLength(); l.WarnBefore > 0 && l.WarnBefore <= l.Grace {
		before.Wrong("is %s; SIGTERM comes %s before the end (grace), so this warning would come too late: want more than that, or a "+
			"shorter grace", l.WarnBefore, l.Grace)
	}
}

// argumentOf is a string that a program can be given.
func argumentOf(v strict.Value) string {
	s := v.Text("text", "")
	if len(s) > maxArgument {
		v.Wrong("has %d bytes; a program can be given at most %d at once: put it into a file", len(s), maxArgument)
	}
	return s
}

// maxImage is the longest name of an image, in bytes: the 255 of a repository's, with a registry, a tag and a digest.
const maxImage = 1024

// imageOf is what a registry calls an image; whether there is one nobody asks here.
func imageOf(v strict.Value) string {
	s := v.AsText()
	if !v.Given() {
		return ""
	}
	for i := range len(s) {
		if b := s[i]; b <= ' ' || b > '~' {
			v.Wrong("is %s; want %s, without spaces", v.What(), v.Want())
			return ""
		}
	}
	if s == "" || len(s) > maxImage {
		v.Wrong("is %s; want %s, at most %d bytes", v.What(), v.Want(), maxImage)
		return ""
	}
	return s
}

// checkVariable looks at the name of an environment variable.
func checkVariable(v strict.Value, name string) {
	valid := name != ""
	for i := range len(name) {
		b := name[i]
		letter := b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b == '_'
		valid = valid && (letter || i > 0 && b >= '0' && b <= '9')
	}
	switch {
	case !valid || len(name) > 255:
		v.Wrong("the name of a variable is letters, digits and _, and does not begin with a digit")
	case strings.HasPrefix(name, "SLUICE_") || name == "CUDA_VISIBLE_DEVICES":
		v.Wrong("is set by Sluice for every subjob; choose another name")
	}
}

// directoryOf is a place in the file system.
func directoryOf(v strict.Value) string {
	s := v.Text("a directory such as .", "")
	if v.Given() && (s == "" || len(s) > 4095) {
		v.Wrong("is %s; want a directory such as . (at most 4095 bytes)", v.What())
		return ""
	}
	return s
}

// workdirOf is a directory, or the digest of one.
func workdirOf(v strict.Value) string {
	s := directoryOf(v)
	if strings.HasPrefix(s, store.Scheme) {
		if _, err := store.ParseDigest(s); err != nil {
			v.Wrong("is %s; want %sDIGEST with 64 of 0-9 and a-f, as `sluice store put` prints it", v.What(), store.Scheme)
			return ""
		}
	}
	return s
}
