package cli

import (
	"bytes"
	"encoding/json"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/edge/config"
	"sluice.dev/sluice/internal/edge/users"
	"sluice.dev/sluice/internal/face/api"
	"sluice.dev/sluice/internal/face/api/apitest"
	"sluice.dev/sluice/internal/face/cli/session"
)

// TestUsers: an admin adds a user, who is known by the token that was printed, sees their own jobs, and is told what is not theirs.
func TestUsers(t *testing.T) {
	t.Parallel()
	f := apitest.New()
	f.QueueList = []status.Queue{{Queue: protocol.Queue{Name: "research"}}}
	jobs, err := config.ParseJobs("f", []byte("{apiVersion: sluice.dev/v1alpha1, kind: Job, metadata: {name: hers}, spec: {queue: "+
		"research, items: {total: 1, perItem: 1s}, memory: 1Mi, command: [x]}}"))
	if err != nil {
		t.Fatal(err)
	}
	jobs[0].Spec.Owner = "ada"
	f.Set(status.Job{Name: "hers", Queue: "research", Kind: job.Items, Total: 1, Unit: "item", Spec: jobs[0].Spec})
	u, err := users.Open(users.Options{Dir: filepath.Join(t.TempDir(), "users"), Own: "root"})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(api.Handler(api.Options{Service: f, Now: apitest.Now, Users: u, Self: "root"}))
	t.Cleanup(s.Close)
	call := func(token string, args ...string) (out, errs string, code int) {
		var said, failed bytes.Buffer
		code = Run(t.Context(), Deps{Args: args, Options: session.Options{Out: &said, Err: &failed, Now: apitest.Now, Patience: -1,
			Getenv: func(k string) string {
				return map[string]string{"SLUICE_SERVER": strings.TrimPrefix(s.URL, "http://"), "SLUICE_TOKEN": token}[k]
			}}})
		return said.String(), failed.String(), code
	}
	must := func(token string, args ...string) string {
		t.Helper()
		out, errs, code := call(token, args...)
		if code != 0 {
			t.Fatalf("%v: %d %s", args, code, errs)
		}
		return out
	}
	ada := strings.TrimSpace(must("", "user", "add", "ada", "--queue", "research", "-q"))
	if !users.IsToken(ada) {
		t.Fatalf("-q prints %q", ada)
	}
	text := must("", "user", "add", "eve", "--role", "operator")
	if !strings.HasPrefix(text, "user eve added, role operator; the token is printed once:\n  SLUICE_TOKEN=sluice-user-") ||
		!strings.HasSuffix(text, " sluice --server "+strings.TrimPrefix(s.URL, "http://")+" user whoami\n") {
		t.Errorf("it prints %s", text)
	}
	var made struct{ Name, Token string }
	if err := json.Unmarshal([]byte(must("", "user", "token", "eve", "-o", "json")), &made); err != nil || made.Name != "eve" {
		t.Errorf("%+v, %v", made, err)
	}
	for _, c := range []struct {
		token string
		args  string
		says  string
	}{
		{"", "user list", "NAME  ROLE      QUEUES    SINCE\nada   user      research  12:00:00\neve   operator  -         12:00:00\n"},
		{"", "user whoami", "root  admin  all     -"},
		{ada, "user whoami", "ada   user  research  12:00:00"},
		{made.Token, "user whoami -o json", `"role": "operator"`},
		{ada, "jobs --mine -o name", "hers\n"},
		{"", "jobs --user ada -o name", "hers\n"},
		{"", "jobs -o wide --user ada", "hers  research  ada    items"},
		{"", "job hers", "owner       ada"},
		{"", "jobs --user bob", "no jobs"},
	} {
		if out := must(c.token, strings.Fields(c.args)...); !strings.Contains(out, c.says) {
			t.Errorf("%s prints\n%s, want %q", c.args, out, c.says)
		}
	}
	for _, c := range []struct {
		token string
		args  string
		code  int
		says  string
	}{
		{"", "user add ada --queue research", command.ExitFailed, "sluice user token ada"},
		{"", "user add bob --queue reserch", command.ExitFailed, `there is no queue "reserch"`},
		{"", "user add bob", command.ExitUsage, "at least one to submit to (--queue)"},
		{"", "user add bob --role king", command.ExitUsage, `--role "king": want user, operator, admin`},
		{"", "jobs --user bob --mine", command.ExitUsage, "want one of them"},
		{ada, "user list", command.ExitFailed, "ListUsers is for admins, and you are user ada (role user)"},
		{ada, "logs count-words", command.ExitFailed, "of nobody who is known, and you are user ada (role user)"},
		{made.Token, "logs hers", command.ExitFailed, "of user ada, and you are user eve (role operator)"},
		{"sluice-user-x", "jobs", command.ExitFailed, "this token is nobody's"},
		{"", "user remove nobody", command.ExitFailed, `nobody: there is no user "nobody"`},
	} {
		if out, errs, code := call(c.token, strings.Fields(c.args)...); code != c.code || !strings.Contains(errs, c.says) {
			t.Errorf("%s: %d %s%s, want %d and %q", c.args, code, out, errs, c.code, c.says)
		}
	}
	if out := must("", "user", "remove", "ada", "eve"); out != "ada removed\neve removed\n" {
		t.Errorf("it prints %s", out)
	}
	if out := must("", "user", "list"); !strings.Contains(out, "no users") {
		t.Errorf("it prints %s", out)
	}
	if _, errs, code := call(ada, "jobs"); code != command.ExitFailed || !strings.Contains(errs, "nobody's") {
		t.Errorf("after that: %d %s", code, errs)
	}
}
