// Package again knows a job that is submitted again by what it is, without storing or writing anything. It must not know how it was sent.
package again

import (
	"bytes"
	"context"
	"crypto/sha256"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/edge/config"
	"sluice.dev/sluice/internal/edge/store"
	"sluice.dev/sluice/internal/edge/users"
	"sluice.dev/sluice/internal/edge/volume"
)

// Receipt is that of a job which is there already, with the same content and of the same user; nil: it is not. It is asked for with the
// error of one that was refused, and answers where that was for want of room: who submits a job again to wait for it needs none. workdir
// is packed; nil: there is none, or it is stored. replace: it takes the place of one that is over.
func Receipt(ctx context.Context, find func(context.Context, job.ID) (status.Job, error), j *config.Job, workdir []byte, replace bool,
	refused error) *pb.Receipt {
	if errkind.Of(refused) != errkind.Exhausted && !volume.NoRoom(refused) {
		return nil
	}
	there, err := find(ctx, j.Spec.Name)
	final := there.State.Final()
	if c := users.Of(ctx); err != nil || final && replace || c != nil && c.Name != there.Owner() || !same(&there, j, workdir) {
		return nil
	}
	r := &pb.Receipt{Name: string(j.Spec.Name), Generation: uint32(there.Generation)}
	if final {
		r.State, r.Reason = pb.Value[pb.Job_State](there.State.String()), there.Reason
	}
	return r
}

// same says whether a job that is there has the content of this one.
func same(there *status.Job, j *config.Job, workdir []byte) bool {
	if there.Spec == nil {
		return false
	}
	work := j.Stored()
	if workdir != nil && work == "" {
		sum := sha256.New()
		sum.Write(workdir)
		work = string(store.DigestOf(sum))
	}
	spec := *there.Spec // what was accepted has no name, a job file has
	spec.Name = j.Spec.Name
	old, err := config.RenderJob(&spec, "")
	if err != nil || spec.Launch.Workdir != work {
		return false
	}
	now, err := config.RenderJob(j.Spec, "")
	return err == nil && bytes.Equal(old, now)
}
