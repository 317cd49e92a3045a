package config

import (
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/trp"
)

// jobFile is everything a job file may say. A key that is not here is not read.
func jobFile() form {
	return anObject(
		field{key: "apiVersion", need: true, form: aChoice(APIVersion), example: APIVersion, doc: "The version of this form."},
		field{key: "kind", need: true, form: aChoice(JobKind), example: JobKind, doc: "What the file describes."},
		field{key: "metadata", need: true, form: anObject(
			field{key: "name", need: true, form: form{kind: isName}, example: "count-words", doc: "The name of the job, unique as long as the job is kept. The same name with the same content is the same job."},
		), example: "{name: count-words}", doc: "What the job is called."},
		field{key: "spec", need: true, form: anObject(specFields()...), example: "{items: {total: 10000, perItem: 20ms}, memory: 600Mi, command: [./count.sh]}", doc: "What the job is."},
	)
}

// specFields are the keys of spec.
func specFields() []field {
	const stop = "SIGTERM comes so long before the end of a subjob's lease, SIGKILL at its end."
	return []field{
		{key: "items", form: itemsForm(), example: "{total: 10000, perItem: 20ms, grid: 10, parallelism: 4}", doc: "Work of independent units: any range may run anywhere, several at once. A job has exactly one of items, steps, rigid and external."},
		{key: "steps", form: stepsForm(), example: "{total: 90000, perStep: 35ms, every: 500, restore: 3s, checkpoint: 2s}", doc: "Work in one chain of checkpoints: each subjob begins where the last committed one ended."},
		{key: "rigid", form: rigidForm(), example: "{walltime: 40m}", doc: "Work that is not divisible: one run, on one or several slices at once."},
		{key: "external", form: externalForm(), example: "{total: 10000, perUnit: 20ms}", doc: "Work that its owner's own agent cuts: a program that answers for windows over the API."},

		{key: "memory", need: true, form: plainOr(anAmount(1), memoryForm()), example: "600Mi", doc: "The GPU memory that a subjob uses at its peak: one size for the whole job, or how it changes with progress."},
		{key: "command", need: true, form: aList("a list such as "+commandExample, aText("text"), maxArguments), example: commandExample, doc: "The program with its arguments. It works on units [$SLUICE_FROM, $SLUICE_TO), reports in $SLUICE_PROGRESS_FILE, and writes to $SLUICE_OUTPUT_DIR."},
		{key: "image", form: aText("an image such as registry.example.com/team/train:v3"), example: "registry.example.com/team/train:v3", unset: "none", doc: "The container image of the subjobs, where they are Pods (sluice operator): needed there, and ignored elsewhere."},
		{key: "workdir", form: aText("a directory such as ."), example: ".", unset: "no directory", doc: "A directory that is copied at submission and that the command starts in, relative to the job file. Or store://DIGEST of one that is in the daemon's store already (sluice store put)."},
		{key: "subdir", form: aText("a directory below workdir, such as src"), example: "src", unset: "workdir itself", doc: "Where below workdir the command starts."},
		{key: "env", form: aTable(aText("text"), maxVariables), example: `{PACE: "0.16"}`, unset: "none", doc: "Variables of the subjob's environment beside those that Sluice sets (SLUICE_... and CUDA_VISIBLE_DEVICES)."},

		{key: "umask", form: aText("an umask in octal such as \"027\""), example: `"027"`, unset: "that of whoever submits",
			doc: "The file mode creation mask of the command, as in umask(1)."},

		{key: "queue", form: form{kind: isName}, unset: DefaultQueue, example: "research", doc: "The queue whose share and limits the job is under."},
		{key: "priority", form: aNumber(-MaxPriority, MaxPriority, 0), example: "5", doc: "Jobs of a queue with more go first."},
		{key: "deadline", form: form{kind: isMoment}, unset: "none", example: "2036-03-01T18:00:00Z",
			doc: "When the job must be done: if it is not, it ends there, EXPIRED; what it has committed stays, what runs is stopped. " +
				"Policy deadline goes by it."},

		{key: "speeds", form: aTable(aShare(1000, 0, MaxSpeed, 1000), MaxSpeeds), unset: "the slices' own speeds", example: "{1g.10gb: 0.21, 3g.40gb: 0.6}", doc: "How fast the job runs on slices of each profile, as a share of the speed that its run times are declared for. 0: it can't run there."},
		{key: "startup", form: aLength(0, time.Hour, DefaultStartup), example: "2s", of: divisible(), doc: "From the start of the process to its first unit. A rigid job's walltime holds it."},
		{key: "theta", form: aShare(1_000_000, 1, 500_000, DefaultTheta), example: "0.01", doc: "The accepted chance that a subjob's peak passes its slice's memory."},
		{key: "tauMin", form: aLength(0, MaxTime, 0), unset: "from restore, checkpoint and overheadMax", example: "30s", doc: "The shortest run that is of use: shorter windows are left to others."},
		{key: "overheadMax", form: aShare(1000, 1, 1000, DefaultOverheadMax), example: "10%", doc: "The largest share of a subjob's time that restore and checkpoint may take."},
		{key: "continue", form: form{kind: isBoolean}, example: "true", of: divisible(), doc: "A running subjob may be given the window behind its own; the program rereads $SLUICE_LEASE_FILE."},
		{key: "maxFailures", form: aNumber(1, 1000, DefaultMaxFailures), example: "5", doc: "How many subjobs in a row may end without progress until the job has failed."},
		{key: "onBadItem", form: aChoice("fail", "skip"), example: "skip", of: []string{"items", "external"}, doc: "What becomes of the job when one unit alone keeps failing."},

		{key: "grace", form: aLength(0, time.Hour, DefaultGrace), example: "1s", doc: stop +
			" $SLUICE_NOTICE_FILE then says why. Each window is shorter by it. " +
			"A subjob of a job that is cancelled keeps 30s of it at most."},
		{key: "warn", form: anObject(
			field{key: "signal", need: true, form: aText("a signal such as USR1"), example: "USR1", doc: "Which signal: HUP, INT, QUIT, USR1, USR2, ALRM, TERM, CONT, URG or WINCH."},
			field{key: "before", need: true, form: aLength(time.Millisecond, 24*time.Hour, 0), example: "60s", doc: "How long before the end; more than grace."},
		), unset: "no signal", example: "{signal: USR1, before: 60s}", doc: "A signal that comes ahead of SIGTERM, such as for a last checkpoint."},
		{key: "limits", form: anObject(
			field{key: "log", form: anAmount(1), unset: "16Mi", example: "1Mi", doc: "Of stdout and stderr together; what is more is dropped."},
			field{key: "output", form: anAmount(1), unset: "64Gi; 4.75Gi in a Kubernetes cluster", example: "4Gi", doc: "Of output and checkpoint together; a subjob that passes it is ended."},
		), unset: "the daemon's", example: "{log: 1Mi, output: 4Gi}", doc: "How much a subjob may write."},

		{key: "worth", form: anObject(
			field{key: "progress", form: shareOfWorth(), example: "0.6", doc: "The share of the work that is left."},
			field{key: "laxity", form: shareOfWorth(), example: "0.2", doc: "The press of the deadline."},
			field{key: "overhead", form: shareOfWorth(), example: "0.2", doc: "That little of the time goes into restore and checkpoint."},
		), unset: "{progress: 0.6, laxity: 0.2, overhead: 0.2}", example: "{progress: 0.5, laxity: 0.5}", doc: "Under mechanism jasda: what the job values in a window. The shares add up to 1."},
		{key: "options", form: aList("a list such as [{name: bf16, speed: 1.4, memory: 0.6}]", anObject(
			field{key: "name", need: true, form: form{kind: isName}, example: "bf16", doc: "The option's name; the subjob finds it in $SLUICE_OPTION."},
			field{key: "speed", form: aShare(1000, LeastShare, MostShare, 1000), example: "1.4", doc: "Its speed as a share of the job's without options."},
			field{key: "memory", form: aShare(1000, LeastShare, MostShare, 1000), example: "0.6", doc: "Its memory as a share of the job's without options."},
			field{key: "env", form: aTable(aText("text"), maxVariables), unset: "none", example: "{PRECISION: bf16}", doc: "Variables of its own."},
		), MaxOptions), unset: "none", example: "[{name: bf16, speed: 1.4, memory: 0.6}]", of: divisible(), doc: "Under mechanism jasda: other ways to run the job that its owner agrees to, such as another precision."},
		{key: "template", form: form{kind: isName}, unset: "none", example: "resnet", doc: "A name for jobs that are alike: what finished ones have used bounds the next."},
	}
}

// divisible are the kinds of work that may be cut.
func divisible() []string { return []string{"items", "steps", "external"} }

const commandExample = `[sh, -c, "./count.sh"]`

func shareOfWorth() form { return aShare(1000, 0, 1000, 0) }

func totalField(example string) field {
	return field{key: "total", need: true, form: aNumber(1, MaxTotal, 1), example: example, doc: "How many units the job has."}
}

func unitField(is string) field {
	return field{key: "unit", form: aText("a word such as frame"), unset: is, example: "frame", doc: "What one unit is called, for people."}
}

func parallelismField(doc string) field {
	return field{key: "parallelism", form: aNumber(1, MaxParallelism, 1), example: "4", doc: doc}
}

func costFields(more string) []field {
	return []field{
		{key: "restore", form: aLength(0, MaxTime/4, 0), example: "3s", doc: "What starting from a checkpoint takes." + more},
		{key: "checkpoint", form: aLength(0, MaxTime/4, 0), example: "2s", doc: "What leaving a checkpoint takes." + more},
	}
}

func itemsForm() form {
	return anObject(
		totalField("10000"), unitField("item"),
		field{key: "perItem", need: true, form: aLength(1, MaxTime, 0), example: "20ms", doc: "What one unit takes on a slice of speed 1. It is learned as the job runs."},
		field{key: "grid", form: aNumber(1, MaxTotal, 1), example: "10", doc: "Cuts lie at multiples of it."},
		parallelismField("How many subjobs may run at once."),
	)
}

func stepsForm() form {
	return anObject(append([]field{
		totalField("90000"), unitField("step"),
		{key: "perStep", need: true, form: aLength(1, MaxTime, 0), example: "35ms", doc: "What one unit takes on a slice of speed 1. It is learned as the job runs."},
		{key: "every", need: true, form: aNumber(1, MaxTotal, 1), example: "500", doc: "A checkpoint may lie at multiples of it."},
	}, costFields("")...)...)
}

func rigidForm() form {
	return anObject(
		field{key: "walltime", form: aLength(time.Second, MaxTime, 0), unset: "none: nothing is sold behind it", example: "40m", doc: "How long the job runs at most, its start included."},
		field{key: "slices", form: aNumber(1, MaxParallelism, 1), example: "2", doc: "How many slices it holds at once."},
		field{key: "topology", form: aChoice(job.Levels()...), example: "rack", doc: "How far these may lie apart: on one node, " +
			"or on nodes of one rack, one block, the zone, or, where the zone is too small, several zones (cluster). " +
			"They are placed as close together as they can be at all; " +
			"the command runs once on each node, told by $SLUICE_MEMBER which one it is of $SLUICE_MEMBERS, " +
			"and the output of each is kept."},
		field{key: "patience", form: aLength(time.Millisecond, MaxTime, 0), unset: "none: the job waits", example: "1s", doc: "How long the job looks for a place at most: after that it is worth nothing, and EXPIRED. Only under mechanism laminar, and on one slice."},
		field{key: "onOverrun", form: aChoice("kill", "extend"), example: "extend", doc: "At the walltime: kill the job, or extend its end as long as nothing else is reserved behind it."},
	)
}

func externalForm() form {
	return anObject(append([]field{
		totalField("10000"), unitField("unit"),
		{key: "perUnit", need: true, form: aLength(1, MaxTime, 0), example: "20ms", doc: "What one unit takes, for estimates that people see; the agent knows better."},
		{key: "grid", form: aNumber(1, MaxTotal, 1), example: "10", doc: "Cuts lie at multiples of it."},
		parallelismField("How many subjobs may run at once; a chain runs one."),
		{key: "chain", form: form{kind: isBoolean}, example: "true", doc: "The units are one chain of checkpoints."},
	}, costFields(" Of a chain only.")...)...)
}

func memoryForm() form {
	upTo := field{key: "upTo", form: aNumber(1, MaxTotal, 0), unset: "of the last: the total", example: "4000", doc: "The unit up to which the stretch goes; each goes further than the one before."}
	const stretches = "a list of stretches, each with upTo"
	return anObject(
		field{key: "phases", form: aList(stretches, anObject(
			upTo,
			field{key: "mean", need: true, form: anAmount(1), example: "400Mi", doc: "The mean of the peak in this stretch."},
			field{key: "sd", form: anAmount(0), unset: "0", example: "20Mi", doc: "Its standard deviation."},
		), trp.MaxStretches), example: "[{upTo: 4000, mean: 400Mi, sd: 20Mi}, {mean: 600Mi}]", doc: "Peaks by stretches of progress, as means with deviations."},
		field{key: "combine", form: aChoice("union", "independent", "maximum"), example: "independent", doc: "How the chances of several phases add up in one subjob."},
		field{key: "envelope", form: aList(stretches, anObject(
			upTo,
			field{key: "amount", need: true, form: anAmount(1), example: "400Mi", doc: "What is never passed in this stretch."},
		), trp.MaxStretches), example: "[{upTo: 4000, amount: 400Mi}, {amount: 600Mi}]", doc: "Bounds by stretches of progress."},
		field{key: "ensemble", form: anObject(
			field{key: "upTo", form: aList("a list of units such as [4000, 10000]", aNumber(1, MaxTotal, 1), trp.MaxStretches), unset: "one stretch", example: "[10000]", doc: "Where the stretches end."},
			field{key: "runs", need: true, form: aList("a list of runs, each the list of its peaks", aList("a list of peaks such as [400Mi, 900Mi]", anAmount(1), trp.MaxStretches), trp.MaxRuns), example: "[[400Mi], [410Mi], [395Mi], [405Mi], [402Mi]]", doc: "For each run its peak in each stretch."},
		), example: "{runs: [[400Mi], [410Mi], [395Mi], [405Mi], [402Mi]]}", doc: "Peaks of recorded runs."},
	)
}

// kindsOfWork are the keys of which a job file has exactly one: where the job may be cut. A scenario has no place for the
// last.
func kindsOfWork() []string { return []string{"items", "steps", "rigid", "external"} }
