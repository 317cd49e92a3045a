package config

import (
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/edge/strict"
)

// jobFile is everything a job file may say. A key that is not here is not read.
func jobFile() strict.Form {
	return strict.AnObject(
		strict.Field{Key: "apiVersion", Need: true, Form: strict.AChoice(APIVersion), Example: APIVersion,
			Doc: "The version of this form."},
		strict.Field{Key: "kind", Need: true, Form: strict.AChoice(JobKind), Example: JobKind, Doc: "What the file describes."},
		strict.Field{Key: "metadata", Need: true, Form: strict.AnObject(
			strict.Field{Key: "name", Need: true, Form: strict.Form{Kind: strict.IsName}, Example: "count-words",
				Doc: "The name of the job, unique as long as the job is kept. The same name with the same content is the same job."},
		), Example: "{name: count-words}", Doc: "What the job is called."},
		strict.Field{Key: "spec", Need: true, Form: strict.AnObject(specFields()...),
			Example: "{items: {total: 10000, perItem: 20ms}, memory: 600Mi, command: [./count.sh]}", Doc: "What the job is."},
	)
}

// specFields are the keys of spec.
func specFields() []strict.Field {
	const stop = "SIGTERM comes so long before the end of a subjob's lease, SIGKILL at its end."
	return []strict.Field{
		{Key: "items", Form: itemsForm(), Example: "{total: 10000, perItem: 20ms, grid: 10, parallelism: 4}",
			Doc: "Work of independent units: any range may run anywhere, several at once. A job has exactly one of items, steps, rigid " +
				"and external."},
		{Key: "steps", Form: stepsForm(), Example: "{total: 90000, perStep: 35ms, every: 500, restore: 3s, checkpoint: 2s}",
			Doc: "Work in one chain of checkpoints: each subjob begins where the last committed one ended."},
		{Key: "rigid", Form: rigidForm(), Example: "{walltime: 40m}",
			Doc: "Work that is not divisible: one run, on one or several slices at once."},
		{Key: "external", Form: externalForm(), Example: "{total: 10000, perUnit: 20ms}",
			Doc: "Work that its owner's own agent cuts: a program that answers for windows over the API."},

		{Key: "memory", Need: true, Form: strict.PlainOr(strict.AnAmount(1), memoryForm()), Example: "600Mi",
			Doc: "The GPU memory that a subjob uses at its peak: one size for the whole job, or how it changes with progress."},
		{Key: "command", Need: true, Form: strict.AList("a list such as "+commandExample, strict.AText("text"), maxArguments),
			Example: commandExample, Doc: "The program with its arguments. It works on units [$SLUICE_FROM, $SLUICE_TO), reports in " +
				"$SLUICE_PROGRESS_FILE, and writes to $SLUICE_OUTPUT_DIR."},
		{Key: "adapter", Form: adapterForm(), Unset: "none: the command keeps the contract itself",
			Example: "{lines: {input: prompts.jsonl}}", Of: []string{"items", "steps"},
			Doc: "Runs a command that does not know $SLUICE_FROM, and keeps the contract of subjobs for it."},
		{Key: "image", Form: strict.AText("an image such as registry.example.com/team/train:v3"),
			Example: "registry.example.com/team/train:v3", Unset: "none",
			Doc: "The container image of the subjobs, where they are Pods (sluice operator): needed there, and ignored elsewhere."},
		{Key: "workdir", Form: strict.AText("a directory such as ."), Example: ".", Unset: "no directory",
			Doc: "A directory that is copied at submission and that the command starts in, relative to the job file. Or store://DIGEST " +
				"of one that is in the daemon's store already (sluice store put)."},
		{Key: "subdir", Form: strict.AText("a directory below workdir, such as src"), Example: "src", Unset: "workdir itself",
			Doc: "Where below workdir the command starts."},
		{Key: "env", Form: strict.ATable(strict.AText("text"), maxVariables), Example: `{PACE: "0.16"}`, Unset: "none",
			Doc: "Variables of the subjob's environment beside those that Sluice sets (SLUICE_... and CUDA_VISIBLE_DEVICES)."},

		{Key: "umask", Form: strict.AText("an umask in octal such as \"027\""), Example: `"027"`, Unset: "that of whoever submits",
			Doc: "The file mode creation mask of the command, as in umask(1)."},

		{Key: "queue", Form: strict.Form{Kind: strict.IsName}, Unset: DefaultQueue, Example: "research",
			Doc: "The queue whose share and limits the job is under."},
		{Key: "priority", Form: strict.ANumber(-MaxPriority, MaxPriority, 0), Example: "5", Doc: "Jobs of a queue with more go first."},
		{Key: "deadline", Form: strict.Form{Kind: strict.IsMoment}, Unset: "none", Example: "2036-03-01T18:00:00Z",
			Doc: "When the job must be done: if it is not, it ends there, EXPIRED; what it has committed stays, what runs is stopped. " +
				"Policy deadline goes by it."},

		{Key: "speeds", Form: strict.ATable(strict.AShare(1000, 0, MaxSpeed, 1000), MaxSpeeds), Unset: "the slices' own speeds",
			Example: "{1g.10gb: 0.21, 3g.40gb: 0.6}", Doc: "How fast the job runs on slices of each profile, as a share of the speed " +
				"that its run times are declared for. 0: it can't run there."},
		{Key: "startup", Form: strict.ALength(0, time.Hour, DefaultStartup), Example: "2s", Of: divisible(),
			Doc: "From the start of the process to its first unit. A rigid job's walltime holds it."},
		{Key: "memoryRisk", Old: "theta", Form: strict.AShare(1_000_000, 1, 500_000, DefaultTheta), Example: "0.01",
			Doc: "The accepted chance that a subjob's peak passes its slice's memory."},
		{Key: "minRuntime", Old: "tauMin", Form: strict.ALength(0, MaxTime, 0), Unset: "from restore, checkpoint and overheadMax",
			Example: "30s", Doc: "The shortest run that is of use: shorter windows are left to others."},
		{Key: "overheadMax", Form: strict.AShare(1000, 1, 1000, DefaultOverheadMax), Example: "10%",
			Doc: "The largest share of a subjob's time that restore and checkpoint may take."},
		{Key: "continue", Form: strict.Form{Kind: strict.IsBoolean}, Example: "true", Of: divisible(),
			Doc: "A running subjob may be given the window behind its own; the program rereads $SLUICE_LEASE_FILE."},
		{Key: "resident", Form: strict.Form{Kind: strict.IsBoolean}, Example: "true", Of: divisible(),
			Doc: "The program stays between subjobs and takes them one after another from its standard input, so that its start is paid " +
				"once (docs/resident.md)."},
		{Key: "maxFailures", Form: strict.ANumber(1, 1000, DefaultMaxFailures), Example: "5",
			Doc: "How many subjobs in a row may end without progress until the job has failed."},
		{Key: "onItemFailure", Old: "onBadItem", Form: strict.AChoice("fail", "skip"), Example: "skip", Of: []string{"items", "external"},
			Doc: "What becomes of the job when one unit alone keeps failing."},

		{Key: "grace", Form: strict.ALength(0, time.Hour, DefaultGrace), Example: "1s", Doc: stop +
			" $SLUICE_NOTICE_FILE then says why. Each window is shorter by it. " +
			"A subjob of a job that is cancelled keeps 30s of it at most."},
		{Key: "warn", Form: strict.AnObject(
			strict.Field{Key: "signal", Need: true, Form: strict.AText("a signal such as USR1"), Example: "USR1",
				Doc: "Which signal: HUP, INT, QUIT, USR1, USR2, ALRM, TERM, CONT, URG or WINCH."},
			strict.Field{Key: "before", Need: true, Form: strict.ALength(time.Millisecond, 24*time.Hour, 0), Example: "60s",
				Doc: "How long before the end; more than grace."},
		), Unset: "no signal", Example: "{signal: USR1, before: 60s}",
			Doc: "A signal that comes ahead of SIGTERM, such as for a last checkpoint."},
		{Key: "limits", Form: strict.AnObject(
			strict.Field{Key: "log", Form: strict.AnAmount(1), Unset: "16Mi", Example: "1Mi",
				Doc: "Of stdout and stderr together; what is more is dropped."},
			strict.Field{Key: "output", Form: strict.AnAmount(1), Unset: "64Gi; 4.75Gi in a Kubernetes cluster", Example: "4Gi",
				Doc: "Of output and checkpoint together; a subjob that passes it is ended."},
		), Unset: "the daemon's", Example: "{log: 1Mi, output: 4Gi}", Doc: "How much a subjob may write."},

		{Key: "scoreWeights", Old: "worth", Form: strict.AnObject(
			strict.Field{Key: "progress", Form: shareOfWorth(), Example: "0.6", Doc: "The share of the work that is left."},
			strict.Field{Key: "laxity", Form: shareOfWorth(), Example: "0.2", Doc: "The press of the deadline."},
			strict.Field{Key: "overhead", Form: shareOfWorth(), Example: "0.2",
				Doc: "That little of the time goes into restore and checkpoint."},
		), Unset: "{progress: 0.6, laxity: 0.2, overhead: 0.2}", Example: "{progress: 0.5, laxity: 0.5}",
			Doc: "Under mechanism jasda: what the job values in a window. The shares add up to 1."},
		{Key: "options", Form: strict.AList("a list such as [{name: bf16, speed: 1.4, memory: 0.6}]", strict.AnObject(
			strict.Field{Key: "name", Need: true, Form: strict.Form{Kind: strict.IsName}, Example: "bf16",
				Doc: "The option's name; the subjob finds it in $SLUICE_OPTION."},
			strict.Field{Key: "speed", Form: strict.AShare(1000, LeastShare, MostShare, 1000), Example: "1.4",
				Doc: "Its speed as a share of the job's without options."},
			strict.Field{Key: "memory", Form: strict.AShare(1000, LeastShare, MostShare, 1000), Example: "0.6",
				Doc: "Its memory as a share of the job's without options."},
			strict.Field{Key: "env", Form: strict.ATable(strict.AText("text"), maxVariables), Unset: "none", Example: "{PRECISION: bf16}",
				Doc: "Variables of its own."},
		), MaxOptions), Unset: "none", Example: "[{name: bf16, speed: 1.4, memory: 0.6}]", Of: divisible(),
			Doc: "Under mechanism jasda: other ways to run the job that its owner agrees to, such as another precision."},
		{Key: "template", Form: strict.Form{Kind: strict.IsName}, Unset: "none", Example: "resnet",
			Doc: "A name for jobs that are alike: what finished ones have used bounds the next."},
	}
}

// divisible are the kinds of work that may be cut.
func divisible() []string { return []string{"items", "steps", "external"} }

const commandExample = `[sh, -c, "./count.sh"]`

func shareOfWorth() strict.Form { return strict.AShare(1000, 0, 1000, 0) }

func adapterForm() strict.Form {
	return strict.AnObject(
		strict.Field{Key: "lines", Form: strict.AnObject(
			strict.Field{Key: "input", Need: true, Form: strict.AText("a file such as prompts.jsonl"), Example: "prompts.jsonl",
				Doc: "The file, below workdir, or an absolute path that is the same wherever subjobs run. Unit k is its k-th line."},
			strict.Field{Key: "index", Form: strict.AText("a file such as .sluice/index"), Unset: "the input is read from its beginning",
				Example: ".sluice/index", Doc: "The offsets of the input's lines, as sluice map writes them beside it."},
			strict.Field{Key: "format", Form: strict.AChoice(job.LineFormats()...), Example: "csv",
				Doc: "What a line is: in csv it may have line ends within double quotes, and an empty one is none."},
			strict.Field{Key: "header", Form: strict.Form{Kind: strict.IsBoolean}, Example: "true",
				Doc: "The first line is no unit: it goes to every subjob, in front of its lines."},
			strict.Field{Key: "answersHeader", Form: strict.Form{Kind: strict.IsBoolean}, Example: "true",
				Doc: "The command writes a header too, in front of its answers."},
		), Example: "{input: prompts.jsonl}", Unset: "no lines",
			Doc: "The command reads lines on stdin, a unit each, and the k-th line that it writes to stdout answers the k-th that it " +
				"read. The answers are in the file answers of $SLUICE_OUTPUT_DIR."},
		strict.Field{Key: "array", Form: arrayForm(), Example: "{indices: 0-199}", Unset: "no array",
			Doc: "The command is run once for each unit, as the tasks of Slurm's job arrays are. A task that fails is written down with " +
				"its exit status in the file tasks.jsonl of $SLUICE_OUTPUT_DIR where onItemFailure says skip."},
		strict.Field{Key: "trials", Form: trialsForm(), Example: "{table: .sluice/trials}", Unset: "no trials",
			Doc: "The command is run once for each unit, with that trial's parameters in its arguments. What it writes into " +
				"$SLUICE_METRICS_FILE, lines such as {\"metric\": 0.3, \"step\": 10}, is summed up in tasks.jsonl."},
		strict.Field{Key: "directory", Form: strict.AnObject(
			strict.Field{Key: "path", Need: true, Form: strict.AText("a directory such as ckpt"), Example: "ckpt",
				Doc: "The program's checkpoint directory, below the one that it starts in."},
			strict.Field{Key: "progress", Form: strict.AText(`a regular expression such as 'step (\d+)'`), Example: `'step (\d+)'`,
				Unset: "the number in the name of the newest checkpoint", Doc: "Finds in a line of the command's output how many " +
					"steps are done: its first group, or the last number of what it matches."},
		), Example: "{path: ckpt}", Unset: "no directory",
			Doc: "The command goes on from a directory of its own, saves there, and ends on SIGTERM. What the subjob before has left is " +
				"put there first, and the directory behind the command's end is the subjob's checkpoint; when the command has ended " +
				"with 0 behind the last step, the directory is in $SLUICE_OUTPUT_DIR. Steps only, with every: 1."},
	)
}

func totalField(example string) strict.Field {
	return strict.Field{Key: "total", Need: true, Form: strict.ANumber(1, MaxTotal, 1), Example: example,
		Doc: "How many units the job has."}
}

// openTotalField is that of a chain, whose length nobody need know where an adapter sees its end.
func openTotalField(example string) strict.Field {
	f := totalField(example)
	f.Need, f.Unset = false, "not known: the job is over when its command has ended with 0 by itself; only with adapter.directory"
	return f
}

func unitField(is string) strict.Field {
	return strict.Field{Key: "unit", Form: strict.AText("a word such as frame"), Unset: is, Example: "frame",
		Doc: "What one unit is called, for people."}
}

func parallelismField(doc string) strict.Field {
	return strict.Field{Key: "parallelism", Form: strict.ANumber(1, MaxParallelism, 1), Example: "4", Doc: doc}
}

func costFields(more string) []strict.Field {
	return []strict.Field{
		{Key: "restore", Form: strict.ALength(0, MaxTime/4, 0), Example: "3s", Doc: "What starting from a checkpoint takes." + more},
		{Key: "checkpoint", Form: strict.ALength(0, MaxTime/4, 0), Example: "2s", Doc: "What leaving a checkpoint takes." + more},
	}
}

// timeField is the time of one unit.
func timeField(key, example string) strict.Field {
	return strict.Field{Key: key, Form: strict.ALength(1, MaxTime, 0), Unset: "not known: a first piece is measured", Example: example,
		Doc: "What one unit takes on a slice of speed 1. It is learned as the job runs. Where it is left out the first piece is the " +
			"shortest one, runs alone, and tells it; until then nobody can say when the job finishes."}
}

func itemsForm() strict.Form {
	return strict.AnObject(
		totalField("10000"), unitField("item"),
		timeField("perItem", "20ms"),
		strict.Field{Key: "grid", Form: strict.ANumber(1, MaxTotal, 1), Example: "10", Doc: "Cuts lie at multiples of it."},
		parallelismField("How many subjobs may run at once."),
	)
}

func stepsForm() strict.Form {
	return strict.AnObject(append([]strict.Field{
		openTotalField("90000"), unitField("step"),
		timeField("perStep", "35ms"),
		{Key: "every", Need: true, Form: strict.ANumber(1, MaxTotal, 1), Example: "500", Doc: "A checkpoint may lie at multiples of it."},
	}, costFields("")...)...)
}

func rigidForm() strict.Form {
	return strict.AnObject(
		strict.Field{Key: "walltime", Form: strict.ALength(time.Second, MaxTime, 0), Unset: "none: nothing is sold behind it",
			Example: "40m", Doc: "How long the job runs at most, its start included."},
		strict.Field{Key: "steps", Form: savesForm(), Unset: "none: a run that does not end well is done again from the start",
			Example: "{total: 5000, every: 500}", Doc: "The steps of a job that leaves checkpoints: a run that ends before all are done, " +
				"by its walltime, with a machine or by itself, counts as far as its last checkpoint, and the next one goes on from there."},
		strict.Field{Key: "slices", Form: strict.ANumber(1, MaxParallelism, 1), Example: "2", Doc: "How many slices it holds at once."},
		strict.Field{Key: "topology", Form: strict.AChoice(job.Levels()...), Example: "rack",
			Doc: "How far these may lie apart: on one node, " +
				"or on nodes of one rack, one block, the zone, or, where the zone is too small, several zones (cluster). " +
				"They are placed as close together as they can be at all; " +
				"the command runs once on each node, told by $SLUICE_MEMBER which one it is of $SLUICE_MEMBERS " +
				"and by $SLUICE_RENDEZVOUS where they may meet, and the output of each is kept."},
		strict.Field{Key: "maxWait", Old: "patience", Form: strict.ALength(time.Millisecond, MaxTime, 0), Unset: "none: the job waits",
			Example: "1s", Doc: "How long the job looks for a place at most: after that it is worth nothing, and EXPIRED. Only under " +
				"mechanism laminar, and on one slice."},
		strict.Field{Key: "onOverrun", Form: strict.AChoice("kill", "extend"), Example: "extend",
			Doc: "At the walltime: kill the job, or extend its end as long as nothing else is reserved behind it."},
	)
}

func savesForm() strict.Form {
	return strict.AnObject(
		totalField("5000"),
		strict.Field{Key: "every", Need: true, Form: strict.ANumber(1, MaxTotal, 1), Example: "500",
			Doc: "A checkpoint may lie at multiples of it."},
	)
}

func externalForm() strict.Form {
	return strict.AnObject(append([]strict.Field{
		totalField("10000"), unitField("unit"),
		{Key: "perUnit", Need: true, Form: strict.ALength(1, MaxTime, 0), Example: "20ms",
			Doc: "What one unit takes, for estimates that people see; the agent knows better."},
		{Key: "grid", Form: strict.ANumber(1, MaxTotal, 1), Example: "10", Doc: "Cuts lie at multiples of it."},
		parallelismField("How many subjobs may run at once; a chain runs one."),
		{Key: "chain", Form: strict.Form{Kind: strict.IsBoolean}, Example: "true", Doc: "The units are one chain of checkpoints."},
	}, costFields(" Of a chain only.")...)...)
}

func memoryForm() strict.Form {
	upTo := strict.Field{Key: "upTo", Form: strict.ANumber(1, MaxTotal, 0), Unset: "of the last: the total", Example: "4000",
		Doc: "The unit up to which the stretch goes; each goes further than the one before."}
	const stretches = "a list of stretches, each with upTo"
	return strict.AnObject(
		strict.Field{Key: "phases", Form: strict.AList(stretches, strict.AnObject(
			upTo,
			strict.Field{Key: "mean", Need: true, Form: strict.AnAmount(1), Example: "400Mi", Doc: "The mean of the peak in this stretch."},
			strict.Field{Key: "sd", Form: strict.AnAmount(0), Unset: "0", Example: "20Mi", Doc: "Its standard deviation."},
		), trp.MaxStretches), Example: "[{upTo: 4000, mean: 400Mi, sd: 20Mi}, {mean: 600Mi}]",
			Doc: "Peaks by stretches of progress, as means with deviations."},
		strict.Field{Key: "combine", Form: strict.AChoice("union", "independent", "maximum"), Example: "independent",
			Doc: "How the chances of several phases add up in one subjob."},
		strict.Field{Key: "envelope", Form: strict.AList(stretches, strict.AnObject(
			upTo,
			strict.Field{Key: "amount", Need: true, Form: strict.AnAmount(1), Example: "400Mi",
				Doc: "What is never passed in this stretch."},
		), trp.MaxStretches), Example: "[{upTo: 4000, amount: 400Mi}, {amount: 600Mi}]", Doc: "Bounds by stretches of progress."},
		strict.Field{Key: "ensemble", Form: strict.AnObject(
			strict.Field{Key: "upTo", Form: strict.AList("a list of units such as [4000, 10000]", strict.ANumber(1, MaxTotal, 1),
				trp.MaxStretches), Unset: "one stretch", Example: "[10000]", Doc: "Where the stretches end."},
			strict.Field{Key: "runs", Need: true, Form: strict.AList("a list of runs, each the list of its peaks",
				strict.AList("a list of peaks such as [400Mi, 900Mi]", strict.AnAmount(1), trp.MaxStretches), trp.MaxRuns),
				Example: "[[400Mi], [410Mi], [395Mi], [405Mi], [402Mi]]", Doc: "For each run its peak in each stretch."},
		), Example: "{runs: [[400Mi], [410Mi], [395Mi], [405Mi], [402Mi]]}", Doc: "Peaks of recorded runs."},
	)
}

// kindsOfWork are the keys of which a job file has exactly one: where the job may be cut. A scenario has no place for the
// last.
func kindsOfWork() []string { return []string{"items", "steps", "rigid", "external"} }
