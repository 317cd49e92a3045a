package slurm

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
)

// DefaultTimeout is how long a command of Slurm's may take.
const DefaultTimeout = 20 * time.Second

// Options of a Slurm. Mark, Pool, Partition and Sluice are needed.
type Options struct {
	// Mark tells this daemon's pilots from all else in the cluster: [a-z0-9]{4,16}. Pool is which of its pools they are of: lower-case
	// letters, digits and hyphens, at most 40 bytes.
	Mark, Pool string
	// Bin is where sbatch, squeue, scontrol and scancel are; empty: on PATH. Not looked at with REST.
	Bin string
	// REST is how Slurm is asked through slurmrestd; nil: by its commands.
	REST *REST
	// Timeout of each command or call; 0: DefaultTimeout.
	Timeout time.Duration

	// Partition that pilots are asked for in.
	Partition string
	// Gres that each pilot has, typed where the cluster's are, such as gpu:1g.10gb:1; empty: none. CPUs and Memory (bytes) likewise; 0:
	// what the cluster gives by default, for CPUs one.
	Gres   string
	CPUs   int
	Memory int64
	// Account, QOS, Constraint, Reservation and Exclude are sbatch's options of these names; empty: not given.
	Account, QOS, Constraint, Reservation, Exclude string
	// Extra are further options of sbatch, each `--name` or `--name=value`. Those that this package sets itself are refused.
	Extra []string
	// UserSignal: the cluster has preempt_send_user_signal, so a pilot is told at once that it is preempted.
	UserSignal bool

	// Dir is a folder that this machine and the nodes share, for tokens; empty: there is none, and tokens go through Slurm itself.
	Dir string
	// Scratch is the folder on the node in which a pilot keeps its data, as a shell's word that may have $VARIABLES; empty:
	// ${TMPDIR:-/tmp}.
	Scratch string
	// Sluice is the path of the program on the nodes.
	Sluice string
	// Before are commands of bash that are run first, such as `module load cuda`; the pilot fails where one does.
	Before []string
	// Within are the words before the program, such as apptainer, exec, --nv, image.sif. Scratch must be the same folder in there.
	Within []string
	// GPUs is where the pilot's slices come from, as of sluice join; empty: nvml.
	GPUs string
	// Grace is how long the pilot's daemon takes from its signal at most; 0: its own default.
	Grace time.Duration
	// Ownerless is for how long the pilot may hear nothing of its head; 0: until its end.
	Ownerless time.Duration
}

// The forms of what becomes a part of names and scripts.
var (
	markForm  = regexp.MustCompile(`^[a-z0-9]{4,16}$`)
	poolForm  = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$`)
	wordForm  = regexp.MustCompile(`^[A-Za-z0-9_.:,=@%+/*|&()\[\]-]*$`)
	extraForm = regexp.MustCompile(`^--([a-z][a-z0-9-]*)(=.*)?$`)
)

// ownTable are the options of sbatch that this package sets, or that would make a job no pilot. Slurm takes any beginning of a name for
// it.
var ownTable = []string{"account", "array", "batch", "chdir", "clusters", "comment", "constraint", "cpus-per-task", "deadline", "error",
	"exclude", "export", "export-file", "get-user-env", "gres", "help", "hold", "input", "job-name", "mem", "no-requeue", "nodes", "ntasks",
	"open-mode", "output", "parsable", "partition", "qos", "quiet", "requeue", "reservation", "signal", "test-only", "time", "time-min",
	"usage", "version", "wait", "wrap"}

// check fills defaults in, and lists every problem. Errors: Invalid.
func (o *Options) check() error {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if !markForm.MatchString(o.Mark) {
		wrong("mark %q: want 4 to 16 lower-case letters and digits", o.Mark)
	}
	if !poolForm.MatchString(o.Pool) {
		wrong("name %q: want at most 40 lower-case letters, digits and hyphens", o.Pool)
	}
	if o.Partition == "" {
		wrong("partition: want the one that pilots are asked for in, as sinfo shows it")
	}
	for _, f := range []struct{ what, value string }{{"partition", o.Partition}, {"gres", o.Gres}, {"account", o.Account}, {"qos", o.QOS},
		{"constraint", o.Constraint}, {"reservation", o.Reservation}, {"exclude", o.Exclude},
		{"gpus", o.GPUs}} {
		if !wordForm.MatchString(f.value) || strings.HasPrefix(f.value, "-") {
			wrong("%s %q: want what sbatch takes, without blanks and quotes", f.what, f.value)
		}
	}
	if strings.ContainsAny(o.Partition, ",()|&*") {
		wrong("partition %q: want one", o.Partition)
	}
	if _, err := parseGres(o.Gres); err != nil {
		wrong("gres %q: %w", o.Gres, err)
	}
	if o.CPUs < 0 || o.Memory < 0 || o.Timeout < 0 || o.Grace < 0 || o.Ownerless < 0 {
		wrong("cpus, memory and lengths of time: want none below 0")
	}
	for _, x := range o.Extra {
		if err := checkExtra(x); err != nil {
			wrong("extra %q: %w", x, err)
		}
	}
	if o.Dir != "" && !filepath.IsAbs(o.Dir) {
		wrong("dir %q: want an absolute path, the same here and on the nodes", o.Dir)
	}
	if !filepath.IsAbs(o.Sluice) {
		wrong("sluice %q: want the program's absolute path on the nodes", o.Sluice)
	}
	if strings.ContainsAny(o.Scratch, "\"`\\") || strings.Contains(o.Scratch, "$(") {
		wrong("scratch %q: want a path, in which $VARIABLES may stand, and nothing else of a shell", o.Scratch)
	}
	for _, text := range append(append([]string{o.Dir, o.Sluice, o.Scratch, o.Bin}, o.Before...), append(o.Within, o.Extra...)...) {
		if strings.ContainsAny(text, "\x00\r\n") {
			wrong("%q: want one line", text)
		}
	}
	if o.REST != nil {
		rest := *o.REST // the caller's own stays as it is
		o.REST = &rest
		errs = append(errs, rest.fill(o)...)
	}
	if err := errors.Join(errs...); err != nil {
		return errkind.Errorf(errkind.Invalid, "slurm: %w", err)
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	if o.GPUs == "" {
		o.GPUs = "nvml"
	}
	return nil
}

// checkExtra refuses what would take a pilot's own options back. Slurm reads the last of two, and any beginning of a name.
func checkExtra(x string) error {
	m := extraForm.FindStringSubmatch(x)
	if m == nil {
		return errors.New("want --name or --name=value, in one word")
	}
	for _, own := range ownTable {
		if strings.HasPrefix(own, m[1]) {
			return fmt.Errorf("--%s is set for each pilot, and can't be given", own)
		}
	}
	return nil
}
