package users

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/executor/shim/durable"
)

var since = time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)

func open(t *testing.T, dir string) *Users {
	t.Helper()
	u, err := Open(Options{Dir: dir, Own: "root"})
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func add(t *testing.T, u *Users, name string, role Role, queues ...string) (token string) {
	t.Helper()
	token, err := u.Add(Person{Name: name, Role: role, Queues: queues, Since: since})
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func refuses(t *testing.T, err error, kind errkind.Kind, says ...string) {
	t.Helper()
	if err == nil || errkind.Of(err) != kind {
		t.Errorf("%v, want an error of kind %v", err, kind)
		return
	}
	for _, s := range says {
		if !strings.Contains(err.Error(), s) {
			t.Errorf("%v does not say %q", err, s)
		}
	}
}

// A user is known by the token alone, also to the next daemon; the file has no token.
func TestAUserIsKnownByTheToken(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "users")
	u := open(t, dir)
	if _, err := os.Stat(dir); err == nil {
		t.Error("a daemon without users makes their directory")
	}
	ada := add(t, u, "ada", User, "research", "teaching")
	eve := add(t, u, "eve", Operator)
	if !IsToken(ada) || ada == eve {
		t.Errorf("tokens %q and %q", ada, eve)
	}
	for range 2 {
		c, gone, err := u.Caller(ada)
		if err != nil || gone.Err() != nil || c.Name != "ada" || c.Role != User || c.Own || !c.Submits("teaching") || c.Submits("other") {
			t.Fatalf("ada calls as %+v, %v", c, err)
		}
		if a := c.Asker(); a != (protocol.Asker{Name: "ada", Own: true}) || !c.Reads("ada") || c.Reads("eve") || c.Reads("") {
			t.Errorf("ada asks as %+v", a)
		}
		c, _, err = u.Caller(eve)
		if err != nil || c.Asker() != (protocol.Asker{Name: "eve"}) || c.Submits("research") || c.Reads("ada") {
			t.Fatalf("eve calls as %+v, %v", c, err)
		}
		for _, no := range []string{"", "sluice-user-", ada + "x", ada[:len(ada)-1], strings.ToUpper(ada)} {
			_, _, err = u.Caller(no)
			refuses(t, err, errkind.Denied, "nobody's")
		}
		want := []Person{{"ada", User, []string{"research", "teaching"}, since}, {"eve", Operator, nil, since}}
		if got := u.All(); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("listed as %+v", got)
		}
		u = open(t, dir)
	}
	text, err := os.ReadFile(filepath.Join(dir, usersFile))
	info, bad := os.Stat(filepath.Join(dir, usersFile))
	if errors.Join(err, bad) != nil || strings.Contains(string(text), ada) || info.Mode().Perm() != 0o600 {
		t.Errorf("the file, of mode %v: %s", info.Mode(), text)
	}
}

// What a token began ends with it: with its user, and where another takes its place.
func TestWhatATokenBeganEndsWithIt(t *testing.T) {
	u := open(t, filepath.Join(t.TempDir(), "users"))
	first := add(t, u, "ada", User, "q")
	_, gone, _ := u.Caller(first)
	second, err := u.Replace("ada")
	if err != nil || second == first {
		t.Fatal(second, err)
	}
	refuses(t, context.Cause(gone), errkind.Denied, "another token")
	_, _, err = u.Caller(first)
	refuses(t, err, errkind.Denied)
	c, gone, err := u.Caller(second)
	if err != nil || c.Name != "ada" || !c.Submits("q") {
		t.Fatalf("by another token %+v, %v", c, err)
	}
	if err := u.Remove("ada"); err != nil {
		t.Fatal(err)
	}
	refuses(t, context.Cause(gone), errkind.Denied, "ada was removed")
	_, _, err = u.Caller(second)
	refuses(t, err, errkind.Denied)
	refuses(t, u.Remove("ada"), errkind.NotFound, `"ada"`, "user list")
	_, err = u.Replace("ada")
	refuses(t, err, errkind.NotFound)
	refuses(t, u.Remove("root"), errkind.NotFound, "the daemon's own")
}

func TestWhoCanNotBeAdded(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "users")
	u := open(t, dir)
	add(t, u, "ada", User, "q")
	for _, c := range []struct {
		p    Person
		kind errkind.Kind
		says []string
	}{
		{Person{Name: "ada", Role: Admin}, errkind.Exists, []string{"sluice user token ada", "remove"}},
		{Person{Name: "root", Role: Admin}, errkind.Invalid, []string{"whom this daemon runs as"}},
		{Person{Name: "Ada L", Role: Admin}, errkind.Invalid, []string{`name: is "Ada L"`}},
		{Person{Name: "bob"}, errkind.Invalid, []string{"role: is missing; want user, operator, admin"}},
		{Person{Name: "bob", Role: User}, errkind.Invalid, []string{"at least one to submit to (--queue)"}},
		{Person{Name: "bob", Role: Admin, Queues: []string{"q"}}, errkind.Invalid, []string{"an admin submits to any"}},
		{Person{Role: User, Queues: []string{"q", "q", "a b"}}, errkind.Invalid, []string{"name: is", "q is named twice", `"a b"`}},
		{Person{Name: "bob", Role: User, Queues: make([]string, 101)}, errkind.Invalid, []string{"there are 101"}},
	} {
		_, err := u.Add(c.p)
		refuses(t, err, c.kind, c.says...)
	}
	single, err := Open(Options{Dir: dir, Own: "root", Single: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []Person{{Name: "bob", Role: User}, {Name: "bob", Role: User, Queues: []string{"q"}},
		{Name: "bob", Role: Operator, Queues: []string{"q"}}} {
		_, err = single.Add(p)
		refuses(t, err, errkind.Denied, "single-user mode", "as root", "operator without queues")
	}
	if c, _, err := single.Caller(add(t, single, "eve", Operator)); err != nil || c.Name != "eve" {
		t.Errorf("an operator in single-user mode: %+v, %v", c, err)
	}
	// An operator who may submit is of before, when there were several users.
	kim := add(t, u, "kim", Operator, "q")
	if single, err = Open(Options{Dir: dir, Own: "root", Single: true}); err != nil {
		t.Fatal(err)
	}
	_, _, err = single.Caller(kim)
	refuses(t, err, errkind.Denied, "you are user kim (role operator)", "single-user mode")
	// One from before is not let in, and can be removed.
	token, err := single.Replace("ada")
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = single.Caller(token)
	refuses(t, err, errkind.Denied, "you are user ada (role user)", "single-user mode")
	if err := single.Remove("ada"); err != nil {
		t.Error(err)
	}
}

// What can't be written has not happened, and says what to do.
func TestAFileThatCantBeWritten(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "users")
	u := open(t, dir)
	ada := add(t, u, "ada", User, "q")
	before, _ := os.ReadFile(filepath.Join(dir, usersFile))
	block := filepath.Join(dir, usersFile+".tmp")
	if err := os.MkdirAll(filepath.Join(block, "x"), 0o700); err != nil { // it can't be removed
		t.Fatal(err)
	}
	_, err := u.Add(Person{Name: "bob", Role: Operator})
	refuses(t, err, errkind.Unknown, "keep who the users are", "nothing was changed")
	_, err = u.Replace("ada")
	refuses(t, err, errkind.Unknown)
	refuses(t, u.Remove("ada"), errkind.Unknown)
	if c, gone, err := u.Caller(ada); err != nil || c.Name != "ada" || gone.Err() != nil || len(u.All()) != 1 {
		t.Errorf("afterwards %+v, %v, %+v", c, err, u.All())
	}
	if after, _ := os.ReadFile(filepath.Join(dir, usersFile)); string(after) != string(before) {
		t.Errorf("the file has become %s", after)
	}
	if err := os.RemoveAll(block); err != nil {
		t.Fatal(err)
	}
	add(t, u, "bob", Operator)
}

// Whoever can write to the directory could put another file in it.
func TestADirectoryOfOthers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "users")
	u := open(t, dir)
	add(t, u, "ada", User, "q")
	if err := os.Chmod(dir, 0o770); err != nil {
		t.Fatal(err)
	}
	_, err := u.Add(Person{Name: "bob", Role: Operator})
	refuses(t, err, errkind.Denied, "chmod go-w "+dir, "nothing was changed")
	_, err = Open(Options{Dir: dir, Own: "root"})
	refuses(t, err, errkind.Denied, "chmod go-w "+dir)
	if len(u.All()) != 1 {
		t.Errorf("the users are %+v", u.All())
	}
}

// Before a change is answered the file, and the names that lead to it, outlast a power cut.
func TestAChangeIsDurable(t *testing.T) {
	var synced []string
	durable.OnSync = func(f *os.File) { synced = append(synced, filepath.Base(f.Name())) }
	t.Cleanup(func() { durable.OnSync = nil })
	dir := filepath.Join(t.TempDir(), "users")
	u := open(t, dir)
	above, every := filepath.Base(filepath.Dir(dir)), []string{usersFile + durable.Temporary, "users"}
	for i, change := range []func() error{
		func() error { _, err := u.Add(Person{Name: "ada", Role: Operator}); return err },
		func() error { _, err := u.Replace("ada"); return err },
		func() error { return u.Remove("ada") },
	} {
		synced = nil
		want := every
		if i == 0 { // which makes the directory
			want = append([]string{above}, every...)
		}
		if err := change(); err != nil || !slices.Equal(synced, want) {
			t.Errorf("change %d: %v is synced, want %v, %v", i, synced, want, err)
		}
	}
}

func TestADamagedFile(t *testing.T) {
	whole := filepath.Join(t.TempDir(), "users")
	add(t, open(t, whole), "ada", User, "q")
	text, err := os.ReadFile(filepath.Join(whole, usersFile))
	if err != nil {
		t.Fatal(err)
	}
	user := string(text[strings.Index(string(text), "{\n   \"name\""):strings.LastIndex(string(text), "\n ]")])
	for _, c := range []struct {
		name, text string
		mode       os.FileMode
		kind       errkind.Kind
		says       string
	}{
		{"cut", string(text[:40]), 0o600, errkind.Corrupt, "is damaged"},
		{"empty", "", 0o600, errkind.Corrupt, "is damaged"},
		{"a newer one", `{"version": 2, "users": {}}`, 0o600, errkind.Unsupported, "is of version 2"},
		{"no version", `{"users": []}`, 0o600, errkind.Corrupt, "its version is 0"},
		{"a role that is none", strings.Replace(string(text), `"role": "user"`, `"role": "king"`, 1), 0o600, errkind.Corrupt, "king"},
		{"a hash that is none", strings.Replace(string(text), `"token": "`, `"token": "x`, 1), 0o600, errkind.Corrupt, "hash"},
		{"one twice", strings.Replace(string(text), user, user+","+user, 1), 0o600, errkind.Corrupt, "stands behind"},
		{"a token twice", strings.Replace(string(text), user, user+","+strings.Replace(user, "ada", "bob", 1), 1), 0o600, errkind.Corrupt,
			"has the token of another"},
		{"the daemon's own", strings.Replace(string(text), "ada", "root", 1), 0o600, errkind.Conflict, "user remove root"},
		{"others may write", string(text), 0o622, errkind.Denied, "chmod go-w"},
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, usersFile)
		if err := errors.Join(os.WriteFile(path, []byte(c.text), c.mode), os.Chmod(path, c.mode)); err != nil {
			t.Fatal(err)
		}
		_, err := Open(Options{Dir: dir, Own: "root"})
		t.Log(c.name)
		refuses(t, err, c.kind, c.says)
	}
}

// Whatever is done, and whenever the daemon starts anew, a token lets in whom a plain look says, and no other does.
func TestUsersComeAndGo(t *testing.T) {
	parent, n := t.TempDir(), 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		dir := filepath.Join(parent, fmt.Sprint(n))
		u := open(t, dir)
		has, all := map[string]string{}, []string{}
		for range rapid.IntRange(1, 20).Draw(rt, "steps") {
			name := rapid.SampledFrom([]string{"ada", "bob", "eve"}).Draw(rt, "name")
			_, there := has[name]
			var token string
			var err error
			switch rapid.IntRange(0, 3).Draw(rt, "step") {
			case 0:
				token, err = u.Add(Person{Name: name, Role: Operator})
				there = !there
			case 1:
				token, err = u.Replace(name)
			case 2:
				if err = u.Remove(name); err == nil {
					delete(has, name)
				}
			default:
				u, there = open(t, dir), true
			}
			if (err == nil) != there {
				rt.Fatalf("%s: %v", name, err)
			}
			if token != "" {
				has[name], all = token, append(all, token)
			}
			for _, token := range all {
				who := ""
				for name, is := range has {
					if is == token {
						who = name
					}
				}
				if c, _, err := u.Caller(token); (err == nil) != (who != "") || err == nil && c.Name != who {
					rt.Fatalf("a token of %q lets in %+v, %v", who, c, err)
				}
			}
			var listed []string
			for _, p := range u.All() {
				listed = append(listed, p.Name)
			}
			if !slices.Equal(listed, slices.Sorted(maps.Keys(has))) {
				rt.Fatalf("%v are listed, there are %v", listed, has)
			}
		}
	})
}
