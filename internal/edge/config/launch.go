package config

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/store"
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
func (c *collector) launch(o object, s *job.Spec) {
	l := &s.Launch
	cmd := o.must("command")
	for _, e := range cmd.asList() {
		l.Command = append(l.Command, e.argument())
	}
	if cmd.given() && cmd.node.Kind == yaml.SequenceNode && (len(cmd.node.Content) == 0 || len(l.Command) > 0 && l.Command[0] == "") {
		cmd.wrong("names no program; write for example %s", commandExample)
	}
	l.Image = o.get("image").image()
	l.Env = o.get("env").variables()
	l.Umask = o.get("umask").umask()
	if v := o.get("subdir"); v.given() {
		if l.Subdir = v.directory(); !inside(l.Subdir) {
			v.wrong("is %s; want a directory below workdir, such as src", v.what())
		} else if !o.has("workdir") {
			v.wrong("is a directory below workdir, which is missing; write for example workdir: .")
		}
		l.Subdir = path.Clean(l.Subdir)
	}
	l.Grace = o.get("grace").asLength()
	warn(o.get("warn"), l)
	limits := o.get("limits").asObject()
	l.LogLimit = int64(limits.get("log").asAmount(0))
	l.OutputLimit = int64(limits.get("output").asAmount(0))
}

// umask is a file mode creation mask in octal, quoted or not.
func (v value) umask() job.Umask {
	if !v.given() {
		return job.Umask{}
	}
	bits, err := strconv.ParseUint(strings.TrimPrefix(v.node.Value, "0o"), 8, 16)
	if v.node.Kind != yaml.ScalarNode || err != nil || bits > 0o777 {
		v.wrong("is %s; want %s, from 000 to 777", v.what(), v.form.want)
		return job.Umask{}
	}
	return job.Umask{Named: true, Bits: uint16(bits)}
}

// variables are entries of an environment, KEY=VALUE, sorted.
func (v value) variables() (out []string) {
	env := v.asTable()
	if most := int(v.form.most); len(env.order) > most {
		env.wrong("has %d variables; want at most %d", len(env.order), most)
	}
	for _, k := range env.order {
		e := env.get(k)
		checkVariable(e, k)
		out = append(out, k+"="+e.argument())
	}
	slices.Sort(out)
	return out
}

// warn reads the early signal.
func warn(v value, l *job.Launch) {
	if !v.given() {
		return
	}
	o := v.asObject()
	sig := o.must("signal")
	if name := sig.asText(); name != "" {
		number, ok := signals()[strings.TrimPrefix(strings.ToUpper(name), "SIG")]
		if !ok {
			names := make([]string, 0, len(signals()))
			for n := range signals() {
				names = append(names, n)
			}
			slices.Sort(names)
			_, hint := suggest(strings.TrimPrefix(strings.ToUpper(name), "SIG"), names)
			sig.wrong("is %s; %s", sig.what(), hint)
		}
		l.WarnSignal = number
	}
	before := o.must("before")
	if l.WarnBefore = before.asLength(); l.WarnBefore > 0 && l.WarnBefore <= l.Grace {
		before.wrong("is %s; SIGTERM comes %s before the end (grace), so this warning would come too late: want more than that, or a shorter grace", l.WarnBefore, l.Grace)
	}
}

// argument is a string that a program can be given.
func (v value) argument() string {
	s := v.text("text", "")
	if len(s) > maxArgument {
		v.wrong("has %d bytes; a program can be given at most %d at once: put it into a file", len(s), maxArgument)
	}
	return s
}

// maxImage is the longest name of an image, in bytes: the 255 of a repository's, with a registry, a tag and a digest.
const maxImage = 1024

// image is what a registry calls an image; whether there is one nobody asks here.
func (v value) image() string {
	s := v.asText()
	if !v.given() {
		return ""
	}
	for i := range len(s) {
		if b := s[i]; b <= ' ' || b > '~' {
			v.wrong("is %s; want %s, without spaces", v.what(), v.form.want)
			return ""
		}
	}
	if s == "" || len(s) > maxImage {
		v.wrong("is %s; want %s, at most %d bytes", v.what(), v.form.want, maxImage)
		return ""
	}
	return s
}

// checkVariable looks at the name of an environment variable.
func checkVariable(v value, name string) {
	valid := name != ""
	for i := range len(name) {
		b := name[i]
		letter := b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b == '_'
		valid = valid && (letter || i > 0 && b >= '0' && b <= '9')
	}
	switch {
	case !valid || len(name) > 255:
		v.wrong("the name of a variable is letters, digits and _, and does not begin with a digit")
	case strings.HasPrefix(name, "SLUICE_") || name == "CUDA_VISIBLE_DEVICES":
		v.wrong("is set by Sluice for every subjob; choose another name")
	}
}

// directory is a place in the file system.
func (v value) directory() string {
	s := v.text("a directory such as .", "")
	if v.given() && (s == "" || len(s) > 4095) {
		v.wrong("is %s; want a directory such as . (at most 4095 bytes)", v.what())
		return ""
	}
	return s
}

// workdir is a directory, or the digest of one.
func (v value) workdir() string {
	s := v.directory()
	if strings.HasPrefix(s, store.Scheme) {
		if _, err := store.ParseDigest(s); err != nil {
			v.wrong("is %s; want %sDIGEST with 64 of 0-9 and a-f, as `sluice store put` prints it", v.what(), store.Scheme)
			return ""
		}
	}
	return s
}

// inside says whether a path stays below where it starts.
func inside(p string) bool {
	p = path.Clean(p)
	return !path.IsAbs(p) && p != ".." && !strings.HasPrefix(p, "../")
}
