package slurmtest

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// programs are those of a cluster.
var programs = []string{"sbatch", "squeue", "scontrol", "scancel"}

// hangs is how long a command hangs that does.
const hangs = 10 * time.Minute

// Main is the program's main function where it was started as one of Slurm's commands; it does not return then.
func Main() {
	name := filepath.Base(os.Args[0])
	if !slices.Contains(programs, name) {
		return
	}
	c := command{name: name, args: os.Args[1:]}
	input, err := io.ReadAll(os.Stdin)
	if err == nil {
		c.input = string(input)
		err = update(filepath.Dir(os.Args[0]), c.answer)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "slurmtest:", err)
		os.Exit(99)
	}
	if c.hang {
		child := exec.Command("sleep", strconv.Itoa(int(hangs/time.Second))) // which holds the pipes, too
		child.Stdout, child.Stderr = os.Stdout, os.Stderr
		_ = child.Run()
	}
	fmt.Print(c.out.String())
	fmt.Fprint(os.Stderr, c.err.String())
	os.Exit(c.code)
}

// command is one call.
type command struct {
	name     string
	args     []string
	input    string
	out, err strings.Builder
	code     int
	hang     bool
}

func (c *command) fail(code int, format string, args ...any) {
	c.code = code
	fmt.Fprintf(&c.err, format+"\n", args...)
}

// answer does what is asked.
func (c *command) answer(s *State) {
	words := []string{c.name}
	for _, a := range c.args {
		if !strings.HasPrefix(a, "-") && len(words) < 3 && c.name == "scontrol" {
			words = append(words, a)
		}
	}
	s.Calls[strings.Join(words, " ")]++
	if said, ok := s.Says[c.name]; ok {
		c.out.WriteString(said.Out)
		c.err.WriteString(said.Err)
		c.code = said.Code
		return
	}
	switch {
	case s.Hang:
		c.hang = true
		return
	case s.Silent && c.name == "sbatch":
		c.fail(1, "sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)")
		return
	case s.Silent:
		c.fail(1, "slurm_load_jobs error: Unable to contact slurm controller (connect failure)")
		return
	}
	map[string]func(*State){"sbatch": c.sbatch, "squeue": c.squeue, "scontrol": c.scontrol, "scancel": c.scancel}[c.name](s)
	if s.Deaf && (c.name == "sbatch" || c.name == "scancel") {
		c.out.Reset()
		c.err.Reset()
		c.fail(1, "%s: error: Socket timed out on send/recv operation", c.name)
	}
}

// sbatch takes the options that Slurm has; of two the last counts.
func (c *command) sbatch(s *State) {
	j := &Job{ID: s.Next, Name: "sbatch", State: "PENDING", Reason: "Priority", User: os.Geteuid(), Submit: now(), CPUs: 1, Memory: "0",
		Gres: "N/A", Script: c.input, Args: c.args, Env: os.Environ(), Partition: "normal"}
	test := false
	for _, a := range c.args {
		key, value, _ := strings.Cut(a, "=")
		switch key {
		case "--test-only":
			test = true
		case "--job-name":
			j.Name = value
		case "--partition":
			j.Partition = value
		case "--time":
			minutes, err := strconv.Atoi(value)
			if err != nil {
				c.fail(1, "sbatch: error: Invalid --time specification")
				return
			}
			j.Minutes = minutes
		case "--gres":
			j.Gres = "gres:" + value
		case "--mem":
			j.Memory = value
		case "--cpus-per-task":
			j.CPUs, _ = strconv.Atoi(value)
		case "--parsable", "--no-requeue", "--comment", "--export", "--chdir", "--output", "--error", "--input", "--nodes", "--ntasks",
			"--account", "--qos", "--constraint", "--reservation", "--exclude", "--signal", "--nice":
		default:
			c.fail(255, "sbatch: unrecognized option '%s'", key)
			return
		}
	}
	failed := "sbatch: error: Batch job submission failed: "
	if test {
		failed = "allocation failure: "
	}
	switch {
	case !strings.HasPrefix(c.input, "#!"):
		c.fail(1, "sbatch: error: This does not look like a batch script.")
		return
	case !slices.ContainsFunc(s.Partitions, func(p Partition) bool { return p.Name == j.Partition }):
		c.fail(1, "sbatch: error: invalid partition specified: %s\n%sInvalid partition name specified", j.Partition, failed)
		return
	case s.Refusal != "":
		c.fail(1, "%s%s", failed, s.Refusal)
		if j.State, j.Reason, j.Start, j.End = "FAILED", "BadConstraints", now(), now(); !test {
			s.Next++
			s.Jobs = append(s.Jobs, j)
		}
		return
	}
	s.Next++
	if test {
		fmt.Fprintf(&c.err, "sbatch: Job %d to start at %s using 1 processors on nodes n0 in partition %s\n", j.ID, local(now()),
			j.Partition)
		return
	}
	s.Jobs = append(s.Jobs, j)
	fmt.Fprintln(&c.out, j.ID)
}

// local is a moment as Slurm's commands write it: in the zone that TZ says.
func local(t time.Time) string {
	if t.IsZero() {
		return "N/A"
	}
	return t.Local().Format("2006-01-02T15:04:05")
}

func (c *command) squeue(s *State) {
	i := slices.Index(c.args, "-o")
	if i < 0 || !slices.Equal(c.args[:i], []string{"-h", "-a", "-t", "all"}) || i+2 != len(c.args) {
		c.fail(1, "squeue: slurmtest does not know %q", c.args)
		return
	}
	for _, j := range s.Jobs {
		end := local(j.End)
		if j.State == "PENDING" && !j.Start.IsZero() {
			end = local(j.Start.Add(time.Duration(j.Minutes) * time.Minute))
		}
		text, format := "", c.args[i+1]
		for format != "" {
			before, rest, ok := strings.Cut(format, "%")
			if text += before; !ok {
				break
			}
			text += map[byte]string{'i': strconv.Itoa(j.ID), 'T': j.State, 'U': strconv.Itoa(j.User), 'S': local(j.Start), 'e': end,
				'l': length(j.Minutes), 'N': j.Hosts, 'Y': cmp.Or(j.Meant, "(null)"), 'C': strconv.Itoa(j.CPUs), 'm': j.Memory, 'b': j.Gres,
				'r': j.Reason, 'P': j.Partition, 'j': j.Name}[rest[0]]
			format = rest[1:]
		}
		fmt.Fprintln(&c.out, text)
	}
}

// length is a number of minutes as squeue writes a limit.
func length(minutes int) string {
	switch {
	case minutes == 0:
		return "UNLIMITED"
	case minutes < 60:
		return fmt.Sprintf("%d:00", minutes)
	case minutes < 24*60:
		return fmt.Sprintf("%d:%02d:00", minutes/60, minutes%60)
	}
	return fmt.Sprintf("%d-%02d:%02d:00", minutes/24/60, minutes/60%24, minutes%60)
}

func (c *command) scontrol(s *State) {
	words := slices.DeleteFunc(slices.Clone(c.args), func(a string) bool { return a == "-o" || a == "-d" })
	switch strings.Join(words[:min(2, len(words))], " ") {
	case "show node":
		for _, n := range s.Nodes {
			fmt.Fprintf(&c.out, "NodeName=%s Arch=x86_64 CoresPerSocket=1  CPUAlloc=%d CPUEfctv=%d CPUTot=%d CPULoad=0.29 "+
				"AvailableFeatures=%s ActiveFeatures=%[5]s Gres=%[6]s GresDrain=N/A GresUsed=%[7]s NodeAddr=127.0.0.1 NodeHostName=h "+
				"Port=6818 Version=22.05.8 OS=Linux 6.1.0 #1 SMP PREEMPT_DYNAMIC  RealMemory=%[8]d AllocMem=%[9]d FreeMem=22207 "+
				"Sockets=4 Boards=1 State=%[10]s ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A Partitions=%[11]s  "+
				"BootTime=2026-11-30T07:53:19 SlurmdStartTime=2026-11-30T08:07:13 CfgTRES=cpu=4,mem=1000M,billing=4 AllocTRES= \n",
				n.Name, n.CPUAlloc, n.CPUs, n.CPUs, n.Features, n.Gres, n.GresUsed, n.Memory, n.AllocMem, n.State, n.Partitions)
		}
		if len(s.Nodes) == 0 {
			fmt.Fprintln(&c.out, "No nodes in the system")
		}
	case "show reservation":
		for _, r := range s.Reservations {
			fmt.Fprintf(&c.out, "ReservationName=%s StartTime=%s EndTime=%s Duration=%v Nodes=%s NodeCnt=1 CoreCnt=4 Features=(null) "+
				"PartitionName=(null) Flags=MAINT,SPEC_NODES TRES=cpu=4 Users=root Groups=(null) Accounts=(null) Licenses=(null) "+
				"State=INACTIVE BurstBuffer=(null) Watts=n/a MaxStartDelay=(null)\n", r.Name, local(r.Start), local(r.End),
				r.End.Sub(r.Start), r.Nodes)
		}
		if len(s.Reservations) == 0 {
			fmt.Fprintln(&c.out, "No reservations in the system")
		}
	case "show partition":
		for _, p := range s.Partitions {
			if p.Name == words[2] {
				fmt.Fprintf(&c.out, "PartitionName=%s AllowGroups=ALL Default=NO QoS=N/A DefaultTime=NONE GraceTime=20 Hidden=NO "+
					"MaxNodes=UNLIMITED MaxTime=%s MinNodes=0 Nodes=n0 PriorityTier=1 PreemptMode=CANCEL State=UP\n", p.Name, p.MaxTime)
				return
			}
		}
		fmt.Fprintf(&c.out, "Partition %s not found\n", words[2])
		c.code = 1
	case "show job":
		for _, j := range s.Jobs {
			if len(words) < 3 || strconv.Itoa(j.ID) == words[2] {
				preempted := "None"
				if !j.Preempted.IsZero() {
					preempted = local(j.Preempted)
				}
				fmt.Fprintf(&c.out, "JobId=%d JobName=%s UserId=u(%d) JobState=%s Reason=%s StartTime=%s EndTime=%s PreemptTime=%s \n",
					j.ID, j.Name, j.User, j.State, j.Reason, local(j.Start), local(j.End), preempted)
			}
		}
		if c.out.Len() > 0 || len(words) < 3 {
			return
		}
		c.fail(1, "slurm_load_jobs error: Invalid job id specified")
	default:
		c.fail(1, "scontrol: slurmtest does not know %q", c.args)
	}
}

func (c *command) scancel(s *State) {
	name, ids := "", map[string]bool{}
	for _, a := range c.args {
		if v, ok := strings.CutPrefix(a, "--name="); ok {
			name = v
		} else {
			ids[a] = true
		}
	}
	if len(ids) > 1000 {
		c.fail(1, "scancel: error: slurm_kill_job: Message too long")
		return
	}
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		i := slices.IndexFunc(s.Jobs, func(j *Job) bool { return strconv.Itoa(j.ID) == id })
		switch {
		case i < 0 || s.Jobs[i].over():
			c.fail(1, "scancel: error: Kill job error on job id %s: Invalid job id specified", id)
		case s.Jobs[i].Name != name && name != "":
			// no error: it is not among those that are meant
		case s.Jobs[i].State == "PENDING":
			s.Jobs[i].State, s.Jobs[i].Killed, s.Jobs[i].Start, s.Jobs[i].End = "CANCELLED", true, now(), now()
		default:
			s.Jobs[i].State, s.Jobs[i].Told, s.Jobs[i].End = "COMPLETING", true, now()
		}
	}
}
