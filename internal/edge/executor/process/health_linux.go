package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/executor/process/faults"
	"sluice.dev/sluice/internal/edge/executor/shim/foreign"
	"sluice.dev/sluice/internal/edge/executor/shim/supervisor"
	"sluice.dev/sluice/internal/edge/volume"
)

// A failure for lack of disk space, descriptors or memory, or of the disk itself, is the node's and no job's. A subjob that meets it ends
// NodeFailed. A probe tells whether it was more than that one subjob (a work directory that does not fit where others would): while the
// probe fails too, the node is unhealthy, sells nothing, and probes again until it passes.
//
// A subjob that had begun and ends NodeFailed on a disk that is short of room was most likely refused some. So nothing is started until
// there is room: else all that is started until then would end alike, and so many in a row end their job.

const (
	// probeBytes is what a probe writes: a run directory without a work directory needs less.
	probeBytes = 64 << 10
	// probeFiles is how many descriptors a probe opens at once: as many as a start needs.
	probeFiles = 8
	// The pause between two probes of an unhealthy node begins at firstProbe and doubles up to lastProbe.
	firstProbe, lastProbe = time.Second, time.Minute
	// lastRoomProbe is lastProbe for a full disk, where space may be free soon: the subjob that filled it is ended.
	lastRoomProbe = 2 * time.Second
)

// suspect is called at every failure that is the node's. It probes at once and, if that fails, until it passes; the node is told of the
// first failure and of the recovery.
func (e *Executor) suspect(m *protocol.Message) {
	e.health.mu.Lock()
	defer e.health.mu.Unlock()
	if e.health.probing || e.isClosed() {
		return
	}
	e.health.probing = true
	from, to := m.To, m.From
	e.tasks.Go(func() { e.untilWell(from, to) })
}

func (e *Executor) untilWell(from, to protocol.Address) {
	defer func() {
		e.health.mu.Lock()
		e.health.probing = false
		e.health.mu.Unlock()
	}()
	told, pause := "", firstProbe
	for {
		err := errors.Join(e.health.roomless(&e.o, told != ""), e.probe(), e.artifacts.Reachable())
		switch {
		case err == nil && told == "":
			return
		case err == nil:
			e.o.Logger.Info("the node can start subjobs again", "was", told)
			e.box.Post(protocol.Message{Kind: protocol.Unhealthy, From: from, To: to, Body: &protocol.Condition{}})
			return
		case told == "":
			if volume.NoRoom(err) {
				e.lost.Empty() // kept only for people to look at
			}
			e.o.Logger.Error("the node can start no subjob and sells nothing until it can; it tries again by itself", "reason", err.Error())
		}
		if told != err.Error() {
			told = err.Error()
			e.box.Post(protocol.Message{Kind: protocol.Unhealthy, From: from, To: to,
				Body: &protocol.Condition{Unhealthy: true, Text: told}})
		}
		if executor.Pause(e.done, pause) {
			return
		}
		if pause = min(2*pause, lastProbe); volume.NoRoom(err) {
			pause = min(pause, lastRoomProbe)
		}
	}
}

// noteCut notes that a subjob which had begun was the node's failure, if it had: then the node is not well before its disk has room.
func (h *health) noteCut(begun bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.cut = h.cut || begun
}

// roomless returns why the disk has too little room for a start. already: it had too little at the last look.
func (h *health) roomless(o *Options, already bool) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.cut {
		return joinedShort(o, already)
	}
	err := short(o, already)
	h.cut = err != nil
	return err
}

// probe does what every start does: it writes and syncs below runs/, holds a few files open, and starts the supervisor's
// program. One at a time: they share one path.
func (e *Executor) probe() (err error) {
	e.health.trying.Lock()
	defer e.health.trying.Unlock()
	dir := e.s.In("runs", ".probe")
	defer func() {
		err = errors.Join(err, foreign.Remove(dir))
		if err != nil {
			err = fmt.Errorf("it can't prepare a run directory below %s: %w", e.o.DataDir, err)
		}
	}()
	if err = errors.Join(foreign.Remove(dir), os.Mkdir(dir, 0o700)); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	var files []*os.File
	defer func() {
		for _, f := range files {
			_ = f.Close() // what mattered was synced
		}
	}()
	for i := range probeFiles {
		f, err := root.Create(fmt.Sprint(i))
		if err != nil {
			return err
		}
		files = append(files, f)
	}
	if _, err := files[0].Write(make([]byte, probeBytes)); err != nil {
		return err
	}
	if err := files[0].Sync(); err != nil {
		return err
	}
	if err := exec.Command(e.o.ShimPath, supervisor.Probe).Run(); err != nil &&
		(faults.OfNode(err) || !errors.As(err, new(*exec.ExitError))) {
		return fmt.Errorf("starting the supervisor: %w", err)
	}
	return nil
}

// full returns why the disk of the data directory takes no result, nil if it has space. What a file system says of itself is no more than
// a hint: one that counts nothing looks full, and one with only its reserve for root left is full for others alone.
func (e *Executor) full() error {
	s, err := volume.LookOwn(e.o.DataDir)
	if err != nil || s.Free >= probeBytes && (s.Files == 0 || s.FreeFiles > 0) {
		return nil
	}
	if err = e.probe(); faults.OfNode(err) {
		return err
	}
	return nil
}

// blame turns a result that looks like the job's failure into NodeFailed where the node was the cause. A program that fails on its own
// while the disk is full counts as failed once there is space again.
func (r *run) blame(res job.Result) job.Result {
	why := ""
	switch {
	case res.Outcome == job.NodeFailed:
		r.e.health.noteCut(res.Start != 0)
		r.e.suspect(&r.start)
		return res
	case (res.Outcome == job.StartFailed || res.Outcome == job.Lost) && r.trouble != nil:
		why = r.trouble.Error()
	case res.Outcome == job.StartFailed || res.Outcome == job.Lost:
		if err := r.e.probe(); err != nil && faults.OfNode(err) {
			why = err.Error()
		}
	case res.Outcome == job.ExitFailed:
		if err := r.e.full(); volume.OverQuota(err) {
			why = "a quota where the data directory is, is used up: " + syscall.EDQUOT.Error()
		} else if err != nil {
			why = "the disk of the data directory is full: " + syscall.ENOSPC.Error()
		}
	}
	if why == "" {
		return res
	}
	r.e.health.noteCut(res.Start != 0)
	r.e.suspect(&r.start)
	res.Outcome = job.NodeFailed
	if res.Detail != "" {
		why += "; " + res.Detail
	}
	res.Detail = why
	return res
}
