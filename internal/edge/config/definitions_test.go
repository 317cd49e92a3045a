package config

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"sluice.dev/sluice/internal/edge/store"
	"sluice.dev/sluice/internal/edge/strict"
)

// Resource is one of our custom resources, as a Kubernetes cluster is told of it.
type Resource struct {
	// Kind is its name, Plural that of many, as they stand in an API path.
	Kind, Plural string
	// Definition is its CustomResourceDefinition, in YAML.
	Definition []byte
}

// Resources are our custom resources. Their schemas are made of the forms that files are read by, so that an API server takes what the
// reader takes: it checks each key alone and what of the rest CEL can say, and what is left the operator says in a condition.
//
// Two things differ, since an API server keeps values and not their text: text is written as text (a number in quotes), and where a number
// or text may stand, such as for a share, or a size or a mapping, it takes anything and leaves it to the operator.
func Resources() []Resource {
	return []Resource{jobResource().made(), queueResource().made(), slicePoolResource().made(), requestResource().made()}
}

// resource is what a definition is made of.
type resource struct {
	kind, plural, short string
	// doc is what it is, for people.
	doc     string
	cluster bool
	file    strict.Form
	status  map[string]any
	columns []any
	// rules hold between keys of spec.
	rules []any
	// own are the schemas of keys of spec that are narrower here than their forms; needed are keys that a file of one machine may leave
	// out.
	own    map[string]map[string]any
	needed []string
}

func (r *resource) made() Resource {
	spec := structural(&strict.Find(r.file.Keys, "spec").Form)
	properties := spec["properties"].(map[string]any)
	for key, narrow := range r.own {
		for k, v := range narrow {
			properties[key].(map[string]any)[k] = v
		}
	}
	if r.needed != nil {
		spec["required"] = slices.Sorted(slices.Values(append(r.needed, spec["required"].([]string)...)))
	}
	if r.rules != nil {
		spec["x-kubernetes-validations"] = r.rules
	}
	name := structural(&strict.Find(strict.Find(r.file.Keys, "metadata").Form.Keys, "name").Form)
	name["maxLength"] = 63
	scope := "Namespaced"
	if r.cluster {
		scope = "Cluster"
	}
	group, version, _ := strings.Cut(APIVersion, "/")
	definition := map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": r.plural + "." + group},
		"spec": map[string]any{
			"group": group, "scope": scope,
			"names": map[string]any{"kind": r.kind, "listKind": r.kind + "List", "plural": r.plural, "singular": strings.ToLower(r.kind),
				"shortNames": []string{r.short}, "categories": []string{"sluice"}},
			"versions": []any{map[string]any{
				"name": version, "served": true, "storage": true,
				"additionalPrinterColumns": r.columns,
				"subresources":             map[string]any{"status": map[string]any{}},
				"schema": map[string]any{"openAPIV3Schema": map[string]any{
					"type": "object", "required": []string{"spec"}, "description": r.doc,
					"properties": map[string]any{
						"apiVersion": map[string]any{"type": "string"}, "kind": map[string]any{"type": "string"},
						"metadata": map[string]any{"type": "object", "properties": map[string]any{"name": name}},
						"spec":     spec, "status": r.status,
					},
				}},
			}},
		},
	}
	var b bytes.Buffer
	b.WriteString("# Made from internal/edge/config by make generate; edit the fields there.\n")
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(definition); err != nil {
		panic(err) // maps of strings and numbers
	}
	return Resource{Kind: r.kind, Plural: r.plural, Definition: b.Bytes()}
}

// structural is the form as a structural schema of Kubernetes (OpenAPI v3).
func structural(f *strict.Form) map[string]any {
	const anything = "x-kubernetes-preserve-unknown-fields"
	switch f.Kind {
	case strict.IsNumber:
		return map[string]any{"type": "integer", "format": "int64", "minimum": f.Least, "maximum": f.Most}
	case strict.IsLength, strict.IsAmount, strict.IsShare:
		s := schema(f)
		delete(s, "type")
		if f.Kind == strict.IsShare {
			s[anything] = true // a number with a fraction, or text
		} else {
			s["x-kubernetes-int-or-string"] = true
		}
		return s
	case strict.IsBoolean:
		return map[string]any{"type": "boolean"}
	case strict.IsChoice:
		return map[string]any{"type": "string", "enum": f.Words}
	case strict.IsName, strict.IsMoment:
		return schema(f)
	case strict.IsList:
		return map[string]any{"type": "array", "items": structural(f.Elem), "maxItems": f.Most}
	case strict.IsTable:
		return map[string]any{"type": "object", "additionalProperties": structural(f.Elem), "maxProperties": f.Most}
	case strict.IsEither:
		return map[string]any{anything: true}
	case strict.IsObject:
		return structuralObject(f)
	default:
		return map[string]any{"type": "string", "maxLength": maxArgument}
	}
}

// structuralObject is that of a mapping.
func structuralObject(f *strict.Form) map[string]any {
	properties, needed := map[string]any{}, []string{}
	for i := range f.Keys {
		k := &f.Keys[i]
		p := structural(&k.Form)
		p["description"] = told(k)
		properties[k.Key] = p
		if k.Old != "" {
			old := maps.Clone(p)
			old["description"] = "The older name of " + k.Key + "."
			properties[k.Old] = old
		}
		if k.Need {
			needed = append(needed, k.Key)
		}
	}
	s := map[string]any{"type": "object", "properties": properties}
	if len(needed) > 0 {
		s["required"] = needed
	}
	return s
}

// rule is one of CEL's, with what is said where it does not hold.
func rule(holds, message string) map[string]any {
	return map[string]any{"rule": holds, "message": message}
}

// jobResource is the job file as a custom resource.
func jobResource() *resource {
	var kinds []string
	for _, k := range kindsOfWork() {
		kinds = append(kinds, "has(self."+k+")")
	}
	return &resource{
		kind: JobKind, plural: "jobs", short: "sj",
		doc: "A job of Sluice: work that is cut to fit what a cluster's GPUs leave over. It is the file of sluice submit.", file: jobFile(),
		status: jobStatus(), needed: []string{"image"},
		own: map[string]map[string]any{
			"image": {"minLength": 1, "maxLength": maxImage, "pattern": `^[!-~]+$`,
				"description": meaning(strict.Find(specFields(), "image"))},
			"command": {"minItems": 1},
			"workdir": {"maxLength": 4095, "x-kubernetes-validations": []any{rule(
				fmt.Sprintf(`self.matches('^%s[0-9a-f]{64}$')`, store.Scheme),
				"is a path of your own machine, where the operator is not: put the directory into its store (sluice store put) and write "+
					store.Scheme+"DIGEST")}},
		},
		rules: []any{
			rule("["+strings.Join(kinds, ", ")+"].filter(x, x).size() == 1", "a job has exactly one of "+strings.Join(kindsOfWork(), ", ")),
			rule("!has(self.rigid) || !has(self.rigid.slices) || self.rigid.slices == 1",
				"rigid.slices: a subjob is one Pod with one slice here; want 1"),
			rule("!has(self.subdir) || has(self.workdir)", "subdir is a directory below workdir, which is missing"),
		},
		columns: []any{
			column("State", "string", ".status.state", 0),
			column("Progress", "string", ".status.progress", 0),
			column("Running", "integer", ".status.running", 0),
			column("Queue", "string", ".spec.queue", 1),
			column("Reason", "string", ".status.reason", 1),
			column("Operator", "string", ".status.operator", 1),
			column("Age", "date", ".metadata.creationTimestamp", 0),
		},
	}
}

// queueResource is a queue as a custom resource.
func queueResource() *resource {
	return &resource{
		kind: QueueKind, plural: "queues", short: "sq", doc: "A queue of Sluice, whose share and limits jobs are under that name it.",
		cluster: true, file: queueFile(), status: withConditions(map[string]any{}),
		columns: []any{
			column("Weight", "integer", ".spec.weight", 0), column("Cap", "integer", ".spec.cap", 0),
			column("MaxJobs", "integer", ".spec.maxJobs", 0),
			column("Accepted", "string", `.status.conditions[?(@.type=="Accepted")].status`, 0),
			column("Age", "date", ".metadata.creationTimestamp", 0),
		},
	}
}

// slicePoolResource is a pool of slices as a custom resource.
func slicePoolResource() *resource {
	return &resource{
		kind: SlicePoolKind, plural: "slicepools", short: "slp", cluster: true,
		doc:  "A pool of slices of Sluice: which of a cluster's devices it may use when nobody else does.",
		file: slicePoolFile(), status: withConditions(map[string]any{}),
		rules: []any{rule("has(self.deviceClasses) && self.deviceClasses.size() > 0 || has(self.extendedResources) && "+
			"self.extendedResources.size() > 0",
			"a pool names deviceClasses, extendedResources, or both")},
		columns: []any{
			column("Classes", "string", ".spec.deviceClasses[*].name", 0), column("Resources", "string", ".spec.extendedResources[*].name",
				0),
			column("Accepted", "string", `.status.conditions[?(@.type=="Accepted")].status`, 0),
			column("Age", "date", ".metadata.creationTimestamp", 0),
		},
	}
}

// column is one of those that kubectl get shows; priority 1: only with -o wide.
func column(name, kind, path string, priority int) map[string]any {
	return map[string]any{"name": name, "type": kind, "jsonPath": path, "priority": priority}
}

// jobStatus is what the operator says of a job.
func jobStatus() map[string]any {
	text := func(doc string) map[string]any { return map[string]any{"type": "string", "description": doc} }
	count := func(doc string) map[string]any {
		return map[string]any{"type": "integer", "format": "int64", "description": doc}
	}
	moment := func(doc string) map[string]any {
		return map[string]any{"type": "string", "format": "date-time", "description": doc}
	}
	return withConditions(map[string]any{
		"operator":  text("The operator that has the job."),
		"state":     text("The job's state, as sluice jobs shows it: WAITING, RUNNING, COMPLETED and the like."),
		"reason":    text("Why it waits, or how it ended."),
		"progress":  text("Committed units of the total, such as 450/1000."),
		"committed": count("Committed units."), "total": count("All units."),
		"running": count("Subjobs that run now."), "subjobs": count("Subjobs that were committed."),
		"lost":      count("Subjobs that ended without progress."),
		"submitted": moment("When the job was accepted."), "started": moment("When its first subjob began."),
		"ended": moment("When it was over."),
	})
}

// withConditions is a status with these properties besides what each of ours has.
func withConditions(properties map[string]any) map[string]any {
	text := map[string]any{"type": "string"}
	properties["observedGeneration"] = map[string]any{"type": "integer", "format": "int64",
		"description": "The generation of the object that this was said of."}
	properties["conditions"] = map[string]any{
		"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": []string{"type"},
		"items": map[string]any{
			"type": "object", "required": []string{"type", "status", "lastTransitionTime", "reason", "message"},
			"properties": map[string]any{
				"type": text, "status": map[string]any{"type": "string", "enum": []string{"True", "False", "Unknown"}}, "reason": text,
				"message":            text,
				"observedGeneration": map[string]any{"type": "integer", "format": "int64"},
				"lastTransitionTime": map[string]any{"type": "string", "format": "date-time"},
			},
		},
	}
	return map[string]any{"type": "object", "properties": properties}
}

// maxAsked is how long a job file may be that is asked about, in letters.
const maxAsked = 256 << 10

// requestFile is everything a Request may say. It is made by programs; no file is read as one.
func requestFile() strict.Form {
	return strict.AnObject(
		strict.Field{Key: "apiVersion", Need: true, Form: strict.AChoice(APIVersion), Example: APIVersion,
			Doc: "The version of this form."},
		strict.Field{Key: "kind", Need: true, Form: strict.AChoice(RequestKind), Example: RequestKind, Doc: "What the file describes."},
		strict.Field{Key: "metadata", Need: true, Form: strict.AnObject(
			strict.Field{Key: "name", Need: true, Form: strict.Form{Kind: strict.IsName}, Example: "ask-x7k2p", Doc: "Any name."},
		), Example: "{name: ask-x7k2p}", Doc: "What the request is called."},
		strict.Field{Key: "spec", Need: true, Form: strict.AnObject(
			strict.Field{Key: "ask", Need: true, Form: strict.AChoice(AskExplain, AskJob, AskDryRun, AskUpload), Example: AskExplain,
				Doc: "What for: why a job waits, all that is known of a job, what would become of a job that is not submitted, or a " +
					"place to upload a packed work directory to."},
			strict.Field{Key: "job", Form: strict.Form{Kind: strict.IsName}, Unset: "none", Example: "train",
				Doc: "The job of this namespace that it is about."},
			strict.Field{Key: "file", Form: strict.AText("a job file"), Unset: "none", Example: "|", Doc: "Of a dry run: the job's file."},
			strict.Field{Key: "operator", Form: strict.AText("the name of an operator"), Unset: "the first that sees it", Example: "sluice",
				Doc: "The operator that is asked, where there are several: the one that has the job."},
			strict.Field{Key: "digest", Form: strict.AText("the SHA-256 of the packed directory, in hex"), Unset: "none",
				Example: "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae", Doc: "Of an upload: what its bytes have."},
			strict.Field{Key: "bytes", Form: strict.ANumber(1, MaxUpload, 0), Unset: "none", Example: "1048576",
				Doc: "Of an upload: how many bytes it has."},
			strict.Field{Key: "sent", Form: strict.Form{Kind: strict.IsBoolean}, Example: "true",
				Doc: "Of an upload: all of it was written to the URL of the status."},
		), Example: "{ask: Explain, job: train}", Doc: "Something that somebody in this namespace asks the operator."},
	)
}

// requestResource is a question to the operator as a custom resource.
func requestResource() *resource {
	text := func(doc string) map[string]any { return map[string]any{"type": "string", "description": doc} }
	return &resource{
		kind: RequestKind, plural: "requests", short: "srq",
		doc: "What somebody in this namespace asks the operator of Sluice: kubectl sluice makes it, and deletes it with the answer. " +
			"Whoever may make one may ask.", file: requestFile(),
		status: withConditions(map[string]any{"answer": text("The answer, as the API has it in JSON."),
			"operator": text("The operator that has answered. No other does."), "url": text("Where to PUT an upload; it expires.")}),
		own: map[string]map[string]any{"file": {"maxLength": maxAsked}, "digest": {"pattern": "^[0-9a-f]{64}$", "maxLength": 64}},
		rules: []any{rule("self.ask == '"+AskUpload+"' ? has(self.digest) && has(self.bytes) : self.ask == '"+AskDryRun+
			"' ? has(self.file) : has(self.job)", "an upload has digest and bytes, a dry run a file, all else is about a job")},
		columns: []any{
			column("Ask", "string", ".spec.ask", 0), column("Job", "string", ".spec.job", 0),
			column("Answered", "string", `.status.conditions[?(@.type=="Answered")].status`, 0),
			column("Age", "date", ".metadata.creationTimestamp", 0),
		},
	}
}
