//go:build kubernetes

package podtest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// volumes are those of one Pod, in folders of dir. toEnd says why what waits for a Secret is to give up; empty: it is not.
type volumes struct {
	client kubernetes.Interface
	every  time.Duration
	dir    string
	toEnd  func() string
}

// value is that of a variable of a container.
func (v *volumes) value(ctx context.Context, p *corev1.Pod, e *corev1.EnvVar) (string, error) {
	if e.ValueFrom == nil {
		return e.Value, nil
	}
	ref := e.ValueFrom.SecretKeyRef
	data, err := v.secret(ctx, p, ref.Name, ref.Key)
	return string(data[ref.Key]), err
}

// secret is what a Secret has. One that is not there, or lacks a key, is waited for, as a kubelet does; no key: any.
func (v *volumes) secret(ctx context.Context, p *corev1.Pod, name, key string) (map[string][]byte, error) {
	for {
		s, err := v.client.CoreV1().Secrets(p.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err == nil && (key == "" || s.Data[key] != nil) {
			return s.Data, nil
		}
		if why := v.toEnd(); why != "" {
			return nil, errors.New(why + " while it waited for a Secret")
		}
		select {
		case <-time.After(v.every):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// furnish makes the volumes.
func (v *volumes) furnish(ctx context.Context, p *corev1.Pod) error {
	for _, x := range p.Spec.Volumes {
		if err := os.MkdirAll(filepath.Join(v.dir, x.Name), 0o755); err != nil {
			return err
		}
		if x.Secret == nil {
			continue
		}
		data, err := v.secret(ctx, p, x.Secret.SecretName, "")
		if err != nil {
			return err
		}
		for key, text := range data {
			if err := os.WriteFile(filepath.Join(v.dir, x.Name, key), text, os.FileMode(*x.Secret.DefaultMode)); err != nil {
				return err
			}
		}
	}
	return nil
}
