package slurm

import (
	_ "embed"
	"fmt"
	"strings"
	"time"

	"sluice.dev/sluice/internal/edge/provider"
)

// pilotScript is what each pilot runs, after its settings.
//
//go:embed pilot.sh
var pilotScript string

// script of a pilot. tokenFile is where its token is, on the node too; empty: in its environment. It never has the token itself: a user's
// scripts are read by administrators, and kept by some sites.
func (s *Slurm) script(p provider.Pilot, tokenFile, logFile string) string {
	shebang, body, _ := strings.Cut(pilotScript, "\n")
	var b strings.Builder
	set := func(name, value string) { fmt.Fprintf(&b, "%s=%s\n", name, quote(value)) }
	list := func(name string, values []string) {
		words := make([]string, len(values))
		for i, v := range values {
			words[i] = quote(v)
		}
		fmt.Fprintf(&b, "%s=(%s)\n", name, strings.Join(words, " "))
	}
	fmt.Fprintf(&b, "%s\n", shebang)
	set("name", p.Name)
	set("job_name", s.o.prefix()+p.Name)
	set("mark", s.o.Mark)
	set("head", p.Head)
	fmt.Fprintf(&b, "length=%d\n", int(p.Length/time.Second))
	fmt.Fprintf(&b, "scratch=\"%s\"\n", s.o.Scratch)
	set("sluice", s.o.Sluice)
	set("gpus", s.o.GPUs)
	set("token_file", tokenFile)
	set("log_file", logFile)
	list("within", s.o.Within)
	var more []string
	if s.o.Grace > 0 {
		more = append(more, "--grace", s.o.Grace.String())
	}
	if s.o.Ownerless > 0 {
		more = append(more, "--ownerless", s.o.Ownerless.String())
	}
	list("more", more)
	b.WriteString("prepare() {\n")
	if len(s.o.Before) > 0 {
		b.WriteString("  if [ -r /etc/profile ]; then . /etc/profile; fi # `module` is made there\n")
	}
	for _, line := range s.o.Before {
		fmt.Fprintf(&b, "  {\n  %s\n  } || fail %s\n", line, quote("failed: "+line))
	}
	b.WriteString("  :\n}\n")
	return b.String() + body
}

// quote makes one word of bash's of a text.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
