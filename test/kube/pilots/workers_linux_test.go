//go:build kubernetes

package pilots

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	apps "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	quantities "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"sluice.dev/sluice/test/kube/plane"
	"sluice.dev/sluice/test/queue"
)

// workers are queue workers in a Deployment of Pods like pilots', and their queue.
type workers struct {
	w          *world
	name, path string
	queue      *queue.Queue
	server     *http.Server

	mu sync.Mutex
	// callers are the workers' addresses.
	callers map[string]bool
}

// lean is a Pod's spec for a device, as small as the namespace admits it.
func (w *world) lean() corev1.PodSpec {
	yes, no, user := true, false, int64(65532)
	return corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "busybox",
		Command: []string{"true"}, Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{resource: quantities.MustParse("1")}},
		SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: &no, Capabilities: &corev1.Capabilities{
			Drop: []corev1.Capability{"ALL"}}}}},
		SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: &yes, RunAsUser: &user,
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}}}
}

// alike is lean with a pilot's resources, class, grace and volume.
func (w *world) alike() corev1.PodSpec {
	spec, no := w.lean(), false
	seconds, limit := int64(grace/time.Second), int64(600)
	spec.PriorityClassName, spec.AutomountServiceAccountToken, spec.EnableServiceLinks = "sluice-pilots", &no, &no
	spec.TerminationGracePeriodSeconds, spec.ActiveDeadlineSeconds = &seconds, &limit
	spec.Volumes = []corev1.Volume{{Name: "sluice", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	c := &spec.Containers[0]
	c.VolumeMounts = []corev1.VolumeMount{{Name: "sluice", MountPath: "/sluice-pilot"}}
	c.Resources.Limits = corev1.ResourceList{resource: quantities.MustParse("1"), "cpu": quantities.MustParse("100m"),
		"memory": quantities.MustParse("64Mi")}
	c.Resources.Requests = c.Resources.Limits
	return spec
}

// hire has a worker on each device, and returns when all of them ask the queue for units. They are a Deployment's, which replaces at once
// what is preempted, and so may neither have an end nor stay as they ended.
func (w *world) hire(name string, takes time.Duration, command ...string) *workers {
	w.Helper()
	h := &workers{w: w, name: name, path: filepath.Join(w.dir, name+".queue"), callers: map[string]bool{}}
	var err error
	if h.queue, err = queue.Open(h.path, 2*takes+grace); err != nil {
		w.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.Fatal(err)
	}
	h.server = &http.Server{Handler: h, ReadHeaderTimeout: plane.Within}
	go func() { _ = h.server.Serve(l) }()
	w.Cleanup(func() { _ = h.server.Close() })
	text, err := json.Marshal(queue.Worker{Queue: "http://" + l.Addr().String(), Command: command, Takes: takes, Grace: grace})
	if err != nil {
		w.Fatal(err)
	}
	n, labels := int32(w.machines*w.each), map[string]string{"app": name}
	spec := w.alike()
	spec.RestartPolicy, spec.ActiveDeadlineSeconds = corev1.RestartPolicyAlways, nil
	spec.Containers[0].Command = []string{filepath.Join(w.dir, "worker")}
	spec.Containers[0].Env = []corev1.EnvVar{{Name: queue.WorkerVariable, Value: string(text)}}
	d := &apps.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: apps.DeploymentSpec{Replicas: &n,
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec}}}
	if _, err := w.clients.AppsV1().Deployments(w.namespace).Create(w.Context(), d, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
	w.until("all workers ask for units", func() error {
		h.mu.Lock()
		defer h.mu.Unlock()
		if len(h.callers) < int(n) {
			return fmt.Errorf("%d do", len(h.callers))
		}
		return nil
	})
	return h
}

// ServeHTTP is the queue's, and notes who calls.
func (h *workers) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	h.callers[r.RemoteAddr] = true
	h.mu.Unlock()
	h.queue.ServeHTTP(rw, r)
}

// do has n units done, and returns how long that took, from their way into the queue until the last is committed.
func (h *workers) do(n int) time.Duration {
	h.w.Helper()
	before, began := h.queue.Counts().Committed, time.Now()
	if err := h.queue.Push(n); err != nil {
		h.w.Fatal(err)
	}
	for h.queue.Counts().Committed < before+n {
		if time.Since(began) > 2*plane.Within {
			h.w.Fatalf("%+v of %d units", h.queue.Counts(), n)
		}
		time.Sleep(time.Millisecond)
	}
	return time.Since(began)
}

// fire tells all workers to end, and returns when they are gone and the queue is closed.
func (h *workers) fire() {
	w := h.w
	w.Helper()
	if _, err := w.clients.AppsV1().Deployments(w.namespace).Patch(context.Background(), h.name, types.MergePatchType,
		[]byte(`{"spec":{"replicas":0}}`), metav1.PatchOptions{}); err != nil {
		w.Fatal(err)
	}
	w.until("no worker is left", func() error {
		list, err := w.clients.CoreV1().Pods(w.namespace).List(context.Background(), metav1.ListOptions{LabelSelector: "app=" + h.name})
		if err == nil && len(list.Items) > 0 {
			err = fmt.Errorf("%d are", len(list.Items))
		}
		return err
	})
	if err := h.server.Close(); err != nil {
		w.Fatal(err)
	}
	if err := h.queue.Close(); err != nil {
		w.Fatal(err)
	}
}

// judge fails the test unless each of n units is committed once, by the queue's file and what units wrote to a witness when they were done.
// It returns how many were done again.
func (h *workers) judge(n int, seen string) (redone int) {
	w := h.w
	w.Helper()
	file, err := os.ReadFile(h.path)
	if err != nil {
		w.Fatal(err)
	}
	done, err := os.ReadFile(seen)
	if err != nil {
		w.Fatal(err)
	}
	wrong, redone := queue.Judge(n, file, done)
	for _, x := range wrong {
		w.Error(x)
	}
	return redone
}
