package sbatch

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/indices"
	"sluice.dev/sluice/internal/core/mig"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/array"
)

// Request is what a script asks for.
type Request struct {
	// JobName is %x; empty: the script's own.
	JobName string
	// Array is the index list as written; empty: no array.
	Array string
	Tasks indices.List
	// Time is 0 if it does not say, or says that there is no limit.
	Time time.Duration
	// Memory is of the GPU, 0 if nothing says it.
	Memory quantity.Amount
	// Slices is how many GPUs or slices of one it asks for at once.
	Slices int
	// Output and Error are patterns of file names; empty: the usual one, and where Output goes.
	Output, Error string
	// Signal comes Before ahead of the end; empty: none.
	Signal string
	Before time.Duration
	// Notes say of options what they mean here where that is not what they mean to Slurm.
	Notes []Problem
	// Unknown are the options that are not understood.
	Unknown []Option
}

// Understand reads what options mean; of one that is given twice the last counts, as with sbatch. All problems are listed.
func Understand(list []Option) (r Request, wrong []Problem) {
	r.Slices = 1
	m := meaning{Request: &r}
	last := map[string]int{}
	for i, o := range list {
		last[o.Name] = i
	}
	for i, o := range list {
		takes, known := options()[o.Name]
		switch {
		case !known:
			r.Unknown = append(r.Unknown, o)
		case takes != o.Given || takes && o.Value == "":
			m.at = o
			if takes {
				m.bad("has no value")
			} else {
				m.bad("takes no value")
			}
		case last[o.Name] == i:
			m.at = o
			m.read(o)
		}
	}
	if m.hostMemory.Name != "" {
		m.at = m.hostMemory
		switch {
		case m.profile > 0:
			r.Memory = m.profile
			m.note("is not applied: to Slurm it is the host's memory, and --gres gives the GPU's")
		default:
			m.note("is taken as the GPU's memory; to Slurm it is the host's")
		}
	} else {
		r.Memory = m.profile
	}
	slices.SortStableFunc(r.Notes, func(a, b Problem) int { return a.Line - b.Line })
	return r, m.wrong
}

// meaning reads options one by one.
type meaning struct {
	*Request
	at    Option
	wrong []Problem
	// profile is the memory of the slice that --gres names; hostMemory is --mem, nameless if it is not given.
	profile    quantity.Amount
	hostMemory Option
}

func (m *meaning) bad(format string, args ...any) {
	m.wrong = append(m.wrong, Problem{m.at.Line, m.at.String() + ": " + fmt.Sprintf(format, args...)})
}

func (m *meaning) note(format string, args ...any) {
	m.Notes = append(m.Notes, Problem{m.at.Line, m.at.String() + " " + fmt.Sprintf(format, args...)})
}

// String is an option as people write it.
func (o Option) String() string {
	if o.Given {
		return o.Name + "=" + o.Value
	}
	return o.Name
}

func (m *meaning) read(o Option) {
	switch v := o.Value; o.Name {
	case "--job-name":
		if m.JobName = v; strings.ContainsFunc(v, func(r rune) bool { return r < ' ' || r == '/' }) {
			m.bad("has a sign in it that no file's name may have")
		}
	case "--array":
		l, err := indices.Parse(v)
		if err != nil {
			m.bad("%v", err)
		}
		m.Array, m.Tasks = v, l
	case "--time":
		t, err := Time(v)
		if err != nil {
			m.bad("%v", err)
		}
		m.Time = t
	case "--mem":
		a, err := size(v)
		if err != nil {
			m.bad("%v", err)
		}
		m.Memory, m.hostMemory = a, o
	case "--gres":
		m.gres(v)
	case "--gpus":
		_, count, typed := strings.Cut(v, ":")
		if !typed {
			count = v
		} else {
			m.note("asks for a type of GPU; here any slice with enough memory is taken")
		}
		m.count(count)
	case "--output":
		m.Output = m.pattern(v)
	case "--error":
		m.Error = m.pattern(v)
	case "--dependency":
		m.bad("no job here waits for another by itself; wait for it first, as in `sluice wait JOB && sluice submit SCRIPT`, and take the " +
			"line out")
	case "--requeue":
		m.note("is always so: what a failing machine has cut short runs again; what ends with another status than 0 has failed")
	case "--signal":
		m.signal(v)
	case "--ntasks", "--nodes":
		if v != "1" {
			m.bad("a script runs once, on one machine; want 1")
		}
	}
}

// Time reads a time as Slurm writes it: minutes, minutes:seconds, hours:minutes:seconds, days-hours, days-hours:minutes and
// days-hours:minutes:seconds; 0 is none, as are UNLIMITED and INFINITE.
func Time(v string) (time.Duration, error) {
	switch strings.ToUpper(v) {
	case "UNLIMITED", "INFINITE", "-1":
		return 0, nil
	}
	units := []time.Duration{time.Hour, time.Minute, time.Second}
	days, clock, dashed := strings.Cut(v, "-")
	fields := strings.Split(clock, ":")
	if !dashed {
		days, fields = "0", strings.Split(v, ":")
		if len(fields) < 3 {
			units = units[1:]
		}
	}
	if len(fields) > len(units) {
		return 0, errTime
	}
	sum := time.Duration(0)
	for i, f := range append([]string{days}, fields...) {
		n, err := strconv.ParseUint(f, 10, 20)
		if err != nil {
			return 0, errTime
		}
		sum += time.Duration(n) * append([]time.Duration{24 * time.Hour}, units...)[i]
	}
	if sum > mostTime {
		return 0, errTime
	}
	return sum, nil
}

const mostTime = 100 * 365 * 24 * time.Hour

var errTime = errors.New("is no time; want minutes, MM:SS, HH:MM:SS, D-HH, D-HH:MM or D-HH:MM:SS, at most 100 years")

// size reads a size as Slurm writes it: a number of mebibytes, or one with K, M, G or T.
func size(v string) (quantity.Amount, error) {
	number, unit := strings.TrimRight(v, "KMGTBkmgtb"), "M"
	if len(number) < len(v) {
		unit = strings.TrimSuffix(strings.ToUpper(v[len(number):]), "B")
	}
	shift, known := map[string]uint{"K": 10, "M": 20, "G": 30, "T": 40}[unit]
	n, err := strconv.ParseUint(number, 10, 20)
	switch {
	case err != nil || !known:
		return 0, fmt.Errorf("is no size; want one such as 16G or 500M (a number alone is mebibytes)")
	case n == 0:
		return 0, fmt.Errorf("asks for all memory of a node; want a size such as 16G")
	case quantity.Amount(n)<<shift > 1<<50:
		return 0, fmt.Errorf("is more than 1024T")
	}
	return quantity.Amount(n) << shift, nil
}

// gres reads generic resources: gpu, gpu:N, gpu:TYPE and gpu:TYPE:N.
func (m *meaning) gres(v string) {
	parts := strings.Split(v, ":")
	if parts[0] != "gpu" || len(parts) > 3 || strings.Contains(v, ",") {
		m.bad("want GPUs of one kind, such as gpu:2 or gpu:1g.10gb:1; there are no other resources here")
		return
	}
	count := "1"
	if last := parts[len(parts)-1]; len(parts) == 3 || len(parts) == 2 && strings.Trim(last, "0123456789") == "" {
		count, parts = last, parts[:len(parts)-1]
	}
	m.count(count)
	if len(parts) < 2 {
		return
	}
	kind := parts[1]
	_, name, model := strings.Cut(kind, "_")
	if !model {
		name = kind
	}
	profile, is := mig.Canonical(name)
	if m.profile = mig.Lookup("", profile).Memory; !is || m.profile == 0 {
		m.profile = 0
		m.note("asks for a type of GPU; here any slice with enough memory is taken")
		return
	}
	m.note("is taken as a need of %s of GPU memory, which any slice may serve", quantity.FormatBytes(m.profile))
}

// mostSlices is what a rigid job may hold at once.
const mostSlices = 1024

func (m *meaning) count(v string) {
	n, err := strconv.ParseUint(v, 10, 16)
	if err != nil || n < 1 || n > mostSlices {
		m.bad("%q is no number of GPUs; want 1 to %d", v, mostSlices)
		return
	}
	m.Slices = int(n)
}

// pattern reads the pattern of a file's name. Files lie in the output of the job: of an absolute path only its last part counts.
func (m *meaning) pattern(v string) string {
	if v == "/dev/null" {
		m.note("is not followed: what a task says is kept")
		return ""
	}
	if strings.HasPrefix(v, "/") {
		base := v[strings.LastIndexByte(v, '/')+1:]
		m.note("is a file of the job's output here: %s", base)
		v = base
	}
	if err := array.CheckPattern(v); err != nil {
		m.bad("%v", err)
	}
	return v
}

// signal reads [B:]NAME[@SECONDS]; 60 seconds without.
func (m *meaning) signal(v string) {
	if rest, r := strings.CutPrefix(v, "R:"); r {
		v = rest
		m.note("asks to start in spite of reservations (R:), which nothing does here")
	}
	if rest, b := strings.CutPrefix(v, "B:"); b {
		v = rest
	}
	name, before, timed := strings.Cut(v, "@")
	if !timed {
		before = "60"
	}
	name = strings.TrimPrefix(strings.ToUpper(name), "SIG")
	for is, number := range signals() {
		if name == number {
			name = is
		}
	}
	if _, known := signals()[name]; !known {
		m.bad("%q is no signal that can be asked for; want one such as USR1 or 10", name)
	}
	n, err := strconv.ParseUint(before, 10, 16)
	if err != nil {
		m.bad("%q is no number of seconds; want 0 to 65535", before)
	}
	m.Signal, m.Before = name, time.Duration(n)*time.Second
}

// signals are those that a job may ask for, with Linux' numbers.
func signals() map[string]string {
	return map[string]string{"HUP": "1", "INT": "2", "QUIT": "3", "USR1": "10", "USR2": "12", "ALRM": "14", "TERM": "15", "CONT": "18",
		"URG": "23", "WINCH": "28"}
}
