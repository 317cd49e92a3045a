//go:build kubernetes

package operator

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/edge/cluster"
	"sluice.dev/sluice/internal/edge/config"
	"sluice.dev/sluice/internal/edge/store"
	"sluice.dev/sluice/internal/face/api"
)

// mostFits is how many kinds of slices an explanation names: of tens of thousands most are alike.
const mostFits = 50

// answer is what a Request's status says besides its condition.
func (d *desk) answer(ctx context.Context, o *object) (map[string]any, error) {
	id := cluster.JobID(o.GetNamespace(), ask(o, "job"))
	switch what := ask(o, "ask"); what {
	case config.AskExplain:
		e, err := d.service.Explain(ctx, id)
		if err != nil {
			return nil, err
		}
		discreet(&e, o.GetNamespace())
		return inJSON(api.ExplanationMessage(&e))
	case config.AskJob:
		j, err := api.GetJob(ctx, d.service, id)
		if err != nil {
			return nil, err
		}
		return inJSON(j)
	case config.AskUpload:
		return d.upload(ctx, o)
	default:
		return nil, errkind.Errorf(errkind.Unsupported, "ask: this operator knows no %s: it is older than who asks", what)
	}
}

func inJSON(m proto.Message) (map[string]any, error) {
	text, err := protojson.Marshal(m)
	if err == nil && len(text) > longestAnswer {
		err = errkind.Errorf(errkind.Exhausted, "the answer has %d bytes, and an object of the cluster at most %d: ask beside the operator", len(text), longestAnswer)
	}
	return map[string]any{"answer": string(text)}, err
}

// upload lends a place for what is not in the store, and once all of it was sent has it be an object. Nothing needs it by name yet: a job has to, within the hour.
func (d *desk) upload(ctx context.Context, o *object) (map[string]any, error) {
	if d.store == nil {
		return nil, errkind.Errorf(errkind.Unsupported, "the operator's store lends no places to upload to")
	}
	digest, err := store.ParseDigest(ask(o, "digest"))
	if err != nil {
		return nil, err
	}
	switch err := d.store.Renew(ctx, digest); {
	case err == nil:
		return map[string]any{"url": nil}, d.store.Drop(ctx, d.place(o)) // it is there
	case errkind.Of(err) != errkind.NotFound:
		return nil, err
	}
	if sent, _, _ := unstructured.NestedBool(o.Object, "spec", "sent"); sent {
		_, err := d.store.Adopt(ctx, d.place(o), digest)
		return map[string]any{"url": nil}, err
	}
	url, err := d.store.LendPut(ctx, d.place(o), lingers-time.Minute)
	return map[string]any{"url": url}, err
}

// discreet takes out of an explanation what it says of jobs of other namespaces, but that there are some, and all but one of slices that are alike to the job.
func discreet(e *status.Explanation, namespace string) {
	ours := func(id job.ID) bool { ns, _, ok := cluster.SplitJob(id); return ok && ns == namespace }
	var theirs []string
	hide := func(id *job.ID) {
		if *id != "" && !ours(*id) {
			theirs = append(theirs, string(*id))
			*id = another
		}
	}
	for i := range e.Losses {
		hide(&e.Losses[i].Winner)
	}
	hide(&e.Rank.Latest.Winner)
	for i := range e.Endured {
		hide(&e.Endured[i].Spared)
	}
	for _, name := range theirs {
		e.Prospect = without(e.Prospect, name)
		for i := range e.Endured {
			e.Endured[i].Below = without(e.Endured[i].Below, name)
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
}

// another stands for the name of a job of another namespace.
const another = "a job of another namespace"

// without is a text with another in place of a name, where that stands as a whole word.
func without(text, name string) string {
	if !strings.Contains(text, name) {
		return text
	}
	word := regexp.MustCompile(`(^|[^a-zA-Z0-9._-])` + regexp.QuoteMeta(name) + `($|[^a-zA-Z0-9_-])`)
	for word.MatchString(text) { // two in a row share the character between them
		text = word.ReplaceAllString(text, "${1}"+another+"${2}")
	}
	return text
}
