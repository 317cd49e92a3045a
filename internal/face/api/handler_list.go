package api

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"

	"connectrpc.com/connect"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/edge/users"
)

// ListJobs lists one page of jobs without their histories.
func (h *handler) ListJobs(ctx context.Context, r *connect.Request[pb.ListJobsRequest]) (*connect.Response[pb.ListJobsResponse], error) {
	m := r.Msg
	var f fields
	q := status.JobQuery{Queue: m.Queue, Owner: m.Owner, Limit: int(m.Limit)}
	wanted, unknown := States(m.States)
	if q.States = wanted; unknown != nil {
		f.wrong("states", "%v", unknown)
	}
	if m.Mine {
		if m.Owner != "" {
			f.wrong("mine", "is given, and owner too; want one of them")
		}
		q.Owner = users.Of(ctx).Name
	}
	if m.Limit < 0 || m.Limit > MaxJobs {
		f.wrong("limit", "is %d; want 0 to %d, and page_token for more", m.Limit, MaxJobs)
	}
	if q.Limit == 0 {
		q.Limit = MaxJobs
	}
	var before job.ID
	switch {
	case m.PageToken != "" && m.Before != "":
		f.wrong("before", "is given, and page_token too; want one of them")
	case m.PageToken != "":
		k, unreadable := readPageToken(m.PageToken)
		if q.Before = k; unreadable != nil {
			f.wrong("page_token", "%v", unreadable)
		}
	case m.Before != "":
		before = h.job(ctx, &f, "before", m.Before)
	}
	if err := f.err(); err != nil {
		return nil, wire(err)
	}
	if before != "" {
		j, err := h.service.Job(ctx, before)
		if err != nil {
			return nil, wire(err)
		}
		q.Before = j.Key()
	}
	page, err := h.service.Jobs(ctx, q)
	if err != nil {
		return nil, wire(err)
	}
	out := &pb.ListJobsResponse{LeftOut: count(page.Older), NextPageToken: pageToken(page.Next), Warnings: page.Warnings}
	for i := range page.Jobs {
		out.Jobs = append(out.Jobs, h.shown(ctx, &page.Jobs[i]))
	}
	return connect.NewResponse(out), nil
}

// pageToken writes the key that a page ends before: the instant of submission, then the name. Empty for no key.
func pageToken(k status.JobKey) string {
	if k == (status.JobKey{}) {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(append(binary.BigEndian.AppendUint64(nil, uint64(k.Submitted)), k.Name...))
}

// readPageToken is the key that pageToken wrote.
func readPageToken(text string) (status.JobKey, error) {
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(b) <= 8 {
		return status.JobKey{}, fmt.Errorf("%.80q is none; want the next_page_token of an earlier answer", text)
	}
	return status.JobKey{Submitted: quantity.Instant(binary.BigEndian.Uint64(b)), Name: job.ID(b[8:])}, nil
}

// States is the set of the states that a request names; the empty set if none are named.
func States(list []pb.Job_State) (out status.JobStates, err error) {
	for _, named := range list {
		if named < pb.Job_PENDING || named > pb.Job_NEVER {
			return 0, fmt.Errorf("%v is no state; want PENDING, RUNNING, PAUSED, COMPLETED, FAILED, CANCELLED, EXPIRED or NEVER", named)
		}
		out = out.With(job.State(named - pb.Job_PENDING)) //nolint:gosec // bounded above
	}
	return out, nil
}
