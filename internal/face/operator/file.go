//go:build kubernetes

package operator

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/cluster"
	"sluice.dev/sluice/internal/edge/config"
	"sluice.dev/sluice/internal/edge/store"
	"sluice.dev/sluice/internal/edge/strict"
)

// FileOf is an object as the file that a person would have written, without what Kubernetes added.
func FileOf(o *unstructured.Unstructured) []byte {
	data, err := json.Marshal(map[string]any{
		"apiVersion": o.GetAPIVersion(), "kind": o.GetKind(), "metadata": map[string]any{"name": o.GetName()},
		"spec": written(o.Object["spec"]),
	})
	if err != nil {
		panic(err) // it was decoded from JSON
	}
	return data
}

// written is a value as in a file. Fractions are written in digits: JSON uses exponents for small ones, which the exact parser of job
// files refuses.
func written(v any) any {
	switch v := v.(type) {
	case float64:
		return json.Number(strconv.FormatFloat(v, 'f', -1, 64))
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = written(e)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = written(e)
		}
		return out
	}
	return v
}

// parseJob parses a Job object as a job file. Errors are of kind Invalid; all of the file's come at once, then what keeps it from being
// Pods. One that was accepted before is read as it was then, when sizes without a unit were bytes.
func parseJob(o *unstructured.Unstructured, before bool) (config.Job, error) {
	parse := config.ParseJobs
	if before {
		parse = config.ParseObject
	}
	list, err := parse(o.GetName(), FileOf(o))
	if err != nil {
		return config.Job{}, placed(err)
	}
	j := list[0]
	if err := startable(j.Spec); err != nil {
		return config.Job{}, err
	}
	if j.Workdir != "" && j.Stored() == "" {
		return config.Job{}, errkind.Errorf(errkind.Invalid,
			"spec.workdir: %q is a path of your own machine: put the directory into the operator's store (sluice store put) and write "+
				"store://DIGEST", j.Workdir)
	}
	j.Spec.Name = cluster.JobID(o.GetNamespace(), o.GetName())
	return j, nil
}

// startable checks that a job can be Pods.
func startable(s *job.Spec) error {
	var errs []error
	if s.Launch.Image == "" {
		errs = append(errs, errors.New("spec.image: is missing: a subjob is a Pod, which is made of an image"))
	}
	if s.Kind == job.Rigid && s.Slices > 1 {
		errs = append(errs, fmt.Errorf("spec.rigid.slices: is %d: a subjob is one Pod with one slice; want 1", s.Slices))
	}
	if s.Launch.OutputLimit > store.MaxLent {
		errs = append(errs, fmt.Errorf("spec.limits.output: is %d bytes: a Pod stores what it leaves by a URL, which takes at most %d; "+
			"want 5Gi or less", s.Launch.OutputLimit, int64(store.MaxLent)))
	}
	if err := errors.Join(errs...); err != nil {
		return errkind.Errorf(errkind.Invalid, "%w", err)
	}
	return nil
}

// placed strips lines and columns from a parser's error: an object has none that a person knows.
func placed(err error) error {
	var p *strict.Problems
	if !errors.As(err, &p) {
		return err
	}
	lines := make([]string, 0, len(p.List)+1)
	for _, one := range p.List {
		lines = append(lines, strings.TrimPrefix(one.Path+": "+one.Text, ": "))
	}
	if p.More > 0 {
		lines = append(lines, fmt.Sprintf("and %d more problems", p.More))
	}
	return errkind.Errorf(errkind.Invalid, "%s", strings.Join(lines, "\n"))
}
