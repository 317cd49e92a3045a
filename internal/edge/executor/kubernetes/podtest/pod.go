//go:build kubernetes

package podtest

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func gone(err error) bool { return apierrors.IsNotFound(err) || apierrors.IsConflict(err) }

// running is a Pod on this machine.
type running struct {
	k         *Kubelet
	name, dir string
	ended     chan struct{} // closed once it has ended

	mu sync.Mutex
	// started is when it was taken on, deadline how long it may run from then, 0: for ever.
	started  time.Time
	deadline time.Duration
	grace    time.Duration
	// deleted is set once it is to end, with the grace of the deletion.
	deleted *time.Duration
	// orders are the files of annotations as they were written, late that it has passed its deadline.
	orders map[string]string
	late   bool
}

// update takes over what is wanted of the Pod, and shows its annotations.
func (r *running) update(p *corev1.Pod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if d := p.Spec.ActiveDeadlineSeconds; d != nil {
		r.deadline = time.Duration(*d) * time.Second
	}
	if g := p.Spec.TerminationGracePeriodSeconds; g != nil {
		r.grace = time.Duration(*g) * time.Second
	}
	for _, v := range p.Spec.Volumes {
		if v.DownwardAPI == nil {
			continue
		}
		for _, item := range v.DownwardAPI.Items {
			key := strings.TrimSuffix(strings.TrimPrefix(item.FieldRef.FieldPath, "metadata.annotations['"), "']")
			path, text := filepath.Join(r.dir, v.Name, item.Path), p.Annotations[key]
			if was, ok := r.orders[path]; !ok || was != text {
				if write(path, []byte(text)) == nil {
					if r.orders == nil {
						r.orders = map[string]string{}
					}
					r.orders[path] = text
				}
			}
		}
	}
	if p.DeletionTimestamp != nil {
		g := time.Duration(*p.DeletionGracePeriodSeconds) * time.Second
		r.deleted = &g
	}
}

// run does all that is done for a Pod, and says how it ended.
func (r *running) run(ctx context.Context, p *corev1.Pod) {
	r.mu.Lock()
	r.started = time.Now()
	r.mu.Unlock()
	start := r.k.now()
	status := corev1.PodStatus{Phase: corev1.PodPending, StartTime: &start}
	for _, c := range p.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, corev1.ContainerStatus{Name: c.Name, Image: c.Image,
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"}}})
	}
	r.k.say(ctx, p, &status)
	code := 0
	err := r.furnish(p)
	for i := range p.Spec.InitContainers {
		if err == nil {
			code, _, err = r.contain(ctx, p, &p.Spec.InitContainers[i], func() {})
		}
		if err == nil && code != 0 {
			err = errors.New("an init container has failed")
		}
	}
	state := &corev1.ContainerStateTerminated{ExitCode: 128, Reason: "ContainerStatusUnknown"}
	if err == nil {
		var began metav1.Time // zero: its container was not started
		told := make(chan struct{})
		var message string
		code, message, err = r.contain(ctx, p, &p.Spec.Containers[0], func() {
			began = r.k.now()
			now := status
			now.Phase = corev1.PodRunning
			now.ContainerStatuses = slices.Clone(status.ContainerStatuses)
			now.ContainerStatuses[0].State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: began}}
			go func() { // what runs is watched over meanwhile
				defer close(told)
				r.k.say(ctx, p, &now)
			}()
		})
		if finished := r.k.now(); !began.IsZero() {
			<-told
			state = &corev1.ContainerStateTerminated{ExitCode: int32(code), Message: message, StartedAt: began, FinishedAt: finished}
		}
	}
	status.Phase = corev1.PodSucceeded
	if err != nil || code != 0 {
		status.Phase = corev1.PodFailed
	}
	if err != nil {
		status.Message = err.Error()
	}
	r.mu.Lock()
	if r.late {
		status.Reason = "DeadlineExceeded"
	}
	r.mu.Unlock()
	status.ContainerStatuses = slices.Clone(status.ContainerStatuses)
	status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: state}
	r.k.say(ctx, p, &status)
	for ctx.Err() == nil { // as a kubelet does: it removes what it is done with, if that is asked for
		now, err := r.k.o.Client.CoreV1().Pods(p.Namespace).Get(ctx, p.Name, metav1.GetOptions{})
		if gone(err) || err == nil && now.UID != p.UID {
			return
		}
		if err == nil && now.DeletionTimestamp != nil && !r.k.isSilent() {
			zero := int64(0)
			if r.k.o.Client.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: &zero,
				Preconditions: metav1.NewUIDPreconditions(string(p.UID))}) == nil {
				return
			}
		}
		select {
		case <-time.After(r.k.o.Every):
		case <-ctx.Done():
		}
	}
}

// value is that of a variable of a container. A Secret that is not there is waited for, as a kubelet does.
func (r *running) value(ctx context.Context, p *corev1.Pod, e *corev1.EnvVar) (string, error) {
	if e.ValueFrom == nil {
		return e.Value, nil
	}
	ref := e.ValueFrom.SecretKeyRef
	for {
		s, err := r.k.o.Client.CoreV1().Secrets(p.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
		if err == nil && s.Data[ref.Key] != nil {
			return string(s.Data[ref.Key]), nil
		}
		if why := r.toEnd(); why != "" {
			return "", errors.New(why + " while it waited for a Secret")
		}
		select {
		case <-time.After(r.k.o.Every):
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// furnish makes the volumes.
func (r *running) furnish(p *corev1.Pod) error {
	for _, v := range p.Spec.Volumes {
		if err := os.MkdirAll(filepath.Join(r.dir, v.Name), 0o755); err != nil {
			return err
		}
	}
	return nil
}

// toEnd says why the Pod is to end, empty: it is not.
func (r *running) toEnd() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.deleted != nil:
		return "it was deleted"
	case r.deadline > 0 && time.Since(r.started) > r.deadline:
		r.late = true
		return "its deadline has passed"
	}
	return ""
}

// contain runs one container, and returns its exit code and its termination message.
func (r *running) contain(ctx context.Context, p *corev1.Pod, c *corev1.Container, began func()) (int, string, error) {
	if why := r.toEnd(); why != "" {
		return 0, "", errors.New(why)
	}
	for _, m := range c.VolumeMounts { // as runc says it: a directory can't be mounted on a program of the image
		if _, file := r.k.o.Programs[m.MountPath]; file && c.Image == r.k.o.Image {
			return 0, "", errors.New("error mounting " + m.MountPath + ": not a directory")
		}
	}
	end := filepath.Join(r.dir, c.Name+".end")
	if err := write(end, nil); err != nil {
		return 0, "", err
	}
	args := make([]string, len(c.Command))
	for i, arg := range c.Command {
		args[i] = r.local(arg, c, end)
	}
	if at, ok := r.k.o.Programs[args[0]]; ok {
		args[0] = at
	}
	log, err := os.OpenFile(filepath.Join(r.dir, c.Name+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), mark(p.UID, r.k.dir)}
	for _, e := range c.Env {
		value, failed := r.value(ctx, p, &e)
		if failed != nil {
			return 0, "", failed
		}
		cmd.Env = append(cmd.Env, e.Name+"="+value)
	}
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err = cmd.Start(); err != nil {
		return 0, "", err
	}
	began()
	over := make(chan struct{})
	go func() {
		_ = cmd.Wait() // its state says how
		close(over)
	}()
	again := time.NewTicker(r.k.o.Every)
	defer again.Stop()
	var termed time.Time
	for {
		select {
		case <-over:
			r.kill() // a container ends with its first process
			said, _ := os.ReadFile(end)
			return code(cmd.ProcessState), string(said[:min(len(said), 4096)]), nil
		case <-again.C:
			if why := r.toEnd(); why != "" {
				if termed.IsZero() {
					termed = time.Now()
					_ = cmd.Process.Signal(syscall.SIGTERM)
				}
				if time.Since(termed) > r.patience() {
					r.kill()
				}
			}
		case <-ctx.Done():
			r.kill()
			<-over
			return 0, "", ctx.Err()
		}
	}
}

func (r *running) patience() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.deleted != nil {
		return *r.deleted
	}
	return r.grace
}

func code(s *os.ProcessState) int {
	if w, ok := s.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return 128 + int(w.Signal())
	}
	return s.ExitCode()
}

// local is where a path of a container lies on this machine.
func (r *running) local(path string, c *corev1.Container, end string) string {
	if path == c.TerminationMessagePath && path != "" {
		return end
	}
	best := ""
	for _, m := range c.VolumeMounts {
		if (path == m.MountPath || strings.HasPrefix(path, m.MountPath+"/")) && len(m.MountPath) > len(best) {
			best = m.MountPath
		}
	}
	for _, m := range c.VolumeMounts {
		if m.MountPath == best && best != "" {
			return filepath.Join(r.dir, m.Name, strings.TrimPrefix(path, best))
		}
	}
	return path
}
