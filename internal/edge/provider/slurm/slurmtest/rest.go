package slurmtest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// REST is a slurmrestd of a cluster, which serves one version: v0.0.38 in the form that 22.05.8 was seen to have, others in the form that
// is published.
type REST struct {
	h *Host
	// URL of it.
	URL string

	mu             sync.Mutex
	version, token string
	after          func(*State)
}

// Serve starts one, on a socket; with a token on an address of this machine, and only whoever has the token is answered.
func (h *Host) Serve(version, token string) *REST {
	h.tb.Helper()
	r := &REST{h: h, version: version, token: token}
	s := httptest.NewUnstartedServer(r)
	if token == "" {
		l, err := net.Listen("unix", h.socket())
		if failed := s.Listener.Close(); err != nil || failed != nil {
			h.tb.Fatal(err, failed)
		}
		s.Listener, r.URL = l, "unix:"+l.Addr().String()
	}
	s.Start()
	if token != "" {
		r.URL = s.URL
	}
	h.tb.Cleanup(s.Close)
	return r
}

// socket is a path for one: it is short, and a test's folder is not.
func (h *Host) socket() string {
	h.tb.Helper()
	dir, err := os.MkdirTemp("", "rest-")
	if err != nil {
		h.tb.Fatal(err)
	}
	h.tb.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			h.tb.Error(err)
		}
	})
	return filepath.Join(dir, "sock")
}

// Replace has it serve another version, for another token.
func (r *REST) Replace(version, token string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.version, r.token = version, token
}

// After has something happen in the cluster once the queue was read next.
func (r *REST) After(f func(*State)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.after = f
}

// took is what is to happen after a queue, once.
func (r *REST) took() func(*State) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.after
	r.after = nil
	return f
}

// ServeHTTP implements http.Handler.
func (r *REST) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	r.mu.Lock()
	version, token := r.version, r.token
	r.mu.Unlock()
	path, served := strings.CutPrefix(q.URL.Path, "/slurm/"+version+"/")
	me, err := user.Current()
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusNotImplemented)
		return
	case !served:
		http.Error(w, "Unable find requested URL. Please view /openapi/v3 for API reference.", http.StatusNotFound)
		return
	case token != "" && version == "v0.0.38" && q.Header.Get("X-SLURM-USER-TOKEN") != token: // slurmrestd does not look at it itself
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprint(w, `{"errors": [{"error": "Unspecified error", "error_number": -1}]}`)
		return
	case token != "" && (q.Header.Get("X-SLURM-USER-TOKEN") != token || q.Header.Get("X-SLURM-USER-NAME") != me.Username):
		http.Error(w, "Authentication failure", http.StatusUnauthorized)
		return
	}
	c := call{version: version, user: me.Username, old: version == "v0.0.38", status: http.StatusOK,
		body: map[string]any{"errors": []any{}}}
	if q.Body != nil {
		if err := json.NewDecoder(q.Body).Decode(&c.asked); err != nil && q.Method == http.MethodPost {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	}
	lost := false
	if err := update(r.h.Bin, func(s *State) {
		words := strings.Split(strings.Trim(path, "/"), "/")
		s.Calls[q.Method+" "+words[0]]++
		c.hang, lost = s.Hang, s.Deaf && q.Method != http.MethodGet
		if !s.Hang {
			c.answer(s, q.Method, words)
		}
		if words[0] == "jobs" {
			if f := r.took(); f != nil {
				f(s)
			}
		}
	}); err != nil {
		http.Error(w, err.Error(), http.StatusNotImplemented)
		return
	}
	if c.hang {
		select {
		case <-q.Context().Done():
		case <-time.After(hangs):
		}
		return
	}
	if lost {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(c.status)
	_ = json.NewEncoder(w).Encode(c.body) // who has left hears nothing
}

// call is one.
type call struct {
	version, user string
	// old: in the form of v0.0.38.
	old, hang bool
	asked     struct {
		Script string
		Job    map[string]any
	}
	status int
	body   map[string]any
}

// fail answers with one of Slurm's errors.
func (c *call) fail(status, code int, text string) {
	c.status = status
	c.body["errors"] = []any{map[string]any{"error_number": code, "error": text, "description": "", "source": "slurmtest"}}
}

func (c *call) answer(s *State, method string, words []string) {
	what := method + " " + strings.Join(words[:len(words)-1], "/")
	if len(words) == 1 {
		what = method + " " + words[0]
	}
	switch {
	case s.Silent && words[0] == "jobs":
		c.fail(http.StatusInternalServerError, -1, "Unspecified error")
	case s.Silent:
		c.fail(http.StatusInternalServerError, 1800, "Unable to contact slurm controller (connect failure)")
	case what == "GET ping":
	case what == "GET jobs":
		c.jobs(s.Jobs)
	case what == "GET job":
		c.jobs(slices.DeleteFunc(slices.Clone(s.Jobs), func(j *Job) bool { return strconv.Itoa(j.ID) != words[1] }))
		if len(c.body["jobs"].([]any)) == 0 {
			c.fail(http.StatusInternalServerError, 2017, "Invalid job id specified")
		}
	case what == "GET nodes":
		c.nodes(s.Nodes)
	case what == "GET reservations":
		list := []any{}
		for _, r := range s.Reservations {
			list = append(list, map[string]any{"name": r.Name, "node_list": r.Nodes, "start_time": c.at(r.Start), "end_time": c.at(r.End)})
		}
		c.body["reservations"] = list
	case what == "GET partition":
		c.partition(s.Partitions, words[1])
	case what == "POST job":
		c.submit(s)
	case what == "DELETE job":
		kill := command{name: "scancel", args: []string{words[1]}}
		if kill.scancel(s); kill.code != 0 {
			c.fail(http.StatusInternalServerError, 2017, "Invalid job id specified")
		}
	default:
		c.fail(http.StatusNotImplemented, 1, "slurmtest does not know "+what)
	}
}

// number is one as the version writes it; nil where it is not set.
func (c *call) number(n int, set bool) any {
	switch {
	case !c.old:
		return map[string]any{"set": set, "infinite": false, "number": n}
	case !set:
		return nil
	}
	return n
}

// at is a moment as the version writes it.
func (c *call) at(t time.Time) any {
	n := 0
	if !t.IsZero() {
		n = int(t.Unix())
	}
	return c.number(n, true)
}

// words are a list as the version writes it; one says that the old one has a single word.
func (c *call) words(text string, one bool) any {
	switch {
	case c.old && one:
		return text
	case text == "" || text == "(null)":
		return []string{}
	}
	return strings.Split(text, ",")
}

func (c *call) jobs(jobs []*Job) {
	list := []any{}
	for _, j := range jobs {
		end := j.End
		if j.State == "PENDING" && !j.Start.IsZero() {
			end = j.Start.Add(time.Duration(j.Minutes) * time.Minute)
		}
		name := c.user
		if j.User != os.Geteuid() {
			name = fmt.Sprint("uid", j.User)
		}
		memory, err := strconv.Atoi(strings.TrimSuffix(j.Memory, "M"))
		o := map[string]any{"job_id": j.ID, "name": j.Name, "user_id": j.User, "user_name": name, "job_state": c.words(j.State, true),
			"state_reason": j.Reason, "partition": j.Partition, "start_time": c.at(j.Start), "end_time": c.at(end),
			"preempt_time": c.at(j.Preempted), "time_limit": c.number(j.Minutes, j.Minutes > 0),
			"nodes": j.Hosts, "cpus": c.number(j.CPUs, true),
			"memory_per_node": c.number(memory, err == nil && memory > 0), "tres_per_node": strings.TrimPrefix(j.Gres, "N/A")}
		if !c.old {
			o["scheduled_nodes"] = j.Meant
			o["tres_per_node"] = strings.Replace(strings.TrimPrefix(j.Gres, "N/A"), "gres:", "gres/", 1)
		}
		list = append(list, o)
	}
	c.body["jobs"] = list
}

func (c *call) nodes(nodes []Node) {
	list := []any{}
	for _, n := range nodes {
		states := strings.Split(n.State, "+")
		o := map[string]any{"name": n.Name, "partitions": strings.Split(n.Partitions, ","), "cpus": n.CPUs, "alloc_cpus": n.CPUAlloc,
			"real_memory": n.Memory, "alloc_memory": n.AllocMem, "gres": n.Gres, "gres_used": n.GresUsed, "state": states,
			"active_features": c.words(strings.TrimPrefix(n.Features, "(null)"), true)}
		if c.old {
			o["state"], o["state_flags"] = strings.ToLower(states[0]), states[1:]
		} else {
			o["effective_cpus"], o["specialized_memory"] = n.CPUs, 0
		}
		list = append(list, o)
	}
	c.body["nodes"] = list
}

func (c *call) partition(list []Partition, name string) {
	found := []any{}
	for _, p := range list {
		if p.Name == name {
			t, err := time.Parse("15:04:05", p.MaxTime)
			minutes := t.Hour()*60 + t.Minute()
			o := map[string]any{"name": name, "max_time_limit": c.number(minutes, err == nil)}
			if !c.old {
				o = map[string]any{"name": name, "maximums": map[string]any{"time": c.number(minutes, err == nil)}}
			}
			found = append(found, o)
		}
	}
	c.body["partitions"] = found
	if len(found) == 0 {
		c.fail(http.StatusInternalServerError, 2000, "Invalid partition name specified")
	}
}

// keyTable are the keys of a job that are known, and what sbatch calls them. Those of v0.0.38 that others do not have are marked by old.
var keyTable = map[string]struct {
	option   string
	old, new bool
}{
	"name": {"job-name", true, true}, "partition": {"partition", true, true}, "time_limit": {"time", true, true},
	"comment": {"comment", true, true}, "tasks": {"ntasks", true, true}, "nodes": {"nodes", true, true},
	"account": {"account", true, true}, "qos": {"qos", true, true}, "constraints": {"constraint", true, true},
	"reservation": {"reservation", true, true}, "cpus_per_task": {"cpus-per-task", true, true},
	"current_working_directory": {"chdir", true, true}, "standard_input": {"input", true, true}, "standard_output": {"output", true, true},
	"standard_error": {"error", true, true}, "memory_per_node": {"mem", true, true}, "gres": {"gres", true, false},
	"exclude_nodes": {"exclude", true, false}, "no_requeue": {"no-requeue", true, false}, "tres_per_node": {"gres", false, true},
	"excluded_nodes": {"exclude", false, true}, "requeue": {"no-requeue", false, true}, "kill_warning_signal": {"signal", false, true},
	"kill_warning_delay": {"", false, true}, "kill_warning_flags": {"", false, true}, "environment": {"", true, true},
}

// submit takes a job, as sbatch does.
func (c *call) submit(s *State) {
	b := command{name: "sbatch", input: c.asked.Script}
	for _, key := range slices.Sorted(maps.Keys(c.asked.Job)) {
		is := keyTable[key]
		if c.old && !is.old || !c.old && !is.new {
			c.fail(http.StatusBadRequest, 9001, fmt.Sprintf("Unknown key %q", key))
			return
		}
		value := c.value(c.asked.Job[key])
		switch {
		case is.option == "":
		case key == "no_requeue" && value == "true", key == "requeue" && value == "false":
			b.args = append(b.args, "--no-requeue")
		case is.option == "no-requeue":
			c.fail(http.StatusBadRequest, 9001, "a pilot that would run again")
			return
		case is.option == "mem":
			b.args = append(b.args, "--mem="+value+"M")
		default:
			b.args = append(b.args, "--"+is.option+"="+strings.TrimPrefix(value, "gres/"))
		}
	}
	env, err := c.environment()
	if err != nil {
		c.fail(http.StatusBadRequest, 2127, err.Error())
		return
	}
	jobs, next := len(s.Jobs), s.Next
	if b.sbatch(s); b.code != 0 {
		lines := strings.Split(strings.TrimSpace(b.err.String()), "\n")
		_, text, _ := strings.Cut(lines[len(lines)-1], "failed: ")
		c.fail(http.StatusInternalServerError, 2014, cmp.Or(text, lines[len(lines)-1]))
		return
	}
	s.Jobs[jobs].Env = env
	c.body["job_id"], c.body["step_id"] = next, "BATCH"
}

// value is what was given for a key, as sbatch would have it. New versions have numbers as objects alone.
func (c *call) value(v any) string {
	switch v := v.(type) {
	case map[string]any:
		return fmt.Sprint(v["number"])
	case []any:
		words := make([]string, len(v))
		for i := range v {
			words[i] = fmt.Sprint(v[i])
		}
		return strings.Join(words, ",")
	}
	return fmt.Sprint(v)
}

// environment is a job's: an object in v0.0.38, a list in others.
func (c *call) environment() (env []string, err error) {
	switch v := c.asked.Job["environment"].(type) {
	case map[string]any:
		if !c.old {
			return nil, fmt.Errorf("environment: %s has a list", c.version)
		}
		for _, k := range slices.Sorted(maps.Keys(v)) {
			env = append(env, fmt.Sprint(k, "=", v[k]))
		}
	case []any:
		if c.old {
			return nil, fmt.Errorf("environment: %s has an object", c.version)
		}
		for _, e := range v {
			env = append(env, fmt.Sprint(e))
		}
	}
	if len(env) == 0 {
		return nil, fmt.Errorf("environment must be set")
	}
	return env, nil
}
