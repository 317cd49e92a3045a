package slurm

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"os"
	"regexp"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/provider"
)

// commands is a cluster that is asked by Slurm's own commands, as the user that this runs as.
type commands struct{ o Options }

// openCommands finds the commands. Errors: Unsupported: one is not there.
func openCommands(o Options) (*commands, error) {
	c := &commands{o}
	for _, name := range commandNames {
		if _, err := c.find(name); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// queue implements cluster: by one squeue. Their names may hold lines that look like others, so what stands between two fields is
// drawn for each call.
func (c *commands) queue(ctx context.Context) ([]row, error) {
	between := "|" + rand.Text() + "|"
	text, err := c.ask(ctx, "squeue", "-h", "-a", "-t", "all", "-o", strings.Join(queueFieldNames, between)+between)
	if err != nil {
		return nil, err
	}
	rows, err := parseQueue(text, between)
	if err != nil {
		return nil, unclear("squeue", err)
	}
	for i := range rows {
		rows[i].mine = rows[i].user == uint32(os.Geteuid())
	}
	return rows, nil
}

// maxAsked is how many jobs are asked about one by one; more of them are looked for among all.
const maxAsked = 2

// preempted implements cluster.
func (c *commands) preempted(ctx context.Context, ids []string, _ []row) (map[string]time.Time, error) {
	var calls [][]string
	for _, id := range ids {
		calls = append(calls, []string{"show", "job", "-o", id})
	}
	if len(calls) > maxAsked {
		calls = [][]string{{"show", "job", "-o"}}
	}
	at := map[string]time.Time{}
	for _, args := range calls {
		text, err := c.ask(ctx, "scontrol", args...)
		if err != nil && strings.Contains(err.Error(), "Invalid job id") {
			continue // it is gone by now
		}
		if err != nil {
			return nil, err
		}
		list, err := jobs(text)
		if err != nil {
			return nil, unclear("scontrol show job", err)
		}
		maps.Copy(at, list)
	}
	return at, nil
}

// jobs are the times of preemption of scontrol's jobs. A name may have lines of its own, which say nothing of its job.
func jobs(text string) (map[string]time.Time, error) {
	at := map[string]time.Time{}
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "JobId=") {
			continue
		}
		m := pairs(strings.TrimSpace(line))
		when, err := parseTime(m["PreemptTime"])
		if err != nil {
			return nil, err
		}
		if id := m["JobId"]; at[id].IsZero() {
			at[id] = when
		}
	}
	return at, nil
}

// hosts implements cluster.
func (c *commands) hosts(ctx context.Context) (hosts []host, none bool, err error) {
	text, err := c.ask(ctx, "scontrol", "show", "node", "-o", "-d")
	if err != nil {
		return nil, false, err
	}
	list, err := records(text, "NodeName", "No nodes in the system")
	if err == nil {
		hosts, none, err = c.o.hosts(list)
	}
	if err != nil {
		return nil, false, unclear("scontrol show node", err)
	}
	return hosts, none, nil
}

// bookings implements cluster.
func (c *commands) bookings(ctx context.Context) (others []booking, own *booking, err error) {
	text, err := c.ask(ctx, "scontrol", "show", "reservation", "-o")
	if err != nil {
		return nil, nil, err
	}
	list, err := records(text, "ReservationName", "No reservations in the system")
	if err == nil {
		others, own, err = c.o.bookings(list)
	}
	if err != nil {
		return nil, nil, unclear("scontrol show reservation", err)
	}
	return others, own, nil
}

// longest implements cluster.
func (c *commands) longest(ctx context.Context) (most time.Duration, err error) {
	text, err := c.ask(ctx, "scontrol", "show", "partition", "-o", c.o.Partition)
	if err != nil {
		if errkind.Of(err) == errkind.Invalid {
			return 0, c.o.noPartition()
		}
		return 0, err
	}
	list, err := records(text, "PartitionName", "")
	if err == nil {
		most, err = parseLength(list[0]["MaxTime"])
	}
	if err != nil {
		return 0, unclear("scontrol show partition", err)
	}
	return most, nil
}

// args of sbatch for a pilot. Its token is not in them: everybody may read a program's arguments.
func (c *commands) args(o order) []string {
	export := "NIL" // the node's own environment
	if c.o.Dir == "" {
		export = tokenVariable
	}
	args := []string{"--parsable", "--no-requeue", "--job-name=" + o.job, "--comment=" + c.o.comment(),
		fmt.Sprintf("--time=%d", o.pilot.Length/time.Minute), "--export=" + export, "--chdir=/", "--output=/dev/null", "--error=/dev/null",
		"--input=/dev/null", "--nodes=1", "--ntasks=1", "--partition=" + c.o.Partition}
	for _, f := range []struct{ name, value string }{{"gres", c.o.Gres}, {"account", c.o.Account}, {"qos", c.o.QOS},
		{"constraint", c.o.Constraint}, {"reservation", c.o.Reservation}, {"exclude", c.o.Exclude}} {
		if f.value != "" {
			args = append(args, "--"+f.name+"="+f.value)
		}
	}
	if c.o.CPUs > 0 {
		args = append(args, fmt.Sprintf("--cpus-per-task=%d", c.o.CPUs))
	}
	if c.o.Memory > 0 {
		args = append(args, fmt.Sprintf("--mem=%dM", (c.o.Memory+1<<20-1)>>20))
	}
	if c.o.UserSignal {
		args = append(args, "--signal=B:USR1@60")
	}
	return append(args, c.o.Extra...)
}

// tokenVariable is how a token goes through Slurm itself.
const tokenVariable = "SLUICE_PILOT_TOKEN"

// submit implements cluster.
func (c *commands) submit(ctx context.Context, o order) error {
	var env []string
	if o.token != "" {
		env = []string{tokenVariable + "=" + o.token}
	}
	a, err := c.run(ctx, o.script, env, "sbatch", c.args(o)...)
	switch {
	case err != nil:
		return err
	case a.code == 0 && idForm.MatchString(strings.TrimSpace(a.out)):
		return nil
	case a.code == 0:
		return errkind.Errorf(errkind.Unavailable, "sbatch: ended with 0 and named no job: %s", brief(a.err))
	}
	return refusal(a)
}

// idForm is what sbatch --parsable prints: a job's id, and in a federation its cluster.
var idForm = regexp.MustCompile(`^[0-9]+(;[^\s;]+)?$`)

// refusal is the error that sbatch has ended with.
func refusal(a answer) error {
	text := brief(a.err)
	return errkind.Errorf(kindOf(text), "sbatch: ended with %d: %s", a.code, strings.ReplaceAll(text, "sbatch: error: ", ""))
}

// words implements cluster.
func (c *commands) words(o order) string {
	words := []string{"sbatch"}
	for _, w := range append([]string{"--test-only"}, c.args(o)...) {
		if !wordForm.MatchString(w) {
			w = quote(w)
		}
		words = append(words, w)
	}
	return strings.Join(words, " ")
}

// starts is when sbatch --test-only expects a job to begin.
var starts = regexp.MustCompile(`Job [0-9]+ to start at (\S+) using`)

// try implements cluster.
func (c *commands) try(ctx context.Context, o order) (t provider.Trial, err error) {
	t.Command = c.words(o)
	a, err := c.run(ctx, o.script, nil, "sbatch", append([]string{"--test-only"}, c.args(o)...)...)
	if err != nil {
		return t, err
	}
	if a.code != 0 {
		if err = refusal(a); errkind.Of(err) == errkind.Unavailable {
			return t, err
		}
		t.Why = err.Error()
		return t, nil
	}
	t.Taken = true
	if m := starts.FindStringSubmatch(a.err); m != nil {
		if t.Starts, err = parseTime(m[1]); err != nil {
			return t, errkind.Errorf(errkind.Unavailable, "sbatch --test-only: %w", err)
		}
	}
	return t, nil
}

// end implements cluster.
func (c *commands) end(ctx context.Context, job string, ids []string) error {
	a, err := c.run(ctx, "", nil, "scancel", append([]string{"--name=" + job}, ids...)...)
	if err != nil {
		return err
	}
	for line := range strings.Lines(a.err) {
		gone := strings.Contains(line, "Invalid job id") || strings.Contains(line, "already completing or completed")
		if !gone && (a.code != 0 || strings.Contains(line, "error")) {
			return errkind.Errorf(kindOf(line), "scancel %s: ended with %d: %s", strings.Join(ids, " "), a.code, brief(a.err))
		}
	}
	if a.code != 0 && a.err == "" {
		return errkind.Errorf(errkind.Unavailable, "scancel %s: ended with %d and said nothing", strings.Join(ids, " "), a.code)
	}
	return nil
}
