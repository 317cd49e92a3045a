//go:build kubernetes

package operator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/edge/cluster"
	"sluice.dev/sluice/internal/edge/config"
	"sluice.dev/sluice/internal/edge/store"
	"sluice.dev/sluice/internal/face/api"
)

// mostFits bounds the kinds of slices that an explanation names.
const mostFits = 50

// answer is a Request's status besides its condition.
func (d *desk) answer(ctx context.Context, o *object) (map[string]any, error) {
	id := cluster.JobID(o.GetNamespace(), ask(o, "job"))
	switch what := ask(o, "ask"); what {
	case config.AskExplain:
		e, err := d.service.Explain(ctx, id)
		if err != nil {
			return nil, err
		}
		return inJSON(discreet(&e, o.GetNamespace()))
	case config.AskJob:
		j, err := api.GetJob(ctx, d.service, id)
		if err != nil {
			return nil, err
		}
		everyText(j.ProtoReflect(), func(text string) string { return cluster.Discreet(text, o.GetNamespace()) })
		return inJSON(j)
	case config.AskDryRun:
		return d.dryRun(ctx, o)
	case config.AskUpload:
		return d.upload(ctx, o)
	default:
		return nil, errkind.Errorf(errkind.Unsupported, "ask: this operator knows no %s: it is older than the client", what)
	}
}

func inJSON(m proto.Message) (map[string]any, error) {
	text, err := protojson.Marshal(m)
	if err == nil && len(text) > longestAnswer {
		err = errkind.Errorf(errkind.Exhausted, "the answer has %d bytes, and an object of the cluster at most %d: ask beside the operator",
			len(text), longestAnswer)
	}
	return map[string]any{"answer": string(text)}, err
}

// dryRun judges a job file as if its object existed, whatever else has its name, and changes nothing.
func (d *desk) dryRun(ctx context.Context, o *object) (map[string]any, error) {
	list, err := config.ParseJobs("file", []byte(ask(o, "file")))
	if err != nil {
		return nil, placed(err)
	}
	if len(list) != 1 {
		return nil, errkind.Errorf(errkind.Invalid, "file: has %d jobs; want 1", len(list))
	}
	j := list[0]
	if err = startable(j.Spec); err != nil {
		return nil, err
	}
	if err = d.admitted(o.GetNamespace(), j.Spec.Queue); err != nil {
		return nil, err
	}
	if digest := j.Stored(); digest != "" && d.store != nil {
		if _, err = d.store.Stat(ctx, store.Digest(digest)); err != nil {
			return nil, fmt.Errorf("spec.workdir: %w", err)
		}
	}
	name, free := j.Spec.Name, cluster.JobID(o.GetNamespace(), o.GetName())
	j.Spec.Name = free
	d.dry.Lock() // one at a time: each looks at every slice
	defer d.dry.Unlock()
	e, err := d.service.DryRun(ctx, j.Spec)
	if err != nil {
		return nil, errkind.Errorf(errkind.Of(err), "%s", strings.ReplaceAll(err.Error(), string(free), string(name)))
	}
	m := discreet(&e, o.GetNamespace())
	m.Job.Name = string(name)
	return inJSON(m)
}

// upload lends a place for an object that is not stored, and turns what was sent into that object. It is unnamed: a job has to name it
// within the hour.
func (d *desk) upload(ctx context.Context, o *object) (map[string]any, error) {
	if d.store == nil {
		return nil, errkind.Errorf(errkind.Unsupported, "the operator's store lends no places to upload to")
	}
	digest, err := store.ParseDigest(ask(o, "digest"))
	if err != nil {
		return nil, err
	}
	switch err = d.store.Renew(ctx, digest); {
	case err == nil:
		return map[string]any{"url": nil}, d.store.Drop(ctx, d.place(o)) // stored already
	case errkind.Of(err) != errkind.NotFound:
		return nil, err
	}
	if sent, _, _ := unstructured.NestedBool(o.Object, "spec", "sent"); sent {
		want, _, _ := unstructured.NestedInt64(o.Object, "spec", "bytes")
		n, failed := d.store.Written(ctx, d.place(o))
		switch {
		case failed != nil:
			return nil, failed
		case n != want:
			return nil, errors.Join(errkind.Errorf(errkind.Invalid, "%d bytes were written, and the request says %d", n, want),
				d.store.Drop(ctx, d.place(o)))
		}
		_, err = d.store.Adopt(ctx, d.place(o), digest)
		return map[string]any{"url": nil}, err
	}
	url, err := d.store.LendPut(ctx, d.place(o), lingers-time.Minute)
	return map[string]any{"url": url}, err
}

// discreet makes an explanation fit for one namespace: other namespaces' jobs are not named, and of slices that are alike to the job only
// one is listed.
func discreet(e *status.Explanation, namespace string) *pb.Explanation {
	theirs := map[string]bool{}
	hide := func(id *job.ID) {
		if *id != "" && !cluster.Within(*id, namespace) {
			theirs[string(*id)] = true
			*id = cluster.Another
		}
	}
	for i := range e.Losses {
		hide(&e.Losses[i].Winner)
	}
	hide(&e.Rank.Latest.Winner)
	for i := range e.AirlockSteps {
		hide(&e.AirlockSteps[i].Spared)
	}
	e.Prospect = cluster.Hide(e.Prospect, theirs)
	for i := range e.AirlockSteps {
		e.AirlockSteps[i].Below = cluster.Hide(e.AirlockSteps[i].Below, theirs)
	}
	for i := range e.Reclaims {
		s := &e.Reclaims[i]
		if who := cluster.Whose(s.Who, namespace); who != s.Who {
			s.Who, s.Wish = who, ""
		}
	}
	seen, fits := map[string]bool{}, e.Slices[:0:0]
	for _, f := range e.Slices {
		like := f
		like.Slice = ""
		if key := fmt.Sprintf("%+v", like); !seen[key] && len(fits) < mostFits {
			seen[key], fits = true, append(fits, f)
		}
	}
	e.Slices = fits
	m := api.ExplanationMessage(e)
	everyText(m.ProtoReflect(), func(text string) string { return cluster.Discreet(text, namespace) })
	return m
}

// everyText maps all strings of a message, recursively, but for the job file, which is its owner's own.
func everyText(m protoreflect.Message, change func(string) string) {
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		text, message := f.Kind() == protoreflect.StringKind && f.Name() != "spec", f.Message() != nil
		switch {
		case f.IsMap():
		case f.IsList() && (text || message):
			for i, l := 0, v.List(); i < l.Len(); i++ {
				if message {
					everyText(l.Get(i).Message(), change)
				} else {
					l.Set(i, protoreflect.ValueOfString(change(l.Get(i).String())))
				}
			}
		case message:
			everyText(v.Message(), change)
		case text:
			m.Set(f, protoreflect.ValueOfString(change(v.String())))
		}
		return true
	})
}

var requests = resource("requests") //nolint:gochecknoglobals // as jobs

const (
	// answered is the condition type of a Request.
	answered = "Answered"
	// lingers is how long after its creation a Request is kept that its client has not deleted.
	lingers = 20 * time.Minute
	// clerks answer Requests concurrently. One reads an upload from end to end.
	clerks = 2
	// placeKey prefixes work items that clear a place; no object's key begins so.
	placeKey = "place:"
	// longestAnswer bounds an answer in bytes: etcd takes objects up to 1.5 MiB.
	longestAnswer = 512 << 10
)

// desk answers Requests. A user that may create one in a namespace may ask about that namespace's jobs; the API server has authorized it.
// All state is soft: an unanswered Request is answered by the next process. Of several operators the first to answer has it.
type desk struct {
	service api.Service
	// store lends places for uploads; nil: uploads are not possible.
	store store.Lender
	// admitted checks whether a namespace's jobs may name a queue.
	admitted func(namespace, queue string) error
	// dry serializes dry runs.
	dry    sync.Mutex
	client dynamic.Interface
	log    *slog.Logger
	// operator is in the names of places.
	operator string
	asked    cache.SharedIndexInformer
	work     workqueue.TypedRateLimitingInterface[string]
}

// ask reads a string of a Request's spec.
func ask(o *object, key string) string {
	text, _, _ := unstructured.NestedString(o.Object, "spec", key)
	return text
}

// place is where an upload is written, by the holder of the URL.
func (d *desk) place(o *object) string { return "uploads/" + d.operator + "/" + string(o.GetUID()) }
