package slurm

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/provider"
)

// row is one job of the cluster's queue, anybody's.
type row struct {
	id, state string
	user      uint32
	// mine: of the user whose jobs this provider's pilots are.
	mine bool
	// start is when it began, or is to begin; end when it is over at the latest, or ended. Zero: not known.
	start, end time.Time
	limit      time.Duration // 0: none
	// hosts it is or was on; meant are those that it is to begin on, meantUnknown: its cluster does not say.
	hosts, meant []string
	meantUnknown bool
	cpus, memory int64  // of all its hosts, bytes of each; memory -1: not known
	gres         []gres // of each host
	reason, name string
	// partitions are those that it may begin in, or is in.
	partitions []string
	// taken is when it was preempted; zero: it was not, or this way of asking shows it elsewhere.
	taken time.Time
}

// queueFieldNames are squeue's, in the order that parseQueue reads. The name is anybody's text.
var queueFieldNames = []string{"%i", "%T", "%U", "%S", "%e", "%l", "%N", "%Y", "%C", "%m", "%b", "%r", "%P", "%j"}

func parseQueue(text, between string) (rows []row, err error) {
	if text == "" {
		return nil, nil
	}
	fields := strings.Split(text, between)
	n := len(queueFieldNames)
	if len(fields)%n != 1 || strings.TrimSpace(fields[len(fields)-1]) != "" {
		return nil, fmt.Errorf("%d fields, of which each job has %d: the last is %q", len(fields)-1, n, brief(fields[len(fields)-1]))
	}
	for i := 0; i+n < len(fields); i += n {
		f := slices.Clone(fields[i : i+n])
		if i > 0 {
			var ok bool
			if f[0], ok = strings.CutPrefix(f[0], "\n"); !ok {
				return nil, fmt.Errorf("job %q does not begin a line", brief(f[0]))
			}
		}
		r, err := parseRow(f)
		if err != nil {
			return nil, fmt.Errorf("job %s: %w", brief(f[0]), err)
		}
		rows = append(rows, r)
	}
	return rows, nil
}

func parseRow(f []string) (r row, err error) {
	r = row{id: f[0], state: f[1], reason: f[11], partitions: strings.Split(f[12], ","), name: f[13]}
	if !strings.ContainsAny(r.id[:min(1, len(r.id))], "0123456789") || strings.ContainsAny(r.id, " \n\t") {
		return r, fmt.Errorf("%q is no id", brief(r.id))
	}
	user, err := strconv.ParseUint(f[2], 10, 32)
	if err != nil {
		return r, fmt.Errorf("%q is no user's number", brief(f[2]))
	}
	r.user = uint32(user)
	if r.start, err = parseTime(f[3]); err != nil {
		return r, err
	}
	if r.end, err = parseTime(f[4]); err != nil {
		return r, err
	}
	if r.limit, err = parseLength(f[5]); err != nil {
		return r, err
	}
	if r.hosts, err = parseHosts(f[6]); err != nil {
		return r, err
	}
	if r.meant, err = parseHosts(f[7]); err != nil {
		return r, err
	}
	var unit int64
	var ok bool
	if r.cpus, unit, ok = quantity(f[8]); !ok {
		return r, fmt.Errorf("%q is no number of processors", brief(f[8]))
	}
	r.cpus *= unit
	r.memory = -1
	if n, unit, ok := quantity(f[9]); ok && unit > 1 {
		r.memory = n * unit
	}
	if list, odd := parseGres(f[10]); odd == nil { // otherwise it is another's, in a form that no pilot has
		r.gres = list
	}
	return r, nil
}

// stateTable is what Slurm's words for a job's state mean: how far it is, and whether it failed.
var stateTable = map[string]struct {
	state  provider.State
	failed bool
}{
	"PENDING": {provider.Waiting, false}, "REQUEUED": {provider.Waiting, false}, "REQUEUE_HOLD": {provider.Waiting, false},
	"REQUEUE_FED": {provider.Waiting, false}, "SPECIAL_EXIT": {provider.Waiting, false}, "RESV_DEL_HOLD": {provider.Waiting, false},
	"CONFIGURING": {provider.Running, false}, "RUNNING": {provider.Running, false}, "SUSPENDED": {provider.Running, false},
	"STOPPED": {provider.Running, false}, "RESIZING": {provider.Running, false}, "SIGNALING": {provider.Running, false},
	"STAGE_OUT": {provider.Ending, false}, "COMPLETING": {provider.Ending, false},
	"COMPLETED": {provider.Ended, false}, "CANCELLED": {provider.Ended, false}, "PREEMPTED": {provider.Ended, false},
	"BOOT_FAIL": {provider.Ended, true}, "DEADLINE": {provider.Ended, true}, "FAILED": {provider.Ended, true},
	"NODE_FAIL": {provider.Ended, true}, "OUT_OF_MEMORY": {provider.Ended, true}, "TIMEOUT": {provider.Ended, true},
	"LAUNCH_FAILED": {provider.Ended, true}, "RECONFIG_FAIL": {provider.Ended, true}, "REVOKED": {provider.Ended, true},
}

// prefix of the names of this provider's jobs. No pool's name has a dot.
func (o *Options) prefix() string { return "sluice." + o.Mark + "." + o.Pool + "." }

// pilot is the name of the pilot that a job is a copy of; "": it is none of this user's, mark and pool.
func (s *Slurm) pilot(r row) string {
	name, ok := strings.CutPrefix(r.name, s.o.prefix())
	if !ok || !r.mine || !poolForm.MatchString(name) {
		return ""
	}
	return name
}

// refused reports whether a job is what is left of one that Slurm did not take: sbatch has said so, and it shows one that failed.
func (r *row) refused() bool {
	return r.state == "FAILED" && r.reason == "BadConstraints" && len(r.hosts) == 0
}

// limitForm are the reasons to wait that are limits of a QOS, an account or a user: Slurm has one for each thing that may be limited.
// neverForm are those of what one job may have: Slurm takes a job that asks for more, also in a trial, and leaves it waiting for ever.
var (
	limitForm = regexp.MustCompile(`^(QOS|Assoc)(Grp|Max)`)
	neverForm = regexp.MustCompile(`^(QOS|Assoc)Max.*PerJob|^QOSMin`)
)

// seen are the pilots among all jobs, in order of name.
func (s *Slurm) seen(rows []row) (list []provider.Seen, err error) {
	for _, r := range rows {
		name := s.pilot(r)
		if name == "" || r.refused() {
			continue
		}
		is, known := stateTable[r.state]
		if !known {
			return nil, errkind.Errorf(errkind.Unavailable, "squeue: job %s is %q: that word is not known", r.id, brief(r.state))
		}
		p := provider.Seen{Name: name, ID: r.id, State: is.state, Failed: is.failed, Preempted: r.state == "PREEMPTED"}
		if p.State == provider.Waiting {
			p.Expected, p.Limited, p.Never = r.start, limitForm.MatchString(r.reason), neverForm.MatchString(r.reason)
		} else {
			p.End = r.end
			if len(r.hosts) > 0 { // one that was cancelled while it waited has a start, too
				p.Began = r.start
			}
		}
		if r.reason != "None" {
			p.Why = r.reason
		}
		if p.State == provider.Ended {
			p.Why = strings.TrimSpace(r.state + " " + p.Why)
		}
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b provider.Seen) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
	return list, nil
}
