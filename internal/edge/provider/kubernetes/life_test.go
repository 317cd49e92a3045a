//go:build kubernetes

package kubernetes

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/provider"
)

const token = "sluice-join-1-a-secret"

func pilot(name string) provider.Pilot {
	return provider.Pilot{Name: name, Length: 10 * time.Minute, Head: "head:7118", Token: token}
}

// scene is a provider of a host, whose clock is at.
type scene struct {
	*host
	k  *Kubernetes
	at time.Time
}

func newScene(t *testing.T) *scene {
	s := &scene{host: newHost(t), at: time.Now()}
	s.restart()
	return s
}

// restart is the head's: what was in memory is gone.
func (s *scene) restart() {
	s.k = s.open(s.options())
	s.k.now = func() time.Time { return s.at }
}

func (s *scene) submit(name string) {
	s.Helper()
	if err := s.k.Submit(s.Context(), pilot(name)); err != nil {
		s.Fatal(err)
	}
}

func (s *scene) look() []provider.Seen {
	s.Helper()
	l, err := s.k.Look(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	return l.Seen
}

// one is the only copy that a look shows.
func (s *scene) one() provider.Seen {
	s.Helper()
	list := s.look()
	if len(list) != 1 {
		s.Fatalf("%+v: want one", list)
	}
	return list[0]
}

// pod is a pilot's, and secret its Secret; nil: there is none.
func (s *scene) pod(name string) *corev1.Pod {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.get(s.k.podName(name))
}

func (s *scene) secret(name string) *corev1.Secret {
	o, err := s.api.Tracker().Get(secretsOf(), namespace, s.k.podName(name))
	if err != nil {
		return nil
	}
	return o.(*corev1.Secret)
}

// bind gives a Pod a machine on which a container waits for a reason.
func (s *scene) bind(name, reason, message string) {
	s.each(name, func(p *corev1.Pod) bool {
		now := metav1.NewTime(s.at)
		p.Spec.NodeName, p.Status.StartTime = "n0", &now
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: container, Image: "registry.example.com/train:v1",
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}}
		return true
	})
}

func refuseSecrets(err error) func(string, string, string) error {
	return func(verb, resource, _ string) error {
		if verb == "create" && resource == "secrets" {
			return err
		}
		return nil
	}
}

var errLost = errors.New("read tcp: connection reset by peer")

// A head that lost the answer about a Secret makes it with its next look, and the Pod is its owner.
func TestASecretIsMadeLater(t *testing.T) {
	s := newScene(t)
	s.fail = refuseSecrets(errLost)
	if err := s.k.Submit(t.Context(), pilot("pool-a")); errkind.Of(err) != errkind.Unavailable {
		t.Fatalf("%v, want unavailable", err)
	}
	if s.one(); s.secret("pool-a") != nil {
		t.Fatal("there is a Secret")
	}
	s.fail = nil
	if seen := s.one(); seen.State != provider.Waiting {
		t.Errorf("%+v", seen)
	}
	x, p := s.secret("pool-a"), s.pod("pool-a")
	if x == nil || string(x.Data[tokenKey]) != token || len(x.OwnerReferences) != 1 || x.OwnerReferences[0].UID != p.UID {
		t.Errorf("%+v, want the token, owned by the Pod", x)
	}
	s.called("")
	if s.look(); s.called("") != 1 {
		t.Error("a look at a Pod that lacks nothing is more than one call")
	}
}

// A head that died between a Pod and its Secret does not know the token any more.
func TestAPodWithoutSecretIsDeleted(t *testing.T) {
	s := newScene(t)
	s.submit("pool-b")
	s.fail = refuseSecrets(errLost)
	if err := s.k.Submit(t.Context(), pilot("pool-a")); err == nil {
		t.Fatal("want an error")
	}
	s.fail = nil
	s.restart()
	list := s.look()
	if len(list) != 2 || list[0].State != provider.Ending || !list[0].Failed || list[1].State != provider.Waiting {
		t.Errorf("%+v, want the first deleted and the second as it was", list)
	}
	if list = s.look(); len(list) != 2 || list[0].State != provider.Ended || !list[0].Failed || list[0].Why == "" {
		t.Errorf("%+v, want the first shown as failed", list)
	}
	if s.pod("pool-a") != nil || s.pod("pool-b") == nil {
		t.Error("want the Pod without Secret gone, and the other there")
	}
}

// Where the quota of Secrets is full meanwhile nobody knows, and such a Pod is left alone.
func TestSecretsThatMayNotBeMade(t *testing.T) {
	s := newScene(t)
	s.fail = refuseSecrets(errLost)
	if err := s.k.Submit(t.Context(), pilot("pool-a")); err == nil {
		t.Fatal("want an error")
	}
	s.fail = func(verb, resource, name string) error {
		if verb == "create" && resource == "secrets" {
			return apierrors.NewForbidden(secretsOf().GroupResource(), name, errors.New("no"))
		}
		return nil
	}
	s.restart()
	if seen := s.one(); seen.State != provider.Waiting {
		t.Errorf("%+v, want it as it was", seen)
	}
}

// A Secret that is refused leaves no Pod behind.
func TestASecretThatIsRefused(t *testing.T) {
	s := newScene(t)
	s.fail = refuseSecrets(apierrors.NewForbidden(secretsOf().GroupResource(), "x", errors.New("exceeded quota: secrets")))
	if err := s.k.Submit(t.Context(), pilot("pool-a")); errkind.Of(err) != errkind.Exhausted {
		t.Errorf("%v, want exhausted", err)
	}
	if s.pod("pool-a") != nil {
		t.Error("its Pod is there")
	}
}

// A cancelled pilot whose Pod appears late gets no token.
func TestALatePodOfACancelledPilot(t *testing.T) {
	s := newScene(t)
	s.Deafen(true)
	if err := s.k.Submit(t.Context(), pilot("pool-a")); err == nil {
		t.Fatal("want an error")
	}
	s.Deafen(false)
	late := s.pod("pool-a")
	s.each("", func(*corev1.Pod) bool { return false })
	if err := s.k.Cancel(t.Context(), []string{"pool-a"}); err != nil {
		t.Fatal(err)
	}
	if err := s.api.Tracker().Add(late); err != nil {
		t.Fatal(err)
	}
	if seen := s.one(); seen.State != provider.Ending || s.pod("pool-a") != nil || s.secret("pool-a") != nil {
		t.Errorf("%+v, want it deleted", seen)
	}
}

// An image that its registry does not have stops the pool after two minutes, until a person tries again.
func TestAnImageThatIsNotThere(t *testing.T) {
	s := newScene(t)
	s.submit("pool-a")
	s.bind("pool-a", "ErrImagePull", "manifest unknown")
	if seen := s.one(); seen.State != provider.Running || !strings.Contains(seen.Why, "manifest unknown") {
		t.Errorf("%+v", seen)
	}
	s.at = s.at.Add(stuckFor - time.Second)
	s.bind("pool-a", "ImagePullBackOff", "Back-off pulling image") // it says less
	if seen := s.one(); seen.State != provider.Running {
		t.Errorf("%+v, want it left to its kubelet for two minutes", seen)
	}
	s.at = s.at.Add(time.Second)
	if seen := s.one(); seen.State != provider.Ending || !seen.Failed || !strings.Contains(seen.Why, "manifest unknown") {
		t.Errorf("%+v, want it ended as failed", seen)
	}
	s.called("")
	err := s.k.Submit(t.Context(), pilot("pool-b"))
	if errkind.Of(err) != errkind.Invalid || !strings.Contains(err.Error(), "manifest unknown") || s.called("") != 0 {
		t.Errorf("%v, want it refused for the image, and nobody asked", err)
	}
	if trial, err := s.k.Try(t.Context(), pilot("pool-b")); err != nil || !trial.Taken {
		t.Errorf("%+v, %v", trial, err)
	}
	s.submit("pool-b")
}

// A Pod that nobody may delete, as by an admission webhook, keeps no other from being seen, and none from being ended.
func TestOnePodThatCanNotBeDeleted(t *testing.T) {
	s := newScene(t)
	for _, name := range []string{"pool-a", "pool-b"} {
		s.submit(name)
	}
	s.fail = func(verb, _, name string) error {
		if verb == "delete" && strings.HasSuffix(name, "pool-a") {
			return errors.New("admission webhook denied the request")
		}
		return nil
	}
	if err := s.k.Cancel(t.Context(), []string{"pool-a", "pool-b"}); err == nil || s.pod("pool-b") != nil {
		t.Errorf("%v, want the one that can be deleted away, and the other told", err)
	}
	s.bind("pool-a", "InvalidImageName", "no")
	s.look()
	s.at = s.at.Add(stuckFor)
	if seen := s.look(); len(seen) == 0 || !strings.Contains(seen[0].Why, "admission webhook") {
		t.Errorf("%+v, want it seen, and why it is there", seen)
	}
}

// After an hour one Pod is tried, since somebody may have mended it.
func TestAnImageThatIsThereLater(t *testing.T) {
	s := newScene(t)
	s.submit("pool-a")
	s.bind("pool-a", "ErrImagePull", "manifest unknown")
	s.one()
	s.at = s.at.Add(stuckFor)
	s.one()
	s.at = s.at.Add(tryAgain - time.Second)
	if err := s.k.Submit(t.Context(), pilot("pool-b")); errkind.Of(err) != errkind.Invalid {
		t.Errorf("%v, want it refused", err)
	}
	s.at = s.at.Add(time.Second)
	s.submit("pool-b")
	if err := s.k.Submit(t.Context(), pilot("pool-c")); errkind.Of(err) != errkind.Invalid {
		t.Errorf("%v, want one tried", err)
	}
}

// A registry that refuses while it restarts, and then does not answer, has said nothing of the image.
func TestARegistryThatRestarts(t *testing.T) {
	s := newScene(t)
	s.submit("pool-a")
	s.bind("pool-a", "ErrImagePull", "unauthorized")
	s.one()
	s.bind("pool-a", "ErrImagePull", "dial tcp: i/o timeout")
	s.one()
	s.bind("pool-a", "ImagePullBackOff", "Back-off pulling image")
	s.at = s.at.Add(stuckFor)
	if seen := s.one(); seen.State != provider.Ending {
		t.Errorf("%+v, want it ended", seen)
	}
	s.submit("pool-b")
}

// A registry that does not answer may do so later.
func TestARegistryThatIsAway(t *testing.T) {
	s := newScene(t)
	s.submit("pool-a")
	for range 2 {
		s.bind("pool-a", "ErrImagePull", "dial tcp: i/o timeout")
		s.one()
		s.at = s.at.Add(stuckFor)
	}
	if seen := s.one(); seen.State != provider.Ending || !seen.Failed {
		t.Errorf("%+v, want it ended as failed", seen)
	}
	s.submit("pool-b")
}

// One that recovers begins anew.
func TestAPodThatRecovers(t *testing.T) {
	s := newScene(t)
	s.submit("pool-a")
	s.bind("pool-a", "ErrImagePull", "manifest unknown")
	s.one()
	s.at = s.at.Add(stuckFor)
	s.bind("pool-a", "PodInitializing", "")
	s.one()
	s.bind("pool-a", "ErrImagePull", "manifest unknown")
	if seen := s.one(); seen.State != provider.Running {
		t.Errorf("%+v, want it there for two minutes more", seen)
	}
}

// What others take back is seen so, also once it is gone, for a minute.
func TestAPreemptedPodThatIsGone(t *testing.T) {
	s := newScene(t)
	s.submit("pool-a")
	s.Start("pool-a")
	s.Preempt("pool-a")
	if seen := s.one(); !seen.Preempted || seen.State != provider.Ending {
		t.Errorf("%+v", seen)
	}
	s.each("", func(*corev1.Pod) bool { return false })
	for _, at := range []time.Duration{0, partingFor - time.Second} {
		s.at = s.at.Add(at)
		if seen := s.one(); !seen.Preempted || seen.Failed || seen.State != provider.Ended || seen.End.After(s.at) {
			t.Errorf("%+v, want it ended, since others took it", seen)
		}
	}
	s.at = s.at.Add(partingFor)
	if list := s.look(); len(list) != 0 || len(s.k.last) != 0 {
		t.Errorf("%+v is remembered for ever", list)
	}
}

// Who deletes a Pod cancels it, also one that its cluster takes back then; that it did not end with 0 is no failure.
func TestADeletedPodHasNotFailed(t *testing.T) {
	s := newScene(t)
	s.submit("pool-a")
	s.Start("pool-a")
	s.each("", func(p *corev1.Pod) bool {
		at := metav1.NewTime(s.at.Add(DefaultGrace))
		p.DeletionTimestamp = &at
		return true
	})
	if seen := s.one(); seen.State != provider.Ending || seen.Preempted {
		t.Errorf("%+v", seen)
	}
	s.Preempt("pool-a")
	if seen := s.one(); !seen.Preempted {
		t.Errorf("%+v, want it taken back by now", seen)
	}
	s.each("", func(p *corev1.Pod) bool {
		p.Status.Phase = corev1.PodFailed
		return true
	})
	if seen := s.one(); seen.State != provider.Ended || seen.Failed || !seen.Preempted {
		t.Errorf("%+v, want it ended without a failure", seen)
	}
}

// Objects of Pods that have ended go: at once, or when people have had time to read why.
func TestEndedPodsAreRemoved(t *testing.T) {
	s := newScene(t)
	s.submit("well")
	s.submit("ill")
	s.Start("")
	s.End("well", false)
	s.End("ill", true)
	list := s.look()
	if len(list) != 2 || !list[0].Failed || !strings.Contains(list[0].Why, "the head can't be reached") || list[1].Failed {
		t.Errorf("%+v", list)
	}
	s.look()
	if s.pod("well") != nil || s.secret("well") != nil || s.pod("ill") == nil {
		t.Error("want the one that ended well gone, and the failed one there")
	}
	s.at = s.at.Add(keepFailed)
	s.look()
	if len(s.look()) != 0 {
		t.Error("want both gone")
	}
}

// A deleted Pod is deleted by force once its time is over and its machine is not there, and not before.
func TestAPodOfAMachineThatIsGone(t *testing.T) {
	s := newScene(t)
	s.submit("pool-a")
	s.Start("pool-a")
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n0"}}
	if err := s.api.Tracker().Add(node); err != nil {
		t.Fatal(err)
	}
	cancel := func() {
		t.Helper()
		if err := s.k.Cancel(t.Context(), []string{"pool-a"}); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	for _, after := range []time.Duration{0, DefaultGrace + forceAfter + time.Second} {
		s.at = s.at.Add(after)
		if cancel(); s.pod("pool-a") == nil {
			t.Fatal("it was deleted by force while its machine is there")
		}
	}
	forbidden := func(verb, resource, name string) error {
		if resource == "nodes" {
			return apierrors.NewForbidden(corev1.Resource("nodes"), name, errors.New("no"))
		}
		return nil
	}
	s.fail = forbidden
	if cancel(); s.pod("pool-a") == nil {
		t.Fatal("it was deleted by force by who may not read machines")
	}
	s.fail = nil
	nodes := corev1.SchemeGroupVersion.WithResource("nodes")
	if err := s.api.Tracker().Delete(nodes, "", "n0"); err != nil {
		t.Fatal(err)
	}
	late := s.at
	s.at = s.pod("pool-a").DeletionTimestamp.Add(forceAfter - time.Second)
	if cancel(); s.pod("pool-a") == nil {
		t.Fatal("it was deleted by force before its machine could be missed")
	}
	s.at = late
	if cancel(); s.pod("pool-a") != nil {
		t.Error("its machine is gone, and it is there")
	}
}

// The scheduler's words are why it waits.
func TestUnschedulable(t *testing.T) {
	s := newScene(t)
	s.submit("pool-a")
	s.each("", func(p *corev1.Pod) bool {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable",
			Message: "0/3 nodes are available"}}
		return true
	})
	if seen := s.one(); seen.State != provider.Waiting || seen.Why != "0/3 nodes are available" {
		t.Errorf("%+v", seen)
	}
}

// What a Pod is: its token is nowhere in it, it may do nothing, and it ends by itself.
func TestThePod(t *testing.T) {
	s := newScene(t)
	p := s.k.makePod(pilot("pool-a"))
	text, err := json.Marshal(p)
	if err != nil || strings.Contains(string(text), token) {
		t.Errorf("%v: the token is in %s", err, text)
	}
	if *p.Spec.ActiveDeadlineSeconds != 630 || *p.Spec.TerminationGracePeriodSeconds != 30 ||
		*p.Spec.PreemptionPolicy != corev1.PreemptNever || *p.Spec.AutomountServiceAccountToken ||
		!*p.Spec.SecurityContext.RunAsNonRoot || p.Spec.RestartPolicy != corev1.RestartPolicyNever {
		t.Errorf("%+v", p.Spec)
	}
	for _, c := range append(p.Spec.InitContainers, p.Spec.Containers...) {
		if *c.SecurityContext.AllowPrivilegeEscalation || len(c.SecurityContext.Capabilities.Drop) != 1 || len(c.Env) > 0 {
			t.Errorf("%+v", c)
		}
	}
	main, init := &p.Spec.Containers[0], &p.Spec.InitContainers[0]
	for _, m := range main.VolumeMounts {
		if m.MountPath == mountSecret {
			t.Error("the work's container has the Secret")
		}
	}
	if _, has := init.Resources.Limits["nvidia.com/mig-1g.10gb"]; has || main.Resources.Limits.Memory().String() != "4Gi" {
		t.Errorf("%+v, %+v", init.Resources, main.Resources)
	}
	if line := strings.Join(main.Command, " "); !strings.Contains(line, " --until 10m0s --grace 25s --ownerless 1m0s") {
		t.Errorf("it runs %s", line)
	}
	if v := p.Spec.Volumes[1].Secret; v.SecretName != p.Name || *v.DefaultMode != 0o400 {
		t.Errorf("%+v", v)
	}
}

func TestKindOf(t *testing.T) {
	pods := podsOf().GroupResource()
	for _, c := range []struct {
		err  error
		want errkind.Kind
	}{
		{errLost, errkind.Unavailable},
		{apierrors.NewInternalError(errLost), errkind.Unavailable},
		{apierrors.NewTooManyRequests("busy", 1), errkind.Unavailable},
		{apierrors.NewServerTimeout(pods, "create", 1), errkind.Unavailable},
		{apierrors.NewResourceExpired("the list is too old"), errkind.Unavailable},
		{apierrors.NewAlreadyExists(pods, "p"), errkind.Unavailable},
		{apierrors.NewBadRequest("no"), errkind.Invalid},
		{apierrors.NewNotFound(corev1.Resource("namespaces"), "n"), errkind.Invalid},
		{apierrors.NewUnauthorized("who"), errkind.Denied},
		{apierrors.NewForbidden(pods, "p", errors.New(`User "u" cannot create`)), errkind.Denied},
		{apierrors.NewForbidden(pods, "p", errors.New("violates PodSecurity")), errkind.Denied},
		{apierrors.NewForbidden(pods, "p", errors.New("exceeded quota: q")), errkind.Exhausted},
		{apierrors.NewForbidden(pods, "p", errors.New("no PriorityClass with name x was found")), errkind.Invalid},
		{apierrors.NewForbidden(pods, "p", errors.New("maximum memory usage per Container is 1Gi")), errkind.Invalid},
	} {
		if got := kindOf(c.err); got != c.want {
			t.Errorf("%v: %v, want %v", c.err, got, c.want)
		}
	}
}
