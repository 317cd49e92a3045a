// Package users says who may call a daemon beside its own user: people with a name, a role and a token each, of which only a hash is kept
// (docs/adr/0067-users.md). It knows no job and no queue's settings, and decides nothing about a call but who makes it.
//
// All of it is one file of the data directory, replaced whole. What is changed is durable before anybody is told.
package users

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/executor/shim/durable"
	"sluice.dev/sluice/internal/edge/versioned"
)

const (
	// usersFile is the file of the directory.
	usersFile = "users.json"
	// prefix begins every token of a user.
	prefix = "sluice-user-"
	// tokenBytes is how much of a token is random.
	tokenBytes = 32
	// mostUsers and mostQueues bound the list, and the queues of one user.
	mostUsers, mostQueues = 10_000, 100
)

// version is that of the file. Any change of what it means raises it, so that an earlier build, which would drop what it doesn't know,
// refuses the file untouched.
const version = 1

// Person is a user as the list shows it.
type Person struct {
	Name   string
	Role   Role
	Queues []string
	// Since is when the user was added.
	Since time.Time
}

// stored is the content of the file. Invariant: the names ascend, and no two tokens are alike.
type stored struct {
	Version int     `json:"version"`
	Users   []entry `json:"users"`
}

// entry is one user as it is kept: of the token only a hash, in hexadecimal.
type entry struct {
	Name   string    `json:"name"`
	Role   string    `json:"role"`
	Queues []string  `json:"queues,omitempty"`
	Token  string    `json:"token"`
	Since  time.Time `json:"since"`
}

// Options of the users of a daemon.
type Options struct {
	// Dir is theirs, made with the first user.
	Dir string
	// Own is the name that the daemon's own user has, which nobody else may have.
	Own string
	// Single: every subjob runs as the daemon's own user, so nobody else may submit.
	Single bool
}

// Users are the users of one daemon. Safe for concurrent use.
type Users struct {
	o Options

	mu   sync.Mutex
	list []entry
	// by are the users by their tokens' hashes.
	by map[string]known
}

// known is a user whose token is good until gone is done.
type known struct {
	caller *Caller
	gone   context.Context //nolint:containedctx // it is what ends the calls of that token, whenever they came
	end    context.CancelCauseFunc
}

// Open reads the users of a directory, which has none if it is not there. The caller holds the lock of the data directory. Errors: Denied
// where others may have written to it, Corrupt where it is damaged, Unsupported where a newer build has written it, Conflict where a user
// has the name of the daemon's own.
func Open(o Options) (*Users, error) {
	u := &Users{o: o, by: map[string]known{}}
	path := filepath.Join(o.Dir, usersFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return u, nil
	}
	if err = errors.Join(err, ours(o.Dir), ours(path)); err != nil {
		return nil, err
	}
	const mend = "restore it from a copy of the data directory; or remove it, and all users must be added again"
	var s stored
	if err = versioned.Decode(path, text, version, version, mend, &s); err != nil {
		return nil, err
	}
	if err = u.take(s.Users); err != nil {
		return nil, versioned.Damaged(path, mend, err)
	}
	if u.find(o.Own) >= 0 {
		return nil, errkind.Errorf(errkind.Conflict, "%s has a user %s, and so is the user called whom this daemon runs as: their jobs "+
			"could not be told apart; run it as another user and `sluice user remove %s`, or remove the file, and all users must be "+
			"added again", path, o.Own, o.Own)
	}
	return u, nil
}

// ours refuses a file or a directory that others may write.
func ours(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if mode := info.Mode().Perm(); mode&0o022 != 0 {
		return errkind.Errorf(errkind.Denied, "%s has mode %04o and may have been written by others, who could make themselves admins: "+
			"look at what is in it, and run chmod go-w %s", path, mode, path)
	}
	return nil
}

// take checks what the file has.
func (u *Users) take(list []entry) error {
	for i := range list {
		e := &list[i]
		role, err := ParseRole(e.Role)
		switch sum, bad := hex.DecodeString(e.Token); {
		case err != nil:
			return fmt.Errorf("user %q: %w", e.Name, err)
		case !job.ValidName(e.Name):
			return fmt.Errorf("user %q: want %s", e.Name, job.NameRule)
		case i > 0 && list[i-1].Name >= e.Name:
			return fmt.Errorf("user %q stands behind user %q", e.Name, list[i-1].Name)
		case bad != nil || len(sum) != sha256.Size:
			return fmt.Errorf("user %q: the hash of the token is none", e.Name)
		case u.by[e.Token].caller != nil:
			return fmt.Errorf("user %q has the token of another", e.Name)
		}
		u.know(e, role)
	}
	u.list = list
	return nil
}

// know lets a user in who shows the token.
func (u *Users) know(e *entry, role Role) {
	gone, end := context.WithCancelCause(context.Background())
	u.by[e.Token] = known{&Caller{Name: e.Name, Role: role, Queues: e.Queues}, gone, end}
}

// find is the index of a name, or -1.
func (u *Users) find(name string) int {
	i, ok := slices.BinarySearchFunc(u.list, name, func(e entry, name string) int { return cmp.Compare(e.Name, name) })
	if !ok {
		return -1
	}
	return i
}

// Single reports whether every subjob runs as the daemon's own user.
func (u *Users) Single() bool { return u.o.Single }

// All are the users, by name.
func (u *Users) All() []Person {
	u.mu.Lock()
	defer u.mu.Unlock()
	out := make([]Person, len(u.list))
	for i := range u.list {
		e := &u.list[i]
		role, _ := ParseRole(e.Role) // it was checked when it was taken
		out[i] = Person{e.Name, role, slices.Clone(e.Queues), e.Since}
	}
	return out
}

// IsToken reports whether a text looks like a user's token.
func IsToken(text string) bool { return strings.HasPrefix(text, prefix) }

// Caller is whose token it is. gone is done when that is good no more, with why as its cause. Errors: Denied.
func (u *Users) Caller(token string) (c *Caller, gone context.Context, err error) {
	u.mu.Lock()
	k := u.by[hashOf(token)]
	u.mu.Unlock()
	switch {
	case k.caller == nil:
		return nil, nil, errkind.Errorf(errkind.Denied, "this token is nobody's: it was replaced by `sluice user token`, its user was "+
			"removed, or it is another daemon's: ask an admin for one")
	case u.o.Single && (k.caller.Role == User || len(k.caller.Queues) > 0):
		return nil, nil, errkind.Errorf(errkind.Denied, "you are %s, and this daemon is in single-user mode: what is submitted runs as "+
			"its own user, so it serves nobody else: ask its admin to start it as root with a user for each queue in --config",
			k.caller.Who())
	}
	return k.caller, k.gone, nil
}

// hashOf is a token's hash. A token is random, so that nothing slower is needed, and no comparison of hashes tells anything.
func hashOf(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// newToken makes a token.
func newToken() string {
	b := make([]byte, tokenBytes)
	_, _ = rand.Read(b) // never fails (package crypto/rand)
	return prefix + base64.RawURLEncoding.EncodeToString(b)
}

// Add adds a user and returns the token, which is nowhere else. Errors: Invalid with all that is wrong, Denied in single-user mode,
// Exists, Exhausted.
func (u *Users) Add(p Person) (token string, err error) {
	if err := u.Check(p); err != nil {
		return "", err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.find(p.Name) >= 0 {
		return "", errkind.Errorf(errkind.Exists, "there is a user %s: `sluice user token %s` gives them another token; to change role or "+
			"queues, remove and add them", p.Name, p.Name)
	}
	if len(u.list) >= mostUsers {
		return "", errkind.Errorf(errkind.Exhausted, "there are %d users, the most that are kept: remove some", mostUsers)
	}
	token = newToken()
	e := entry{Name: p.Name, Role: p.Role.String(), Queues: slices.Clone(p.Queues), Token: hashOf(token), Since: p.Since.UTC()}
	next := append(slices.Clone(u.list), e)
	slices.SortFunc(next, func(a, b entry) int { return cmp.Compare(a.Name, b.Name) })
	if err := u.keep(next); err != nil {
		return "", err
	}
	u.know(&e, p.Role)
	return token, nil
}

// Check says all that is wrong with who is to be added, but that there is one of that name.
func (u *Users) Check(p Person) error {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	switch {
	case !job.ValidName(p.Name):
		wrong("name: is %.80q; want %s", p.Name, job.NameRule)
	case p.Name == u.o.Own:
		wrong("name: %s is the user whom this daemon runs as, who is an admin already; choose another name", p.Name)
	}
	if p.Role < User || p.Role > Admin {
		wrong("role: is missing; want %s", strings.Join(roleNames[User:], ", "))
	}
	if len(p.Queues) > mostQueues {
		wrong("queues: there are %d; want at most %d", len(p.Queues), mostQueues)
		p.Queues = nil
	}
	for i, q := range p.Queues {
		if !job.ValidName(q) {
			wrong("queues: %.80q is no queue's name; want %s", q, job.NameRule)
		} else if slices.Contains(p.Queues[:i], q) {
			wrong("queues: %s is named twice", q)
		}
	}
	switch {
	case p.Role == Admin && len(p.Queues) > 0:
		wrong("queues: an admin submits to any; leave them out")
	case p.Role == User && len(p.Queues) == 0 && !u.o.Single:
		wrong("queues: a user needs at least one to submit to (--queue)")
	}
	if err := errors.Join(errs...); err != nil {
		return errkind.Errorf(errkind.Invalid, "%w", err)
	}
	if u.o.Single && (p.Role == User || len(p.Queues) > 0) {
		return errkind.Errorf(errkind.Denied, "user %s: this daemon is in single-user mode: what is submitted runs as its own user, so "+
			"nobody else may submit: start it as root with a user for each queue in --config; or make them an operator without queues, "+
			"who submits nothing", p.Name)
	}
	return nil
}

// Replace gives a user another token; what comes by the one before is refused, and calls by it end. Errors: NotFound, Exhausted.
func (u *Users) Replace(name string) (token string, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	i := u.find(name)
	if i < 0 {
		return "", u.noSuch(name)
	}
	role, _ := ParseRole(u.list[i].Role) // it was checked when it was taken
	was := u.list[i].Token
	next := slices.Clone(u.list)
	token = newToken()
	next[i].Token = hashOf(token)
	if err := u.keep(next); err != nil {
		return "", err
	}
	u.forget(was, errkind.Errorf(errkind.Denied, "user %s has another token now, and the one of this call is good no more", name))
	u.know(&next[i], role)
	return token, nil
}

// Remove removes a user: the token is refused, and calls by it end. The jobs stay. Errors: NotFound, Exhausted.
func (u *Users) Remove(name string) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	i := u.find(name)
	if i < 0 {
		return u.noSuch(name)
	}
	was := u.list[i].Token
	if err := u.keep(slices.Delete(slices.Clone(u.list), i, i+1)); err != nil {
		return err
	}
	u.forget(was, errkind.Errorf(errkind.Denied, "user %s was removed", name))
	return nil
}

// forget refuses a token from now on, and ends what came by it.
func (u *Users) forget(hash string, why error) {
	u.by[hash].end(why)
	delete(u.by, hash)
}

func (u *Users) noSuch(name string) error {
	if name == u.o.Own {
		return errkind.Errorf(errkind.NotFound, "user %s is the daemon's own, an admin who needs no token; `sluice user list` lists the "+
			"others", name)
	}
	return errkind.Errorf(errkind.NotFound, "there is no user %.80q; `sluice user list` lists them", name)
}

// keep makes a list durable, and has it then. Called with mu held.
func (u *Users) keep(list []entry) error {
	text, err := json.MarshalIndent(stored{version, list}, "", " ")
	if err != nil {
		return err
	}
	if err = u.write(append(text, '\n')); err != nil {
		kind := errkind.Of(err)
		if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
			kind = errkind.Exhausted
		}
		return errkind.Errorf(kind, "keep who the users are: %w; nothing was changed", err)
	}
	u.list = list
	return nil
}

func (u *Users) write(text []byte) error {
	switch err := os.Mkdir(u.o.Dir, 0o700); {
	case err == nil:
		if err = durable.SyncDirectory(filepath.Dir(u.o.Dir)); err != nil {
			return err
		}
	case !errors.Is(err, fs.ErrExist):
		return err
	}
	if err := ours(u.o.Dir); err != nil {
		return err
	}
	return durable.Replace(filepath.Join(u.o.Dir, usersFile), text, 0o600)
}
