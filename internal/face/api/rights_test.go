package api_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/reflect/protoreflect"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/edge/config"
	"sluice.dev/sluice/internal/edge/users"
	"sluice.dev/sluice/internal/face/api"
	"sluice.dev/sluice/internal/face/api/apitest"
	"sluice.dev/sluice/internal/host"
)

// people are the users of a daemon with their tokens: ada owns job hers and submits to research, bob to research too, eve is an operator
// who submits to teaching, ann an admin, and root the daemon's own, without a token.
type people struct {
	*apitest.Fake
	*users.Users
	url   string
	token map[string]string
}

const secret = "said-to-stderr"

func populated(t *testing.T, o api.Options, wrap ...func(*apitest.Fake) api.Service) *people {
	t.Helper()
	p := &people{Fake: apitest.New(), token: map[string]string{"root": o.Token}}
	p.QueueList = []status.Queue{{Queue: protocol.Queue{Name: "research"}}, {Queue: protocol.Queue{Name: "teaching"}}}
	history := []status.Subjob{{Token: job.Token{Epoch: 1, Seq: 42}, Outcome: "failed", Detail: secret}}
	jobs, err := config.ParseJobs("f", fmt.Appendf(nil, jobFile, "hers", ", queue: research, env: {KEY: "+secret+"}"))
	if err != nil {
		t.Fatal(err)
	}
	jobs[0].Spec.Owner = "ada"
	p.Set(status.Job{Name: "hers", Queue: "research", Kind: job.Items, State: job.Failed, Total: 1, History: history, Spec: jobs[0].Spec,
		Reason: "3 times in a row its subjobs ended without progress: " + secret})
	if p.Users, err = users.Open(users.Options{Dir: filepath.Join(t.TempDir(), "users"), Own: "root"}); err != nil {
		t.Fatal(err)
	}
	for _, u := range []users.Person{{Name: "ada", Role: users.User, Queues: []string{"research"}},
		{Name: "bob", Role: users.User, Queues: []string{"research"}}, {Name: "eve", Role: users.Operator, Queues: []string{"teaching"}},
		{Name: "ann", Role: users.Admin}} {
		if p.token[u.Name], err = p.Add(u); err != nil {
			t.Fatal(err)
		}
	}
	o.Service, o.Users, o.Self = p.Fake, p.Users, "root"
	for _, w := range wrap {
		o.Service = w(p.Fake)
	}
	p.url, _ = serve(t, o)
	return p
}

// call calls a procedure with a token and returns the code of the error, empty for none, and all that was answered.
func (p *people) call(t *testing.T, token, procedure, body string, streams bool) (code, text string) {
	t.Helper()
	kind, sent := "application/json", []byte(body)
	if streams {
		kind, sent = "application/connect+json", append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(body))), body...)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.url+"/"+procedure, bytes.NewReader(sent))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", kind)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var said struct {
		Code  string
		Error struct{ Code string }
	}
	last := answer
	if i := bytes.LastIndex(answer, []byte(`{"error"`)); streams && i >= 0 {
		last = answer[i:]
	}
	if resp.StatusCode != http.StatusOK || streams {
		_ = json.Unmarshal(last, &said) // what is no JSON has no code
	}
	if said.Code == "" {
		said.Code = said.Error.Code
	}
	return said.Code, string(answer)
}

// TestWhoMayCallWhat: every procedure of every service that is served, by everybody, about the job of one of them.
func TestWhoMayCallWhat(t *testing.T) {
	const all, hers, staff, admins = "ada bob eve ann root", "ada ann root", "eve ann root", "ann root"
	hersOrStaff, about := "ada eve ann root", `{"name": "hers"}`
	file, err := json.Marshal(fmt.Sprintf(jobFile, "new", ", queue: research"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[protoreflect.Name]struct{ who, body string }{
		"Submit": {"ada bob ann root", fmt.Sprintf(`{"job": %s}`, file)}, "DryRun": {"ada bob ann root", fmt.Sprintf(`{"job": %s}`, file)},
		"Cancel": {hersOrStaff, about}, "Requeue": {hersOrStaff, about}, "Delete": {hersOrStaff, about}, "PauseJob": {hersOrStaff, about},
		"ListJobs": {all, "{}"}, "GetJob": {all, about}, "WaitJob": {all, `{"names": ["hers"]}`}, "Explain": {all, about},
		"ListSlices": {all, "{}"}, "ListWindows": {all, "{}"}, "ListQueues": {all, "{}"}, "ListZones": {all, "{}"},
		"ListAirlocks": {all, "{}"}, "History": {all, "{}"}, "About": {all, "{}"},
		"DrainZone": {admins, `{"name": "local-1"}`}, "SetQueue": {staff, `{"queue": {"name": "research"}}`},
		"Reserve": {staff, `{"kind": "DRAIN"}`}, "Unreserve": {staff, `{"id": 7}`}, "Release": {staff, `{"slice": "s"}`},
		"Logs": {hers, about}, "ListOutputs": {hers, about}, "ReadOutput": {hers, about}, "AgentKey": {hers, `{"job": "hers"}`},
		"Negotiate": {all, `{"job": "hers", "key": "5eed"}`}, "ListNodes": {all, "{}"}, "CreateToken": {admins, "{}"},
		"RemoveNode": {admins, `{"name": "m"}`}, "WhoAmI": {all, "{}"}, "ListUsers": {admins, "{}"},
		"AddUser": {admins, `{"name": "new", "role": "ADMIN"}`}, "ReplaceToken": {admins, `{"name": "new"}`},
		"RemoveUser": {admins, `{"name": "new"}`}, "ListProviders": {all, "{}"}, "PauseProvider": {staff, `{"name": "p"}`},
		"ResumeProvider": {staff, `{"name": "p"}`}, "TryProvider": {staff, `{"name": "p"}`},
	}
	p := populated(t, api.Options{})
	closed := populated(t, api.Options{Token: "0123456789abcdef"})
	n := 0
	for _, file := range []protoreflect.FileDescriptor{pb.File_sluice_v1alpha1_service_proto, pb.File_sluice_v1alpha1_node_proto,
		pb.File_sluice_v1alpha1_user_proto, pb.File_sluice_v1alpha1_provider_proto} {
		for i := range file.Services().Len() {
			service := file.Services().Get(i)
			for j := range service.Methods().Len() {
				m := service.Methods().Get(j)
				n++
				w, ok := want[m.Name()]
				if !ok {
					t.Fatalf("%s: this test does not say who may call it", m.FullName())
				}
				path := fmt.Sprintf("%s/%s", service.FullName(), m.Name())
				for _, name := range strings.Fields(all) {
					for _, p := range []*people{p, closed} {
						code, text := p.call(t, p.token[name], path, w.body, m.IsStreamingServer())
						may := slices.Contains(strings.Fields(w.who), name)
						if may == (code == "permission_denied") || code == "unauthenticated" {
							t.Errorf("%s by %s: %s %s", m.Name(), name, code, text)
						} else if !may && name != "root" && !strings.Contains(text, name) && !strings.Contains(text, "yours") {
							t.Errorf("%s by %s: the refusal does not say who calls: %s", m.Name(), name, text)
						}
					}
				}
				for _, token := range []string{"sluice-user-nobodys", "", "x"} {
					code, text := closed.call(t, token, path, w.body, m.IsStreamingServer())
					if (code == "unauthenticated") == (m.Name() == "Negotiate") {
						t.Errorf("%s with token %q: %s %s", m.Name(), token, code, text)
					}
				}
			}
		}
	}
	if n != len(want) {
		t.Errorf("%d procedures are served, %d are known here", n, len(want))
	}
	// Whoever shows a user's token is that user or nobody, also where the kernel names the daemon's own.
	if code, text := p.call(t, "sluice-user-nobodys", "sluice.v1alpha1.SluiceService/About", "{}", false); code != "unauthenticated" {
		t.Errorf("a token that was removed, shown by the daemon's own user: %s %s", code, text)
	}
}

// TestWhatOthersDoNotSee: what a job has written is in no answer to others, and in those to its owner and admins.
func TestWhatOthersDoNotSee(t *testing.T) {
	p := populated(t, api.Options{}, func(f *apitest.Fake) api.Service { return telling{f} })
	for _, c := range []struct{ method, body string }{
		{"ListJobs", "{}"}, {"GetJob", `{"name": "hers"}`}, {"WaitJob", `{"names": ["hers"]}`}, {"Explain", `{"name": "hers"}`},
	} {
		for name, token := range p.token {
			code, text := p.call(t, token, "sluice.v1alpha1.SluiceService/"+c.method, c.body, false)
			sees := name == "ada" || name == "ann" || name == "root"
			if code != "" || !strings.Contains(text, `"owner":"ada"`) || strings.Contains(text, secret) != sees ||
				!strings.Contains(text, "ended without progress") {
				t.Errorf("%s by %s: %s %s", c.method, name, code, text)
			}
		}
	}
	for body, n := range map[string]int{`{"owner": "ada"}`: 1, `{"mine": true}`: 0, `{"owner": "bob"}`: 0, "{}": 4} {
		_, text := p.call(t, p.token["bob"], "sluice.v1alpha1.SluiceService/ListJobs", body, false)
		if got := strings.Count(text, `"stateCode"`); got != n {
			t.Errorf("%s: %d jobs: %s", body, got, text)
		}
	}
	if code, text := p.call(t, p.token["bob"], "sluice.v1alpha1.SluiceService/ListJobs", `{"mine": true, "owner": "ada"}`,
		false); code != "invalid_argument" {
		t.Error(code, text)
	}
}

// telling explains jobs in words that quote what they have written.
type telling struct{ *apitest.Fake }

func (f telling) Explain(ctx context.Context, name job.ID) (status.Explanation, error) {
	e, err := f.Fake.Explain(ctx, name)
	e.Summary = string(name) + " is FAILED: " + e.Job.Reason
	e.Reasons = []status.Reason{{Text: "pausing for 1s after a subjob without progress: " + secret, Count: 1}}
	return e, err
}

// TestARemovedUsersStreamEnds: what a user follows ends when the token does, and waits for nothing.
func TestARemovedUsersStreamEnds(t *testing.T) {
	p := populated(t, api.Options{})
	for _, c := range []struct {
		end  func() error
		says string
	}{
		{func() error { token, err := p.Replace("ada"); p.token["ada"] = token; return err }, "another token"},
		{func() error { return p.Remove("ada") }, "user ada was removed"},
	} {
		began := make(chan struct{})
		p.FollowLog = func(ctx context.Context, _ host.LogFollow, tell func(host.LogPiece) error) error {
			if err := tell(host.LogPiece{Data: []byte("x")}); err != nil {
				return err
			}
			close(began)
			<-ctx.Done()
			return context.Cause(ctx)
		}
		done := make(chan string, 1)
		token := p.token["ada"]
		go func() {
			code, text := p.call(t, token, "sluice.v1alpha1.SluiceService/Logs", `{"name": "hers", "follow": true}`, true)
			done <- code + " " + text
		}()
		<-began
		if err := c.end(); err != nil {
			t.Fatal(err)
		}
		select {
		case got := <-done:
			if !strings.HasPrefix(got, "unauthenticated ") || !strings.Contains(got, c.says) {
				t.Errorf("it ended with %s", got)
			}
		case <-time.After(time.Minute):
			t.Fatal("it goes on")
		}
		if code, _ := p.call(t, token, "sluice.v1alpha1.SluiceService/About", "{}", false); code != "unauthenticated" {
			t.Errorf("a new call: %s", code)
		}
	}
}

// TestANameThatChangesHands: whoever follows a job is told nothing of another user's that gets its name.
func TestANameThatChangesHands(t *testing.T) {
	p := populated(t, api.Options{})
	p.FollowLog = func(_ context.Context, _ host.LogFollow, tell func(host.LogPiece) error) error {
		if err := tell(host.LogPiece{Token: job.Token{Epoch: 1, Seq: 1}, Data: []byte("hers")}); err != nil {
			return err
		}
		p.Set(status.Job{Name: "hers", Spec: &job.Spec{Owner: "bob"}})
		return tell(host.LogPiece{Token: job.Token{Epoch: 1, Seq: 2}, Data: []byte("his")})
	}
	code, text := p.call(t, p.token["ada"], "sluice.v1alpha1.SluiceService/Logs", `{"name": "hers", "follow": true}`, true)
	// Bytes are base64 in JSON.
	if code != "permission_denied" || !strings.Contains(text, "aGVycw==") || strings.Contains(text, "aGlz") {
		t.Error(code, text)
	}
}

// handing is a service in which job hers becomes another user's while it is asked for what that has.
type handing struct{ *apitest.Fake }

func (f handing) change() { f.Set(status.Job{Name: "hers", Spec: &job.Spec{Owner: "bob"}}) }

func (f handing) Outputs(ctx context.Context, name job.ID) ([]status.Output, error) {
	f.change()
	return f.Fake.Outputs(ctx, name)
}

func (f handing) AgentKey(ctx context.Context, name job.ID) (string, error) {
	f.change()
	return f.Fake.AgentKey(ctx, name)
}

// TestAJobThatBecomesAnothersMeanwhile: what is looked up by a name is told to whom it belongs to then, not to whoever had the name before.
func TestAJobThatBecomesAnothersMeanwhile(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "o"), []byte("his"), 0o600); err != nil {
		t.Fatal(err)
	}
	for method, body := range map[string]string{"ReadOutput": `{"name": "hers"}`, "ListOutputs": `{"name": "hers"}`,
		"AgentKey": `{"job": "hers"}`} {
		p := populated(t, api.Options{}, func(f *apitest.Fake) api.Service { return handing{f} })
		p.OutputList = []status.Output{{Token: job.Token{Epoch: 1, Seq: 2}, Path: dir, Files: []string{"o"}}}
		for who, denied := range map[string]bool{"ada": true, "ann": false} {
			code, text := p.call(t, p.token[who], "sluice.v1alpha1.SluiceService/"+method, body, method == "ReadOutput")
			if (code == "permission_denied") != denied || denied && (strings.Contains(text, "aGlz") || strings.Contains(text, dir) ||
				strings.Contains(text, "5eed")) {
				t.Errorf("%s by %s: %s %s", method, who, code, text)
			}
			p.Set(status.Job{Name: "hers", Spec: &job.Spec{Owner: "ada"}})
		}
	}
}

// TestQueuesOfAUser: a file with a job for another queue is refused whole, and says which; so is another life in a queue that is
// the user's no more.
func TestQueuesOfAUser(t *testing.T) {
	p := populated(t, api.Options{})
	both := fmt.Sprintf(jobFile, "a", ", queue: research") + "---" + fmt.Sprintf(jobFile, "b", ", queue: teaching")
	file, err := json.Marshal(both)
	if err != nil {
		t.Fatal(err)
	}
	for _, method := range []string{"Submit", "DryRun"} {
		code, text := p.call(t, p.token["ada"], "sluice.v1alpha1.SluiceService/"+method, fmt.Sprintf(`{"job": %s}`, file), false)
		if code != "permission_denied" || !strings.Contains(text, "b: spec.queue: you are user ada (role user) and may not submit to "+
			"queue teaching; you may to research") {
			t.Error(method, code, text)
		}
	}
	if len(p.Calls()) != 0 {
		t.Errorf("it changed something: %v", p.Calls())
	}
	p.Set(status.Job{Name: "moved", Queue: "teaching", State: job.Failed, Spec: &job.Spec{Owner: "ada", Queue: "teaching"}})
	code, text := p.call(t, p.token["ada"], "sluice.v1alpha1.SluiceService/Requeue", `{"name": "moved"}`, false)
	if code != "permission_denied" || !strings.Contains(text, "not submit to it any more") {
		t.Error(code, text)
	}
}

// TestWhomAQueueRunsAs is chosen by admins; what else a queue has, by operators too.
func TestWhomAQueueRunsAs(t *testing.T) {
	p := populated(t, api.Options{})
	p.QueueList[0].Queue.User = "nobody"
	for _, c := range []struct{ who, body, code string }{
		{"eve", `{"queue": {"name": "research", "weight": 3, "user": "nobody"}}`, ""},
		{"eve", `{"queue": {"name": "research", "user": "root"}}`, "permission_denied"},
		{"eve", `{"queue": {"name": "research"}}`, "permission_denied"},
		{"eve", `{"queue": {"name": "other", "user": "nobody"}}`, "permission_denied"},
		{"ann", `{"queue": {"name": "research", "user": "daemon"}}`, ""},
	} {
		if code, text := p.call(t, p.token[c.who], "sluice.v1alpha1.SluiceService/SetQueue", c.body, false); code != c.code {
			t.Errorf("%s by %s: %s %s", c.body, c.who, code, text)
		}
	}
}

func TestUsersByTheAPI(t *testing.T) {
	p := populated(t, api.Options{})
	call := func(who, method, body string) (code, text string) {
		return p.call(t, p.token[who], "sluice.v1alpha1.UserService/"+method, body, false)
	}
	for _, c := range []struct{ who, method, body, code, says string }{
		{"root", "WhoAmI", "{}", "", `"name":"root","role":"ADMIN"`},
		{"ada", "WhoAmI", "{}", "", `"name":"ada","role":"USER","queues":["research"]`},
		{"ann", "AddUser", `{"name": "kim", "role": "USER", "queues": ["reserch", "teaching"]}`, "not_found",
			`there is no queue \"reserch\"; choose of: research, teaching`},
		{"ann", "AddUser", `{"name": "Kim", "queues": ["reserch"]}`, "invalid_argument", "reserch"},
		{"ann", "AddUser", `{"name": "root", "role": "ADMIN"}`, "invalid_argument", "whom this daemon runs as"},
		{"ann", "AddUser", `{"name": "kim", "role": "USER", "queues": ["teaching"]}`, "", `"token":"sluice-user-`},
		{"ann", "AddUser", `{"name": "kim", "role": "ADMIN"}`, "already_exists", "sluice user token kim"},
		{"root", "ListUsers", "{}", "", `"name":"kim","role":"USER","queues":["teaching"],"since":"2`},
		{"root", "ReplaceToken", `{"name": "kim"}`, "", `"token":"sluice-user-`},
		{"root", "RemoveUser", `{"name": "kim"}`, "", "{}"},
		{"root", "RemoveUser", `{"name": "kim"}`, "not_found", "kim"},
	} {
		if code, text := call(c.who, c.method, c.body); code != c.code || !strings.Contains(text, c.says) {
			t.Errorf("%s %s by %s: %s %s", c.method, c.body, c.who, code, text)
		}
	}
	url, _ := serve(t, api.Options{Service: apitest.New()})
	none := &people{url: url}
	for _, method := range []string{"ListUsers", "AddUser", "ReplaceToken", "RemoveUser"} {
		if code, text := none.call(t, "", "sluice.v1alpha1.UserService/"+method, "{}", false); code != connect.CodeUnimplemented.String() {
			t.Error(method, code, text)
		}
	}
	if code, text := none.call(t, "", "sluice.v1alpha1.UserService/WhoAmI", "{}", false); code != "" || !strings.Contains(text, "ADMIN") {
		t.Error(code, text)
	}
}

// TestWhereUsersCall: a daemon with users may be reached from elsewhere without a token of its own, one that serves its own user alone not.
func TestWhereUsersCall(t *testing.T) {
	for _, single := range []bool{false, true} {
		u, err := users.Open(users.Options{Dir: t.TempDir(), Own: "root", Single: single})
		if err != nil {
			t.Fatal(err)
		}
		_, err = api.Listen(api.Options{Service: apitest.New(), Users: u, Listen: "0.0.0.0:0", CertFile: "none", KeyFile: "none"})
		if got := strings.Contains(err.Error(), "give a --token"); got != single || errkind.Of(err) != errkind.Invalid {
			t.Errorf("single %v: %v", single, err)
		}
	}
	p := populated(t, api.Options{})
	// Whom the kernel names must call this machine by its own name; who shows a token may have any for it.
	for name, want := range map[string]int{"": http.StatusForbidden, "ada": http.StatusOK} {
		if got, text := post(t, p.url, "About", "{}", "Host", "head.example", "Authorization", "Bearer "+p.token[name]); got != want {
			t.Errorf("%q: %d %s", name, got, text)
		}
	}
}
