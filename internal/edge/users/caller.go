package users

import (
	"context"
	"slices"
	"strings"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/protocol"
)

// Role is what a user may do. A higher one may all that a lower one may.
type Role uint8

const (
	// User submits to the queues that are named for them, and changes and reads their own jobs.
	User Role = iota + 1
	// Operator changes everybody's jobs, queues and what slices are reserved for, and reads nobody else's logs and output.
	Operator
	// Admin may everything, as the daemon's own user does.
	Admin
)

var roleNames = [...]string{User: "user", Operator: "operator", Admin: "admin"}

// String is the role's name for people and in the file.
func (r Role) String() string {
	if int(r) < len(roleNames) && r != 0 {
		return roleNames[r]
	}
	return "unknown"
}

// ParseRole is the role of a name. Errors: Invalid.
func ParseRole(name string) (Role, error) {
	if i := slices.Index(roleNames[:], name); i > 0 {
		return Role(i), nil
	}
	return 0, errkind.Errorf(errkind.Invalid, "role: is %.80q; want %s", name, strings.Join(roleNames[User:], ", "))
}

// Caller is who calls, as found out when the call came in.
type Caller struct {
	// Name that is recorded with jobs.
	Name string
	Role Role
	// Queues that one who is no admin may submit to.
	Queues []string
	// Own: it is the daemon's own user, or whoever has shown the daemon's own token.
	Own bool
}

// Asker is the caller as a gate knows who asks.
func (c *Caller) Asker() protocol.Asker { return protocol.Asker{Name: c.Name, Own: c.Role < Operator} }

// Submits reports whether the caller may submit to a queue.
func (c *Caller) Submits(queue string) bool {
	return c.Role == Admin || slices.Contains(c.Queues, queue)
}

// Reads reports whether the caller may read what a job of this owner writes.
func (c *Caller) Reads(owner string) bool { return c.Role == Admin || c.Name != "" && c.Name == owner }

// Who is the caller for people.
func (c *Caller) Who() string { return "user " + c.Name + " (role " + c.Role.String() + ")" }

type callerKey struct{}

// With is a context in which a caller calls.
func With(ctx context.Context, c *Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// Of is who calls; nil: the daemon itself.
func Of(ctx context.Context) *Caller {
	c, _ := ctx.Value(callerKey{}).(*Caller)
	return c
}
