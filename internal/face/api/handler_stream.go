package api

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"connectrpc.com/connect"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/store"
	"sluice.dev/sluice/internal/host"
)

// WaitJob answers when all the named jobs are over, or when its time is.
func (h *handler) WaitJob(ctx context.Context, r *connect.Request[pb.WaitJobRequest]) (*connect.Response[pb.WaitJobResponse], error) {
	m := r.Msg
	var f fields
	var names []job.ID
	for _, n := range m.Names[:min(len(m.Names), MaxWaitNames)] {
		names = append(names, h.job(ctx, &f, "names", n))
	}
	if len(m.Names) == 0 || len(m.Names) > MaxWaitNames {
		f.wrong("names", "has %d names; want 1 to %d", len(m.Names), MaxWaitNames)
	}
	wait := DefaultWait
	if m.Timeout != nil {
		wait = f.length("timeout", m.Timeout, MaxWait)
	}
	if err := f.err(); err != nil {
		return nil, wire(err)
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	changed, stop := h.service.Watch(names...)
	defer stop()
	for last := false; ; {
		out, err := h.standing(ctx, names)
		if err != nil {
			return nil, wire(err)
		}
		if out.Done {
			h.bring(ctx, names)
		}
		if out.Done || last {
			return connect.NewResponse(out), nil
		}
		select {
		case <-changed:
			pause := time.NewTimer(settle)
			select {
			case <-pause.C:
			case <-timer.C:
				last = true
			case <-ctx.Done():
			}
			pause.Stop()
		case <-timer.C:
			last = true
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			return nil, wire(context.Cause(ctx))
		}
	}
}

// bring makes what jobs that are over have committed on machines lie where people look for it, for as long as nobody minds the wait: a
// large output is still on its way from its machine then.
func (h *handler) bring(ctx context.Context, names []job.ID) {
	if h.machines == nil {
		return
	}
	ctx, end := context.WithTimeout(ctx, mostBring)
	defer end()
	h.machines.Bring(ctx, names...)
}

// standing is how the named jobs stand now.
func (h *handler) standing(ctx context.Context, names []job.ID) (*pb.WaitJobResponse, error) {
	list, err := h.service.Standing(ctx, names)
	if err != nil {
		return nil, err
	}
	out := &pb.WaitJobResponse{Done: true}
	for i := range list {
		out.Jobs = append(out.Jobs, h.shown(ctx, &list[i]))
		out.Done = out.Done && list[i].State.Final()
	}
	return out, nil
}

// Logs sends what a subjob wrote, or follows.
func (h *handler) Logs(ctx context.Context, r *connect.Request[pb.LogsRequest], s *connect.ServerStream[pb.LogsResponse]) error {
	m := r.Msg
	var f fields
	name, follow := h.job(ctx, &f, "name", m.Name), host.LogFollow{Token: f.subjob(m.Subjob)}
	tell := h.readable(ctx, name, func(p host.LogPiece) error {
		return s.Send(&pb.LogsResponse{Data: p.Data, Subjob: token(p.Token), Stderr: p.Stderr, Over: p.Over, Since: stamp(p.Since)})
	})
	if !m.Follow {
		if err := h.mayReadAs(ctx, &f, name); err != nil {
			return wire(err)
		}
		return wire(h.service.Logs(ctx, name, follow.Token, tell))
	}
	follow.Since = f.instant("since", m.Since, 0)
	if len(m.Seen) > MaxLogPositions {
		f.wrong("seen", "has %d subjobs; want at most %d", len(m.Seen), MaxLogPositions)
		m.Seen = nil
	}
	for _, p := range m.Seen {
		if p.GetStdout() < 0 || p.GetStderr() < 0 || p.GetSubjob() == "" {
			f.wrong("seen", "is %d and %d bytes of subjob %q; want a subjob and no less than 0", p.GetStdout(), p.GetStderr(),
				p.GetSubjob())
		}
		follow.Seen = append(follow.Seen, host.LogPosition{Token: f.subjob(p.GetSubjob()), Out: p.GetStdout(), Err: p.GetStderr(),
			Over: p.GetOver()})
	}
	if err := h.mayReadAs(ctx, &f, name); err != nil {
		return wire(err)
	}
	return wire(h.service.Follow(ctx, name, follow, tell))
}

// ReadOutput sends the committed files one after another.
func (h *handler) ReadOutput(ctx context.Context, r *connect.Request[pb.ReadOutputRequest],
	s *connect.ServerStream[pb.ReadOutputResponse]) error {
	var f fields
	name, t := h.job(ctx, &f, "name", r.Msg.Name), f.subjob(r.Msg.Subjob)
	if _, err := filepath.Match(r.Msg.File, ""); err != nil {
		f.wrong("file", "%q is no pattern; want a path such as logs/*.txt", r.Msg.File)
	}
	if err := h.mayReadAs(ctx, &f, name); err != nil {
		return wire(err)
	}
	list, err := h.service.Outputs(ctx, name)
	if err != nil {
		return wire(err)
	}
	asked := slices.DeleteFunc(slices.Clone(list), func(o Output) bool { return !t.Zero() && o.Token != t })
	for i := range asked { // before anything is sent: whoever concatenates them would not see the gap
		if why := asked[i].Lost; why != "" {
			return wire(errkind.Errorf(errkind.Corrupt, "%s; name the subjob of another output to read that alone", why))
		}
	}
	found := t.Zero() || len(asked) > 0
	for i := range asked {
		asked[i].Files = slices.DeleteFunc(slices.Clone(asked[i].Files), func(name string) bool {
			is, _ := filepath.Match(r.Msg.File, name)
			return r.Msg.File != "" && !is && r.Msg.File != name
		})
		if err := sendOutput(ctx, &asked[i], func() error { return h.mayRead(ctx, name) }, s.Send); err != nil {
			return wire(err)
		}
	}
	if !found {
		return wire(errkind.Errorf(errkind.NotFound, "job %s has no committed subjob %s; ListOutputs names those it has", name, t))
	}
	return nil
}

// sendOutput sends the files of one folder. The subjob wrote them and is not trusted: nothing outside the folder is
// followed to, and only regular files are opened. may is asked once the folder is open: another user's job could have got the name
// meanwhile, and its folder the path.
func sendOutput(ctx context.Context, o *Output, may func() error, send func(*pb.ReadOutputResponse) error) error {
	if digest, stored := strings.CutPrefix(o.Path, store.Scheme); stored {
		return errkind.Errorf(errkind.Unsupported, "the output of subjob %s lies in the store, and not here: `sluice store get %s PATH "+
			"--store STORE` gets it", o.Token, digest)
	}
	if len(o.Files) == 0 {
		return nil
	}
	root, err := os.OpenRoot(o.Path)
	if err != nil {
		return fileError(o, "", err)
	}
	defer root.Close()
	if err = may(); err != nil {
		return err
	}
	folder, err := root.Stat(".")
	if err != nil {
		return fileError(o, "", err)
	}
	for _, name := range o.Files {
		if err := sendFile(ctx, root, folder, o, name, send); err != nil {
			return err
		}
	}
	return nil
}

func sendFile(ctx context.Context, root *os.Root, folder fs.FileInfo, o *Output, name string,
	send func(*pb.ReadOutputResponse) error) error {
	// Opening a pipe without O_NONBLOCK would wait for a writer.
	file, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return fileError(o, name, err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return fileError(o, name, err)
	}
	if !info.Mode().IsRegular() {
		return fileError(o, name, errors.New("is no regular file"))
	}
	if !sameOwner(folder, info) {
		return fileError(o, name, errors.New("belongs to another user than its folder: it was linked there, and may hold what the "+
			"subjob could not read"))
	}
	m := &pb.ReadOutputResponse{Subjob: token(o.Token), Path: shownName(name), Size: info.Size()}
	buf := make([]byte, chunk)
	for {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		n, err := io.ReadFull(file, buf)
		end := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !end {
			return fileError(o, name, err)
		}
		if m.Data = buf[:n]; n > 0 || m.Path != "" {
			if err := send(m); err != nil {
				return err
			}
		}
		if end {
			return nil
		}
		m = &pb.ReadOutputResponse{}
	}
}

// sameOwner says whether a file in a subjob's folder belongs to the user that the subjob ran as; as ourselves it could read all that
// we can.
func sameOwner(folder, file fs.FileInfo) bool {
	a, ok := folder.Sys().(*syscall.Stat_t)
	b, also := file.Sys().(*syscall.Stat_t)
	return !ok || !also || a.Uid == b.Uid || a.Uid == uint32(os.Geteuid())
}

func fileError(o *Output, name string, err error) error {
	kind := errkind.Unknown
	if errors.Is(err, fs.ErrNotExist) {
		kind = errkind.NotFound
	}
	return errkind.Errorf(kind, "output of subjob %s, folder %s, file %q: %w", o.Token, o.Path, name, err)
}
