package restd

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// oldest is the version of Slurm 22.05. That of 23.02, v0.0.39, is left out: each release has those of two before it.
const oldest = "v0.0.38"

// Versions are those that are known, the newest first.
func Versions() []string {
	return []string{"v0.0.45", "v0.0.44", "v0.0.43", "v0.0.42", "v0.0.41", "v0.0.40", oldest}
}

// Order is a batch job to be asked for. What is empty or 0 is not asked for.
type Order struct {
	Name, Comment, Partition, Script string
	// Minutes is its limit, MiB the memory of its node.
	Minutes, CPUs, MiB int64
	// Gres as sbatch takes it: gpu:1g.10gb:1.
	Gres, Account, QOS, Constraint, Reservation, Exclude string
	// Environment is all that the job has of one. Secret is what in it nobody may read.
	Environment map[string]string
	Secret      string
	// Signal is sent to the batch script alone so many seconds before the end, and, where the site says so, at a preemption.
	Signal string
	Before int64
}

// body is what a version is sent. Errors: what the version can't be asked for.
func (o *Order) body(version string) (map[string]any, error) {
	job := map[string]any{"name": o.Name, "comment": o.Comment, "partition": o.Partition, "tasks": 1, "current_working_directory": "/",
		"standard_input": "/dev/null", "standard_output": "/dev/null", "standard_error": "/dev/null"}
	add := func(key string, value any, given bool) {
		if given {
			job[key] = value
		}
	}
	add("account", o.Account, o.Account != "")
	add("qos", o.QOS, o.QOS != "")
	add("constraints", o.Constraint, o.Constraint != "")
	add("reservation", o.Reservation, o.Reservation != "")
	add("cpus_per_task", o.CPUs, o.CPUs > 0)
	if version == oldest {
		if o.Signal != "" {
			return nil, fmt.Errorf("%s can't ask for a signal to the batch script alone", version)
		}
		// requeue: false would be taken for true by 22.05.8, which has a key no_requeue that its own description leaves out.
		job["no_requeue"] = true
		job["nodes"], job["time_limit"], job["environment"] = []int{1, 1}, o.Minutes, o.Environment
		add("memory_per_node", o.MiB, o.MiB > 0)
		add("gres", o.Gres, o.Gres != "")
		add("exclude_nodes", o.Exclude, o.Exclude != "")
		return map[string]any{"script": o.Script, "job": job}, nil
	}
	number := func(n int64) map[string]any { return map[string]any{"set": true, "infinite": false, "number": n} }
	var environment []string
	for _, k := range slices.Sorted(maps.Keys(o.Environment)) {
		environment = append(environment, k+"="+o.Environment[k])
	}
	job["requeue"] = false
	job["nodes"], job["time_limit"], job["environment"] = "1", number(o.Minutes), environment
	add("memory_per_node", number(o.MiB), o.MiB > 0)
	add("excluded_nodes", []string{o.Exclude}, o.Exclude != "")
	if o.Gres != "" {
		var tres []string
		for g := range strings.SplitSeq(o.Gres, ",") {
			tres = append(tres, "gres/"+strings.TrimPrefix(g, "gres/"))
		}
		job["tres_per_node"] = strings.Join(tres, ",")
	}
	if o.Signal != "" {
		job["kill_warning_signal"], job["kill_warning_delay"] = o.Signal, number(o.Before)
		job["kill_warning_flags"] = []string{"BATCH_JOB"}
	}
	return map[string]any{"script": o.Script, "job": job}, nil
}
