package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/config"
	"sluice.dev/sluice/internal/edge/users"
)

// userHandler turns calls of UserService into calls of the daemon's users.
type userHandler struct {
	service Service
	users   *users.Users // nil: this daemon has none
	log     *slog.Logger
	now     func() time.Time
}

func errNoUsers() error {
	return errkind.Errorf(errkind.Unsupported, "this daemon has no users: the head of its cluster has")
}

func userMessage(p *users.Person) *pb.User {
	m := &pb.User{Name: p.Name, Role: pb.Value[pb.User_Role](p.Role.String()), Queues: p.Queues}
	if !p.Since.IsZero() {
		m.Since = timestamppb.New(p.Since)
	}
	return m
}

// WhoAmI is who calls.
func (h *userHandler) WhoAmI(ctx context.Context, _ *connect.Request[pb.WhoAmIRequest]) (*connect.Response[pb.WhoAmIResponse], error) {
	c := users.Of(ctx)
	p := users.Person{Name: c.Name, Role: c.Role, Queues: c.Queues}
	if h.users != nil && !c.Own {
		all := h.users.All()
		if i := slices.IndexFunc(all, func(x users.Person) bool { return x.Name == c.Name }); i >= 0 {
			p.Since = all[i].Since
		}
	}
	return connect.NewResponse(&pb.WhoAmIResponse{User: userMessage(&p)}), nil
}

// ListUsers lists the users.
func (h *userHandler) ListUsers(context.Context, *connect.Request[pb.ListUsersRequest]) (*connect.Response[pb.ListUsersResponse], error) {
	if h.users == nil {
		return nil, wire(errNoUsers())
	}
	return connect.NewResponse(&pb.ListUsersResponse{Users: each(h.users.All(), userMessage)}), nil
}

// AddUser adds a user.
func (h *userHandler) AddUser(ctx context.Context, r *connect.Request[pb.AddUserRequest]) (*connect.Response[pb.AddUserResponse], error) {
	if h.users == nil {
		return nil, wire(errNoUsers())
	}
	m := r.Msg
	p := users.Person{Name: m.GetName(), Queues: m.GetQueues(), Since: h.now()}
	if m.GetRole() != pb.User_ROLE_UNSPECIFIED {
		role, err := users.ParseRole(pb.Word(m.GetRole()))
		if p.Role = role; err != nil {
			return nil, wire(err)
		}
	}
	if err := h.wrong(ctx, &p); err != nil {
		return nil, wire(err)
	}
	token, err := h.users.Add(p)
	h.note(ctx, "a user was added", err, "user", p.Name, "role", p.Role.String(), "queues", strings.Join(p.Queues, ","))
	return answer(&pb.AddUserResponse{Token: token}, err)
}

// wrong says all that is wrong with who is to be added.
func (h *userHandler) wrong(ctx context.Context, p *users.Person) error {
	list, err := h.service.Queues(ctx)
	if err != nil {
		return err
	}
	have := make([]string, len(list))
	for i := range list {
		have[i] = list[i].Queue.Name
	}
	err = h.users.Check(*p)
	kind := errkind.Of(err)
	for _, q := range p.Queues {
		if q != config.DefaultQueue && !slices.Contains(have, q) { // the default one is there, and listed once it was set or used
			err = errors.Join(err, fmt.Errorf("queues: there is no queue %.80q; choose of: %s", q, strings.Join(have, ", ")))
			if kind == errkind.Unknown {
				kind = errkind.NotFound
			}
		}
	}
	if err != nil {
		return errkind.Errorf(kind, "%w", err)
	}
	return nil
}

// note logs a change of the users, and by whom.
func (h *userHandler) note(ctx context.Context, what string, err error, args ...any) {
	if err == nil {
		h.log.Info(what, append(args, "by", users.Of(ctx).Name)...)
	}
}

// ReplaceToken gives a user another token.
func (h *userHandler) ReplaceToken(ctx context.Context, r *connect.Request[pb.ReplaceTokenRequest]) (
	*connect.Response[pb.ReplaceTokenResponse], error) {
	if h.users == nil {
		return nil, wire(errNoUsers())
	}
	token, err := h.users.Replace(r.Msg.GetName())
	h.note(ctx, "a user has another token", err, "user", r.Msg.GetName())
	return answer(&pb.ReplaceTokenResponse{Token: token}, err)
}

// RemoveUser removes a user.
func (h *userHandler) RemoveUser(ctx context.Context, r *connect.Request[pb.RemoveUserRequest]) (*connect.Response[pb.RemoveUserResponse],
	error) {
	if h.users == nil {
		return nil, wire(errNoUsers())
	}
	err := h.users.Remove(r.Msg.GetName())
	h.note(ctx, "a user was removed", err, "user", r.Msg.GetName())
	return answer(&pb.RemoveUserResponse{}, err)
}
