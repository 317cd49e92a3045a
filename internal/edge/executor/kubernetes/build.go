//go:build kubernetes

package kubernetes

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/edge/cluster"
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/executor/shim/pod"
	"sluice.dev/sluice/internal/edge/store"
)

// Names inside a Pod.
const (
	container = cluster.Container
	installer = "sluice"
	volume    = "sluice"
	claimName = "slice"
	// mount is our directory in both containers: the program, the run file and the run directory. It must not be /sluice or /sluice-shim,
	// which are files in our image. The key is an environment variable of the installer alone.
	mount      = "/sluice-subjob"
	mountOrder = "/sluice-order"
	orderKey   = "order.json"
	// said is the path of the termination message.
	said = "/dev/termination-log"
)

// check refuses work that can't be a Pod. Errors are of kind Invalid: they are the job's.
func check(w *protocol.Work) error {
	switch {
	case len(w.Also) > 0:
		return errkind.Errorf(errkind.Invalid, "it is to run on %d slices, and a Pod gets one: ask for rigid.slices: 1", 1+len(w.Also))
	case w.Spec.Launch.Image == "":
		return errkind.Errorf(errkind.Invalid, "its job names no image, which a Pod needs: give spec.image")
	case w.Spec.Launch.OutputLimit > store.MaxLent:
		return errkind.Errorf(errkind.Invalid, "its limits.output is %d bytes, and a Pod can store %d (5Gi): give no more",
			w.Spec.Launch.OutputLimit, int64(store.MaxLent))
	}
	return nil
}

func (r *run) labels() map[string]string {
	all := map[string]string{cluster.LabelOperator: r.e.o.Operator, cluster.LabelJob: cluster.JobLabel(r.rec.Job),
		cluster.LabelToken: r.rec.Token.String()}
	if r.rec.Journal != "" {
		all[cluster.LabelJournal] = r.rec.Journal
	}
	return all
}

// makePod builds a subjob's Pod. sealed is its run file.
func (r *run) makePod(sealed string, now quantity.Instant) (*corev1.Pod, error) {
	rec, err := json.Marshal(&r.rec)
	if err != nil {
		return nil, err
	}
	o, launch := &r.e.o, &r.work.Spec.Launch
	linger := seconds(r.rec.Grace + o.Linger)
	notes := map[string]string{cluster.AnnotationSlice: string(r.rec.Slice), cluster.AnnotationRun: string(rec)}
	if seal := cluster.Seal(o.Key, r.e.namespace(&r.rec), r.name(), string(rec)); seal != "" {
		notes[cluster.AnnotationSeal] = seal
	}
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: r.name(), Namespace: r.e.namespace(&r.rec), Labels: r.labels(), Finalizers: []string{cluster.Finalizer},
			Annotations: notes,
		},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, ActiveDeadlineSeconds: active(r.rec.End.Add(o.Linger), now),
			TerminationGracePeriodSeconds: &linger,
			PriorityClassName:             cluster.Leftover, AutomountServiceAccountToken: new(bool), EnableServiceLinks: new(bool),
			Tolerations: o.Tolerations(),
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: ptr(true), RunAsUser: &o.RunAs, RunAsGroup: &o.RunAs,
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
					MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn,
						Values: []string{r.device.Node}}},
				}}}}},
			InitContainers: []corev1.Container{{
				Name: installer, Image: o.ShimImage, Command: []string{"/sluice-shim", pod.Install, mount, r.name()},
				Env: []corev1.EnvVar{{Name: pod.Sealed, Value: sealed},
					{Name: pod.KeyText, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
						LocalObjectReference: corev1.LocalObjectReference{Name: r.e.keysName()}, Key: pod.KeyOf(sealed),
					}}}},
				VolumeMounts: []corev1.VolumeMount{{Name: volume, MountPath: mount}}, SecurityContext: restricted(),
				TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
			}},
			Containers: []corev1.Container{{
				Name: container, Image: launch.Image, Command: []string{mount + "/" + pod.Program, pod.Verb, mount + "/" + pod.Runs,
					mount + "/" + pod.RunFile, mountOrder + "/" + orderKey, said},
				VolumeMounts:           []corev1.VolumeMount{{Name: volume, MountPath: mount}, {Name: "order", MountPath: mountOrder}},
				TerminationMessagePath: said, TerminationMessagePolicy: corev1.TerminationMessageReadFile, SecurityContext: restricted(),
			}},
			Volumes: []corev1.Volume{
				{Name: volume, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
				{Name: "order",
					VolumeSource: corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: []corev1.DownwardAPIVolumeFile{
						{Path: orderKey, FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['" +
							cluster.AnnotationNotice + "']"}},
					}}}},
			},
		},
	}
	c := &p.Spec.Containers[0]
	for _, x := range []*corev1.Container{c, &p.Spec.InitContainers[0]} {
		x.Resources = corev1.ResourceRequirements{Requests: maps.Clone(o.Requests), Limits: maps.Clone(o.Limits)}
	}
	if one, name := resource.MustParse("1"), corev1.ResourceName(r.device.Resource); name != "" {
		c.Resources.Requests, c.Resources.Limits = with(c.Resources.Requests, name, one), with(c.Resources.Limits, name, one)
	} else {
		p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: claimName, ResourceClaimName: ptr(r.name())}}
		c.Resources.Claims = []corev1.ResourceClaim{{Name: claimName}}
	}
	return p, nil
}

// with sets an amount in the list, which callers pass a copy of, and returns it; nil is made.
func with(list corev1.ResourceList, name corev1.ResourceName, q resource.Quantity) corev1.ResourceList {
	if list == nil {
		list = corev1.ResourceList{}
	}
	list[name] = q
	return list
}

// restricted is the container's part of what the Pod security standard "restricted" requires; makePod sets the Pod's.
func restricted() *corev1.SecurityContext {
	return &corev1.SecurityContext{AllowPrivilegeEscalation: new(bool),
		Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}
}

// active is activeDeadlineSeconds for an end; nil for none.
func active(end, now quantity.Instant) *int64 {
	if end == quantity.Never {
		return nil
	}
	return ptr(max(1, seconds(end.Sub(now))))
}

// seconds rounds up.
func seconds(d time.Duration) int64 { return int64(math.Ceil(d.Seconds())) }

func ptr[T any](v T) *T { return &v }

// owned is the metadata of an object that the subjob's Pod owns.
func (r *run) owned(p *corev1.Pod) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: r.name(), Namespace: p.Namespace, Labels: r.labels(),
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: p.Name, UID: p.UID}},
	}
}

// makeClaim requests the subjob's device by a selector that matches no other.
func (r *run) makeClaim(p *corev1.Pod, selector string) *resourcev1.ResourceClaim {
	return &resourcev1.ResourceClaim{
		ObjectMeta: r.owned(p),
		Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{
			Name: claimName,
			Exactly: &resourcev1.ExactDeviceRequest{
				DeviceClassName: r.device.Class, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1,
				Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: selector}}},
			},
		}}}},
	}
}

// makeRun builds the run file, without URLs of objects.
func (r *run) makeRun(asked quantity.Instant) *pod.Run {
	w, l, o := r.work, &r.work.Spec.Launch, &r.e.o
	f := &pod.Run{
		Part: executor.Part{Token: r.rec.Token, Job: r.rec.Job, Generation: r.rec.Generation, Slice: r.rec.Slice, Kind: w.Spec.Kind,
			Range: w.Range, Member: w.Plan.Member, Members: w.Plan.Members, Total: w.Spec.Total, Grid: w.Spec.Grid},
		Start: w.Start, End: w.End, Asked: asked, Linger: o.Linger, Grace: l.Grace, WarnSignal: l.WarnSignal, WarnBefore: l.WarnBefore,
		Command: l.Command, Env: l.Env, Subdir: l.Subdir, Umask: l.Umask, Memory: w.Demand[trp.Memory], LogLimit: l.LogLimit,
		OutputLimit: l.OutputLimit, Report: o.Report,
	}
	if s, ok := o.Slice(w.Slice); ok && s.Capacity[trp.Memory] > 0 {
		f.Memory = s.Capacity[trp.Memory]
	}
	fill(&f.LogLimit, o.LogLimit)
	fill(&f.OutputLimit, o.OutputLimit)
	if option := w.Spec.Option(w.Plan.Option); option != nil {
		f.Env = slices.Concat(f.Env, option.Env, []string{"SLUICE_OPTION=" + option.Name})
	}
	return f
}

// Names in the store:
//
//	work/OWNER/DIGEST                        a work directory that a job needs
//	jobs/OWNER/JOB/LIFE/SUBJOB               output and checkpoint of a subjob; after it is settled, its checkpoint if committed
//	outputs/OWNER/JOB/LIFE/FROM-TO.SUBJOB    the output of a committed range
//
// A Pod can write to its places pods/OWNER/SUBJOB/ROLE alone, which the store keeps below incoming/ until Adopt makes objects of them.
// OWNER is the operator and its journal, so that what another journal left, in this cluster or another one with the same store, is never
// taken for our own.

// Roles of what a subjob leaves, which also name its places.
const (
	outputRole     = "output"
	checkpointRole = "checkpoint"
	progressPlace  = "progress"
	workRole       = "work"
)

func (e *Executor) owner() string { return cluster.Owner(e.o.Operator, e.o.Journal) }

func (e *Executor) jobNames(j job.ID) string { return "jobs/" + e.owner() + "/" + store.Folder(j) }
func (e *Executor) outputNames(j job.ID) string {
	return "outputs/" + e.owner() + "/" + store.Folder(j)
}
func (e *Executor) workName(id string) string { return "work/" + e.owner() + "/" + id }

func life(g job.Generation) string { return strconv.FormatUint(uint64(g.Number()), 10) }

// lifeOf is the life in a name below jobs or outputs.
func lifeOf(name string) job.Generation {
	n, _ := strconv.ParseUint(path.Base(path.Dir(name)), 10, 32)
	return job.Generation(n)
}

// owner is OWNER for what the subjob leaves.
func (r *run) owner() string { return cluster.Owner(r.e.o.Operator, r.rec.Journal) }

func (r *run) resultName() string {
	return path.Join("jobs", r.owner(), store.Folder(r.rec.Job), life(r.rec.Generation), r.rec.Token.String())
}

func (r *run) outputName(committed job.Range) string {
	return path.Join(r.e.outputNames(r.rec.Job), life(r.rec.Generation), fmt.Sprintf("%012d-%012d.%s", committed.From, committed.To,
		r.rec.Token))
}

// parseOutput parses the last element of an output's name.
func parseOutput(name string) (r job.Range, t job.Token, ok bool) {
	span, token, _ := strings.Cut(path.Base(name), ".")
	from, to, _ := strings.Cut(span, "-")
	var err1, err2, err3 error
	r.From, err1 = strconv.ParseInt(from, 10, 64)
	r.To, err2 = strconv.ParseInt(to, 10, 64)
	t, err3 = job.ParseToken(token)
	return r, t, err1 == nil && err2 == nil && err3 == nil
}

// place is where a Pod writes one of the things it leaves.
func (r *run) place(role string) string {
	return path.Join("pods", r.owner(), r.rec.Token.String(), role)
}
