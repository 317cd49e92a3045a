package submit

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"connectrpc.com/connect"
	"go.yaml.in/yaml/v3"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/face/cli/session"
)

// explained is the error of a job that a command line has made and whose name another has: in what that one differs, and what to do. Any
// other error stays as it is, and so does one of a job that the caller may not read.
func (s *submission) explained(ctx context.Context, c session.Client, text string, err error) error {
	if s.verb == "" || errkind.Of(err) != errkind.Exists {
		return err
	}
	resp, failed := c.GetJob(ctx, connect.NewRequest(&pb.GetJobRequest{Name: s.name}))
	if failed != nil {
		return err
	}
	what := s.differs(resp.Msg.Job.GetSpec(), text)
	if len(what) == 0 {
		return err
	}
	has := "sluice output " + s.name
	if s.verb == "sweep" {
		has = "sluice sweep results " + s.name
	}
	return errkind.Errorf(errkind.Exists, "a job of that name is there already with other content: %s. Give another --name to begin a new "+
		"one; the same command as then, in the same directory, waits for that one again, and `%s` shows what it has left",
		strings.Join(what, "; "), has)
}

// differs says in what a job that is there is another than this one, which was sent as text; empty: that can't be told.
func (s *submission) differs(there, text string) (what []string) {
	old, ok := keysOf(there)
	own, also := keysOf(text)
	if !ok || !also {
		return nil
	}
	before, now := old["workdir"] != "", s.dir != "" || len(s.beside.extra) > 0
	delete(old, "workdir")
	delete(own, "workdir")
	keys := make([]string, 0, len(own))
	for key, value := range own {
		if other, has := old[key]; !has || other != value {
			keys = append(keys, key)
		}
	}
	for key := range old {
		if _, has := own[key]; !has {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	units := slices.Contains(keys, "items.total")
	for _, key := range keys {
		said := "spec." + key + " is another"
		switch {
		case key == "command":
			said = "the command is another"
		case s.verb == "map" && slices.Contains([]string{"items.total", "adapter.lines.input", "adapter.lines.index",
			"adapter.lines.format", "adapter.lines.header"}, key):
			said = "the input is another"
		case s.verb == "sweep" && units && (key == "items.total" || key == "items.parallelism"):
			said = "the trials are others"
		}
		if !slices.Contains(what, said) {
			what = append(what, said)
		}
	}
	switch {
	case before != now:
		what = append(what, "a work directory goes along with one of them only")
	case len(what) > 0 || !now:
	case s.verb == "sweep" && s.dir == "":
		what = append(what, "the trials are others")
	case s.verb == "sweep":
		what = append(what, "the work directory has changed since, or the trials have")
	case s.dir == "":
		what = append(what, "what goes along is another")
	default:
		what = append(what, "the work directory has changed since")
	}
	return what
}

// keysOf are the keys of the spec of a job file, dotted, with their values.
func keysOf(text string) (keys map[string]string, ok bool) {
	var file struct {
		Spec map[string]any `yaml:"spec"`
	}
	if text == "" || yaml.Unmarshal([]byte(text), &file) != nil {
		return nil, false
	}
	keys = map[string]string{}
	flatten("", file.Spec, keys)
	return keys, true
}

func flatten(at string, from map[string]any, into map[string]string) {
	for key, value := range from {
		if inner, is := value.(map[string]any); is {
			flatten(at+key+".", inner, into)
			continue
		}
		into[at+key] = fmt.Sprintf("%q", fmt.Sprint(value))
		if list, is := value.([]any); is {
			into[at+key] = fmt.Sprintf("%q", list)
		}
	}
}
