//go:build kubernetes

package kubernetes

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice.dev/sluice/internal/edge/executor/shim/pod"
	"sluice.dev/sluice/internal/edge/provider"
)

// Labels of pilots' Pods and Secrets.
const (
	// LabelCluster is the mark of the head whose pilots these are, LabelPool the pool's name, LabelPilot the pilot's.
	LabelCluster = "sluice.dev/cluster"
	LabelPool    = "sluice.dev/pool"
	LabelPilot   = "sluice.dev/pilot"
)

// Names inside a Pod.
const (
	container = "pilot"
	installer = "sluice"
	volume    = "sluice"
	mount     = "/sluice-pilot"
	secret    = "token"
	// mountSecret is in the installer alone, which puts the token beside the program in a file that the pilot's user owns.
	mountSecret = "/sluice-token"
	tokenKey    = "token"
)

// podName is the name of a pilot's Pod and Secret.
func (k *Kubernetes) podName(pilot string) string { return podPrefix + k.o.Mark + "-" + pilot }

// labels of what is made for a pilot.
func (k *Kubernetes) labels(pilot string) map[string]string {
	return map[string]string{LabelCluster: k.o.Mark, LabelPool: k.o.Pool, LabelPilot: pilot}
}

// selector matches all pilots of the pool.
func (k *Kubernetes) selector() string {
	return LabelCluster + "=" + k.o.Mark + "," + LabelPool + "=" + k.o.Pool
}

func seconds(d time.Duration) int64 { return int64(d / time.Second) }

func ptr[T any](v T) *T { return &v }

// makePod builds a pilot's Pod. Its token is not in it.
func (k *Kubernetes) makePod(p provider.Pilot) *corev1.Pod {
	o := &k.o
	never := corev1.PreemptNever
	own := []corev1.VolumeMount{{Name: volume, MountPath: mount}}
	plain, all := k.resources()
	join := []string{mount + "/" + pod.Joiner, "join", p.Head, "--token-file", mount + "/" + pod.TokenFile, "--name", p.Name,
		"--data", mount + "/data", "--listen", "127.0.0.1:0", "--gpus", o.GPUs, "--ephemeral", "--until", p.Length.String(),
		"--grace", (o.Grace - margin).String()}
	if o.Ownerless > 0 {
		join = append(join, "--ownerless", o.Ownerless.String())
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: k.podName(p.Name), Namespace: o.Namespace, Labels: k.labels(p.Name)},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, ActiveDeadlineSeconds: ptr(seconds(p.Length + o.Grace)),
			TerminationGracePeriodSeconds: ptr(seconds(o.Grace)),
			AutomountServiceAccountToken:  new(bool), EnableServiceLinks: new(bool),
			// The API server refuses the Pod if the class preempts.
			PriorityClassName: o.PriorityClass, PreemptionPolicy: &never,
			NodeSelector: o.NodeSelector, Tolerations: k.tolerations(),
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: ptr(true), RunAsUser: &o.User, RunAsGroup: &o.User, FSGroup: &o.User,
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			InitContainers: []corev1.Container{{
				Name: installer, Image: o.SluiceImage, Command: []string{"/sluice-shim", pod.Lend, mount, mountSecret + "/" + tokenKey},
				VolumeMounts:    append(own, corev1.VolumeMount{Name: secret, MountPath: mountSecret, ReadOnly: true}),
				Resources:       corev1.ResourceRequirements{Requests: plain, Limits: plain},
				SecurityContext: restricted(), TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
			}},
			Containers: []corev1.Container{{
				Name: container, Image: o.Image, WorkingDir: mount, VolumeMounts: own,
				Command:         join,
				Resources:       corev1.ResourceRequirements{Requests: all, Limits: all},
				SecurityContext: restricted(), TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
			}},
			Volumes: []corev1.Volume{
				{Name: volume, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
				{Name: secret, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
					SecretName: k.podName(p.Name), DefaultMode: ptr(int32(0o400))}}},
			},
		},
	}
}

// makeSecret builds the Secret with a pilot's token, which goes with the Pod.
func (k *Kubernetes) makeSecret(p *corev1.Pod, pilot, token string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: p.Name, Namespace: p.Namespace, Labels: k.labels(pilot),
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: p.Name, UID: p.UID}}},
		Immutable: ptr(true), Data: map[string][]byte{tokenKey: []byte(token)},
	}
}

// resources are the amounts of every container, and those of the pilot's with its devices. They are checked (provider.SoundAmount).
func (k *Kubernetes) resources() (plain, all corev1.ResourceList) {
	plain, all = corev1.ResourceList{}, corev1.ResourceList{}
	for name, amount := range k.o.Resources {
		q := resource.MustParse(amount)
		if all[corev1.ResourceName(name)] = q; !strings.Contains(name, "/") {
			plain[corev1.ResourceName(name)] = q
		}
	}
	return plain, all
}

func (k *Kubernetes) tolerations() (list []corev1.Toleration) {
	for _, key := range k.o.Tolerates {
		list = append(list, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists})
	}
	return list
}

// restricted is the container's part of what the Pod security standard "restricted" requires; makePod sets the Pod's.
func restricted() *corev1.SecurityContext {
	return &corev1.SecurityContext{AllowPrivilegeEscalation: new(bool),
		Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}
}
