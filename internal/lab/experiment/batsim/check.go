package batsim

import (
	"path/filepath"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/lab/planner"
	"sluice.dev/sluice/internal/lab/planner/conservative"
	"sluice.dev/sluice/internal/lab/planner/easy"
	"sluice.dev/sluice/internal/lab/trace"
	reader "sluice.dev/sluice/internal/lab/trace/batsim"
)

// hosts of the reference's machine.
const hosts = 32

// Cause is why Batsim's starts are not those of our planners; the check proves it by a replay that differs in that alone.
const Cause = "Batsim's reservations are for certain hosts, the lowest numbers that are free; ours are for a number of hosts, whichever " +
	"those will be"

// Line is one scheduler of the reference beside ours.
type Line struct {
	Planner string
	Jobs    int
	// Equal starts, to the microsecond that the reference is printed to, of our planner; and of the replay in which
	// reservations name hosts.
	Equal, EqualByHost int
	// Explained differences: those that the replay by host does not have. Unexplained ones are listed.
	Explained   int
	Unexplained []Difference
	// MeanWait of our planner and of the reference.
	MeanWait, PublishedMeanWait time.Duration
	// First is the first job that starts at another time, if there is one.
	First *Difference
}

// Difference is one job that starts at another time.
type Difference struct {
	Job string
	// Published start, ours, and that of the replay by host.
	Published, Ours, ByHost time.Duration
}

// Check replays the reference in a folder of published traces under both planners. The error is of kind Invalid or NotFound
// if it can't be read.
func Check(dir string) ([]Line, error) {
	var lines []Line
	for _, s := range []struct {
		kind, byHost planner.Kind
		machine      Machine // that makes byHost name hosts
	}{{easy.Kind(), namedEASY(), Loose}, {conservative.Kind(), conservative.Kind(), Named}} {
		jobs, err := Read(filepath.Join(dir, "backfill_ref", "medium_late_"+s.kind.Name+"_out_jobs.csv.gz"))
		if err != nil {
			return nil, err
		}
		ours, err := Replay(jobs, hosts, Loose, s.kind)
		if err != nil {
			return nil, err
		}
		byHost, err := Replay(jobs, hosts, s.machine, s.byHost)
		if err != nil {
			return nil, err
		}
		lines = append(lines, compare(s.kind.Name, jobs, ours, byHost))
	}
	return lines, nil
}

// Read reads the jobs of one run, all of which must have ended well and within what they asked for.
func Read(file string) ([]Job, error) {
	var jobs []Job
	err := trace.Each(reader.Format(), file, func(r *trace.Record) error {
		j := Job{ID: r.Job.ID, Submitted: r.At, Started: r.Job.Start, Requested: r.Job.Requested, Execution: r.Job.Duration,
			Hosts: int32(min(r.Job.GPUs, hosts+1))}
		if r.Job.Status != "1" || j.Execution > j.Requested || j.Hosts > hosts {
			return errkind.Errorf(errkind.Invalid, "%s: line %d: job %s of %d hosts ran %v of %v with status %s: the replay is of jobs "+
				"that end well, within their time, on at most %d hosts", file, r.Line, j.ID, r.Job.GPUs, j.Execution, j.Requested,
				r.Job.Status, hosts)
		}
		jobs = append(jobs, j)
		return nil
	})
	if err == nil && len(jobs) == 0 {
		err = errkind.Errorf(errkind.Invalid, "%s: no job is in it", file)
	}
	return jobs, err
}

func compare(name string, jobs []Job, ours, byHost []time.Duration) Line {
	l := Line{Planner: name, Jobs: len(jobs)}
	for i, j := range jobs {
		l.MeanWait += ours[i] - j.Submitted
		l.PublishedMeanWait += j.Started - j.Submitted
		d := Difference{Job: j.ID, Published: j.Started, Ours: ours[i], ByHost: byHost[i]}
		if d.ByHost == d.Published {
			l.EqualByHost++
		}
		switch {
		case d.Ours == d.Published:
			l.Equal++
			continue
		case d.ByHost == d.Published:
			l.Explained++
		default:
			l.Unexplained = append(l.Unexplained, d)
		}
		if l.First == nil {
			l.First = &d
		}
	}
	l.MeanWait /= time.Duration(len(jobs))
	l.PublishedMeanWait /= time.Duration(len(jobs))
	return l
}

// OK says whether every start is equal or its difference explained; that takes a replay by host that equals the whole
// reference, so that an explanation is not a coincidence job by job.
func (l *Line) OK() bool { return len(l.Unexplained) == 0 && l.EqualByHost == l.Jobs }
