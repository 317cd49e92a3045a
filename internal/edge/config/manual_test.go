package config

import (
	"fmt"
	"strings"

	"sluice.dev/sluice/internal/edge/strict"
)

// Manual is the reference of the job file as a page in Markdown: docs/job.md.
func Manual() []byte {
	var b strings.Builder
	b.WriteString(`# The job file

<!-- Made from internal/edge/config by its tests (make golden); edit the fields there. -->

YAML or JSON, one job or several, each a document of its own. Unknown and doubled keys are errors, and every mistake is
listed with its place. ` + "`sluice explain spec.items`" + ` shows a part of this page, ` + "`sluice init`" + ` writes a file to start from,
` + "`sluice submit --dry-run`" + ` says what would become of it. [job.schema.json](job.schema.json) is the same for editors:

` + "```yaml" + `
# yaml-language-server: $schema=job.schema.json
` + string(must(Starter("items"))) + "```\n")
	root := jobFile()
	section(&b, "", "The file", &root)
	b.WriteString("\n[examples](../examples/README.md) has a job of each kind.\n")
	b.WriteString(counting)
	for _, row := range counted() {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(row[:], " | "))
	}
	b.WriteString(bounds)
	return []byte(b.String())
}

// bounds says how long a job waits for its nodes. The tests of internal/core/zone hold it to that.
const bounds = "\n## How long a job waits for its nodes\n\n" +
	"A node may be gone, or its store. A home that starts again counts from its start, but for a job that is cancelled.\n" +
	"\n| what a node does not say | the job waits | then |\n|---|---|---|\n" +
	"| how a subjob ended | until its lease's end and 5 s | it counts as above |\n" +
	"| that what it left is stored, that its processes are gone | 10 minutes beyond its lease's end | it counts as above |\n" +
	"| that a subjob ended of a job that is to end: its deadline passed, or it has failed | its `grace` and 10 minutes, if its lease " +
	"does not end before | the subjob counts for nothing |\n" +
	"| that committed output is in its place, when nothing else is left | 30 minutes | the job is FAILED (EXPIRED, if that is what " +
	"it waited for) and says which units and which node; what is committed stays, and is shown once the node is heard |\n" +
	"| any of it, of a job that is cancelled | a minute from the word on | the job is CANCELLED |\n"

// counting introduces counted. internal/core/home tests that it is so.
const counting = "\n## What counts as a failure\n\n" +
	"Two counts grow with subjobs that completed nothing, and begin anew when one completes something. One is of the job's failures: at\n" +
	"`maxFailures` the job is FAILED. The other is of what came from outside: no failure of the job, but at 30, or at " +
	"`maxFailures` if that\n" +
	"is more, it is FAILED too, so that nothing runs for ever. Subjobs that ran side by side count once. The reason says which " +
	"count it was,\n" +
	"and how the last one ended.\n" +
	"\n| how a subjob ended | outcome | counts as |\n|---|---|---|\n"

// counted has a row for each way in which a subjob ends: how, its outcome, and as what it counts.
func counted() [][3]string {
	return [][3]string{
		{
			"an exit status that is none of the contract's, or a signal", "`failed`",
			"a failure; of items the stretch is divided until the bad one is alone, which ends the job or is skipped (`onItemFailure`)",
		},
		{
			"SIGKILL that Sluice did not send: by the program, a person, or the kernel for want of memory on the machine", "`failed`",
			"a failure; no item is suspected for it",
		},
		{"the command could not be started: no such file, no permission", "`start-failed`", "a failure"},
		{
			"it passed a limit of processes, output or scratch files, filled the disk, or damaged its run directory, whatever ended it " +
				"then", "`limit`",
			"as an exit status",
		},
		{
			"it passed its slice's memory, whatever ended it then", "`memory`",
			"neither: the job is given more memory; where no slice has more it is FAILED",
		},
		{
			"its deadline, or it yielded, with nothing completed", "`deadline`, `yielded`",
			"a failure; from outside where it waited for processors for half of its time or more (ten times in a row)",
		},
		{
			"the same, of the piece that measures how long a unit takes", "`deadline`, `yielded`",
			"neither: the next one gets four times as long; a failure where no window is longer",
		},
		{
			"its supervisor died, and the daemon (in a cluster the Pod's first process, or the machine) lived; its processes could " +
				"not be ended", "`lost`",
			"a failure: the program may have done it",
		},
		{
			"its processes outlived its lease by 10 minutes; what it left was still being stored 10 minutes after it", "`lost`",
			"a failure; the latter from outside where the node was in trouble, as where the store is away",
		},
		{"nothing was heard of its node until its lease's end and a while after", "`lost`", "from outside"},
		{
			"its machine was restarted, its GPU failed, or its supervisor died while no daemon was there; its Pod was deleted by " +
				"somebody, or its machine is gone; what it left could not be kept; it failed while others filled the disk, or filled " +
				"one that was short of room when it began; it filled the disk of a machine that has joined a cluster", "`node-failed`",
			"from outside",
		},
		{
			"its node could not start it (disk, descriptors, a registry or a store that is away), or the daemon stopped before the " +
				"start", "`node-failed`",
			"neither: nothing has run; it is tried again with pauses of up to a minute",
		},
		{"cancelled, drained, evicted, ended for the machine's memory or by its slices' owner", "`stopped`", "neither"},
	}
}

// must is a value that can't be missing: the error would be ours.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// section writes the keys of one mapping, then those of the mappings below it.
func section(b *strings.Builder, path, title string, f *strict.Form) {
	list := f.Inner()
	if len(list) == 0 {
		return
	}
	fmt.Fprintf(b, "\n## %s\n\n| key | what may stand there | without it | meaning | example |\n|---|---|---|---|---|\n", title)
	for i := range list {
		k := &list[i]
		without := k.Without()
		if k.Need {
			without = "*needed*"
		}
		cells := []string{"`" + k.Key + "`", k.Form.String(), without, meaning(k), "`" + k.Example + "`"}
		for i := range cells {
			cells[i] = strings.ReplaceAll(cells[i], "|", `\|`)
		}
		fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | "))
	}
	for i := range list {
		at := strings.TrimPrefix(path+"."+list[i].Key, ".")
		section(b, at, "`"+at+"`", &list[i].Form)
	}
}
