//go:build kubernetes

package kubernetes

import (
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"slices"
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
	"sluice.dev/sluice/internal/edge/journal"
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

// record is what a restarted operator must know of a subjob, kept as an annotation of its Pod. It holds no secret.
type record struct {
	Token job.Token
	// Journal that made the token.
	Journal    string `json:",omitempty"`
	Job        job.ID
	Generation job.Generation
	Slice      job.SliceID
	Range      job.Range
	Start, End quantity.Instant
	Grace      time.Duration
	// Resume is the subjob whose checkpoint it starts from; zero for none.
	Resume job.Token `json:",omitzero"`
	executor.Origin
}

// recordOf reads a Pod's record and verifies its seal, since its witness counts against the journal, and a forged one could pass a Pod's
// end off as a subjob's. Errors are of kind Corrupt. A record of another journal is sealed with that one's key; it is returned, and
// nothing in it is trusted.
func (o *Options) recordOf(p *corev1.Pod) (rec record, err error) {
	if rec, err = recordOf(p); err != nil || rec.Journal != o.Journal {
		return rec, err
	}
	if name := o.podName(&rec); p.Name != name || p.Namespace != o.namespace(&rec) {
		return rec, errkind.Errorf(errkind.Corrupt, "Pod %s/%s has the record of Pod %s/%s", p.Namespace, p.Name, o.namespace(&rec), name)
	}
	if !cluster.Sealed(o.Key, o.Made, p.CreationTimestamp.Time, p.Namespace, p.Name, p.Annotations) {
		return rec, errkind.Errorf(errkind.Corrupt, "Pod %s/%s: annotation %s is not what this operator has written: somebody else has "+
			"made or changed it", p.Namespace, p.Name, cluster.AnnotationRun)
	}
	return rec, nil
}

func recordOf(p *corev1.Pod) (rec record, err error) {
	if err = json.Unmarshal([]byte(p.Annotations[cluster.AnnotationRun]), &rec); err == nil &&
		(rec.Token.String() != p.Labels[cluster.LabelToken] || rec.Journal != p.Labels[cluster.LabelJournal]) {
		err = errkind.Errorf(errkind.Corrupt, "it is of subjob %v of journal %q", rec.Token, rec.Journal)
	}
	if err != nil {
		return rec, errkind.Errorf(errkind.Corrupt, "annotation %s of Pod %s/%s: %w", cluster.AnnotationRun, p.Namespace, p.Name, err)
	}
	return rec, nil
}

// orderOf is the order that a Pod has; without one its lease's end alone counts.
func orderOf(p *corev1.Pod, rec *record) pod.Order {
	o := pod.Order{End: rec.End}
	if text := p.Annotations[cluster.AnnotationNotice]; text != "" {
		_ = json.Unmarshal([]byte(text), &o) // an unreadable one is written anew
	}
	return o
}

// newRecord makes the record of a subjob to start.
func newRecord(m *protocol.Message, witness journal.Position, of string) record {
	w := m.Body.(*protocol.Work)
	return record{
		Token: m.Token, Journal: of, Job: m.Job, Generation: m.Generation.Number(), Slice: w.Slice, Range: w.Range, Start: w.Start,
		End:   w.End,
		Grace: w.Spec.Launch.Grace, Resume: w.Plan.Resume, Origin: executor.Origin{Witness: witness, Node: m.From, Executor: m.To},
	}
}

// same reports whether two records are of one subjob.
func (rec *record) same(other *record) bool {
	return rec.Job == other.Job && rec.Generation == other.Generation && rec.Range == other.Range && rec.Slice == other.Slice
}

// namespace of a subjob's Pod.
func (o *Options) namespace(rec *record) string {
	if ns, _, ok := cluster.SplitJob(rec.Job); ok {
		return ns
	}
	return o.Namespace
}

// podName is the name of a subjob's Pod and claim.
func (o *Options) podName(rec *record) string {
	return cluster.PodName(o.Operator, rec.Journal, rec.Token)
}

// blueprint makes what the cluster is given for a subjob. Invariant: what it makes is a function of its fields and of the time alone.
type blueprint struct {
	o   *Options
	rec *record
	// work is what to start, and asked when that was wanted; nil for a subjob that was found.
	work   *protocol.Work
	asked  quantity.Instant
	device cluster.Device
}

// locate reads the device that the slice stands for.
func (b *blueprint) locate() error {
	s, _ := b.o.Slice(b.rec.Slice)
	d, err := cluster.ParseDevice(s.Device)
	if err != nil {
		return errkind.Errorf(errkind.NotFound, "slice %s: %w", b.rec.Slice, err)
	}
	b.device = d
	return nil
}

func (b *blueprint) labels() map[string]string {
	all := map[string]string{cluster.LabelOperator: b.o.Operator, cluster.LabelJob: cluster.JobLabel(b.rec.Job),
		cluster.LabelToken: b.rec.Token.String()}
	if b.rec.Journal != "" {
		all[cluster.LabelJournal] = b.rec.Journal
	}
	return all
}

// makePod builds a subjob's Pod. sealed is its run file.
func (b *blueprint) makePod(sealed string, now quantity.Instant) (*corev1.Pod, error) {
	rec, err := json.Marshal(b.rec)
	if err != nil {
		return nil, err
	}
	o, launch := b.o, &b.work.Spec.Launch
	linger := seconds(b.rec.Grace + o.Linger)
	notes := map[string]string{cluster.AnnotationSlice: string(b.rec.Slice), cluster.AnnotationRun: string(rec)}
	if seal := cluster.Seal(o.Key, o.namespace(b.rec), o.podName(b.rec), string(rec)); seal != "" {
		notes[cluster.AnnotationSeal] = seal
	}
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: o.podName(b.rec), Namespace: o.namespace(b.rec), Labels: b.labels(), Finalizers: []string{cluster.Finalizer},
			Annotations: notes,
		},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, ActiveDeadlineSeconds: active(b.rec.End.Add(o.Linger), now),
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
						Values: []string{b.device.Node}}},
				}}}}},
			InitContainers: []corev1.Container{{
				Name: installer, Image: o.ShimImage, Command: []string{"/sluice-shim", pod.Install, mount, o.podName(b.rec)},
				Env: []corev1.EnvVar{{Name: pod.Sealed, Value: sealed},
					{Name: pod.KeyText, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
						LocalObjectReference: corev1.LocalObjectReference{Name: o.keysName()}, Key: pod.KeyOf(sealed),
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
	if one, name := resource.MustParse("1"), corev1.ResourceName(b.device.Resource); name != "" {
		c.Resources.Requests, c.Resources.Limits = with(c.Resources.Requests, name, one), with(c.Resources.Limits, name, one)
	} else {
		p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: claimName, ResourceClaimName: ptr(o.podName(b.rec))}}
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
func (b *blueprint) owned(p *corev1.Pod) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: b.o.podName(b.rec), Namespace: p.Namespace, Labels: b.labels(),
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: p.Name, UID: p.UID}},
	}
}

// makeClaim requests the subjob's device by a selector that matches no other.
func (b *blueprint) makeClaim(p *corev1.Pod, selector string) *resourcev1.ResourceClaim {
	return &resourcev1.ResourceClaim{
		ObjectMeta: b.owned(p),
		Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{
			Name: claimName,
			Exactly: &resourcev1.ExactDeviceRequest{
				DeviceClassName: b.device.Class, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1,
				Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: selector}}},
			},
		}}}},
	}
}

// makeRun builds the run file, without URLs of objects.
func (b *blueprint) makeRun(asked quantity.Instant) *pod.Run {
	w, l, o := b.work, &b.work.Spec.Launch, b.o
	f := &pod.Run{
		Part: executor.Part{Token: b.rec.Token, Job: b.rec.Job, Generation: b.rec.Generation, Slice: b.rec.Slice, Kind: w.Spec.Kind,
			Range: w.Range, Member: w.Plan.Member, Members: w.Plan.Members, Total: w.Spec.Total, Grid: w.Spec.Grid,
			Saves: w.Spec.Saves, Bars: w.Plan.Bars},
		Start: w.Start, End: w.End, Asked: asked, Linger: o.Linger, Grace: l.Grace, WarnSignal: l.WarnSignal, WarnBefore: l.WarnBefore,
		Command: l.Command, Adapter: l.Adapter, Env: l.Env, Subdir: l.Subdir, Umask: l.Umask, Memory: w.Demand[trp.Memory],
		Resident:    w.Spec.Resident,
		LogLimit:    cmp.Or(l.LogLimit, o.LogLimit),
		OutputLimit: cmp.Or(l.OutputLimit, o.OutputLimit), Report: o.Report,
	}
	if s, ok := o.Slice(w.Slice); ok && s.Capacity[trp.Memory] > 0 {
		f.Memory = s.Capacity[trp.Memory]
	}
	if option := w.Spec.Option(w.Plan.Option); option != nil {
		f.Env = slices.Concat(f.Env, option.Env, []string{"SLUICE_OPTION=" + option.Name})
	}
	return f
}
