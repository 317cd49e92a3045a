package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"sluice.dev/sluice/internal/edge/strict"
)

// everyField calls visit for every field of the job file, with its path.
func everyField(visit func(path string, f *strict.Field)) {
	root := jobFile()
	var walk func(prefix string, f *strict.Form)
	walk = func(prefix string, f *strict.Form) {
		list := f.Inner()
		for i := range list {
			visit(prefix+list[i].Key, &list[i])
			walk(prefix+list[i].Key+".", &list[i].Form)
		}
	}
	walk("", &root)
}

// TestEveryKeyIsDescribed: a key without a meaning, an example or a form for people is not taken in.
func TestEveryKeyIsDescribed(t *testing.T) {
	n := 0
	everyField(func(path string, f *strict.Field) {
		n++
		if !strings.HasSuffix(f.Doc, ".") || len(f.Doc) < 12 || f.Example == "" || f.Form.String() == "" {
			t.Errorf("%s: doc %q, example %q, form %q", path, f.Doc, f.Example, &f.Form)
		}
		oneOf := slices.Contains(kindsOfWork(), f.Key) || slices.Contains([]string{"phases", "envelope", "ensemble"}, f.Key)
		if !oneOf && f.Need == (f.Without() != "") {
			t.Errorf("%s: needed %v, without it %q", path, f.Need, f.Without())
		}
	})
	if n < 60 {
		t.Errorf("%d fields", n)
	}
}

// whole is a job file with one key set at a path, and what that needs beside it.
func whole(t *testing.T, path, text string) []byte {
	t.Helper()
	keys := strings.Split(path, ".")
	doc := map[string]any{"apiVersion": APIVersion, "kind": JobKind, "metadata": map[string]any{"name": "a"}}
	spec := map[string]any{"memory": "1Gi", "command": []any{"x"}}
	doc["spec"] = spec
	kind := "items"
	if len(keys) > 1 && slices.Contains(kindsOfWork(), keys[1]) {
		kind = keys[1]
	}
	directory := strings.HasPrefix(path, "spec.adapter.directory")
	if directory {
		kind = "steps"
	}
	spec[kind] = map[string]map[string]any{
		"items": {"total": 90000, "perItem": "1ms"}, "steps": {"total": 90000, "perStep": "1ms", "every": 10},
		"rigid": {"walltime": "1h"}, "external": {"total": 90000, "perUnit": "1ms"},
	}[kind]
	if strings.HasPrefix(path, "spec.adapter.array") {
		spec[kind].(map[string]any)["total"] = 200
		if path != "spec.adapter.array" {
			spec["adapter"] = map[string]any{"array": map[string]any{"indices": "1-200"}}
		}
	}
	if directory {
		spec[kind].(map[string]any)["every"] = 1
	}
	switch path { // what a key needs beside it
	case "spec.adapter.trials.stop":
		spec["adapter"] = map[string]any{"trials": map[string]any{"table": "t"}}
	case "spec.adapter.trials.stop.goal", "spec.adapter.trials.stop.reduction", "spec.adapter.trials.stop.from":
		spec["adapter"] = map[string]any{"trials": map[string]any{"table": "t", "stop": map[string]any{"goal": "maximize"}}}
	case "spec.adapter.directory.progress":
		spec["adapter"] = map[string]any{"directory": map[string]any{"path": "ckpt"}}
	case "spec.subdir":
		spec["workdir"] = "."
	case "spec.adapter.lines.index", "spec.adapter.lines.format", "spec.adapter.lines.header", "spec.adapter.lines.answersHeader":
		spec["adapter"] = map[string]any{"lines": map[string]any{"input": "f"}}
	case "spec.external.restore", "spec.external.checkpoint":
		spec[kind].(map[string]any)["chain"] = true
	case "spec.rigid.steps.total", "spec.rigid.steps.every":
		spec[kind].(map[string]any)["steps"] = map[string]any{"total": 90000, "every": 10}
	case "spec.warn.signal", "spec.warn.before":
		spec["warn"] = map[string]any{"signal": "USR1", "before": "60s"}
	case "spec.scoreWeights.progress", "spec.scoreWeights.laxity", "spec.scoreWeights.overhead":
		spec["scoreWeights"] = map[string]any{}
		rest := map[string]string{"spec.scoreWeights.progress": "laxity", "spec.scoreWeights.laxity": "progress",
			"spec.scoreWeights.overhead": "progress"}[path]
		var share float64
		if _, err := fmt.Sscan(text, &share); err == nil {
			spec["scoreWeights"].(map[string]any)[rest] = math.Round(1000*(1-share)) / 1000
		}
	case "spec.memory.combine":
		spec["memory"] = map[string]any{"phases": []any{map[string]any{"mean": "1Gi"}}}
	case "spec.memory.phases.upTo", "spec.memory.phases.sd", "spec.memory.phases.mean":
		spec["memory"] = map[string]any{"phases": []any{map[string]any{"mean": "1Gi"}, map[string]any{"mean": "1Gi"}}}
		spec["memory"].(map[string]any)["phases"].([]any)[0].(map[string]any)["upTo"] = 1000
	case "spec.memory.envelope.upTo", "spec.memory.envelope.amount":
		spec["memory"] = map[string]any{"envelope": []any{map[string]any{"amount": "1Gi", "upTo": 1000}, map[string]any{"amount": "1Gi"}}}
	case "spec.memory.ensemble", "spec.memory.ensemble.upTo", "spec.memory.ensemble.runs":
		spec["memory"] = map[string]any{"ensemble": map[string]any{"runs": []any{[]any{"1Gi"}, []any{"1Gi"}, []any{"1Gi"}, []any{"1Gi"},
			[]any{"1Gi"}}}}
		spec["theta"], spec[kind].(map[string]any)["total"] = 0.5, 10000
	case "spec.options.name", "spec.options.speed", "spec.options.memory", "spec.options.env":
		spec["options"] = []any{map[string]any{"name": "a"}}
	}
	var v any
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%s: %s: %v", path, text, err)
	}
	if at, ok := v.(time.Time); ok {
		v = at.Format(time.RFC3339)
	}
	at := doc
	for _, k := range keys[:len(keys)-1] {
		next, ok := at[k]
		if !ok || k == "memory" && !isMap(next) {
			next = map[string]any{}
			at[k] = next
		}
		if l, ok := next.([]any); ok {
			next = l[0]
		}
		at = next.(map[string]any)
	}
	at[keys[len(keys)-1]] = v
	data, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func isMap(v any) bool {
	_, ok := v.(map[string]any)
	return ok
}

// TestExamplesAreRead: every example is accepted where it belongs, by the reader and by the schema; what is beyond a bound,
// or a value of another kind, is refused.
func TestExamplesAreRead(t *testing.T) {
	var schema map[string]any
	if err := json.Unmarshal(JSONSchema(), &schema); err != nil {
		t.Fatal(err)
	}
	everyField(func(path string, f *strict.Field) {
		if path == "spec" {
			return
		}
		data := whole(t, path, f.Example)
		if _, err := ParseJobs(path, data); err != nil {
			t.Errorf("%s: %s: %v", path, f.Example, err)
		}
		if bad := validate(schema, decode(t, data), path); bad != "" {
			t.Errorf("%s: the schema refuses %s: %s", path, f.Example, bad)
		}
		for _, wrong := range beyond(&f.Form) {
			if _, err := ParseJobs(path, whole(t, path, wrong)); err == nil {
				t.Errorf("%s: %s is accepted, which is not %s", path, wrong, &f.Form)
			}
		}
	})
}

// beyond are values that a form does not have.
func beyond(f *strict.Form) []string {
	switch f.Kind {
	case strict.IsNumber:
		return []string{fmt.Sprint(f.Least - 1), fmt.Sprint(f.Most + 1), "1.5", "many", "[1]"}
	case strict.IsLength:
		out := []string{strict.FormatDuration(time.Duration(f.Most) + 24*time.Hour), "soon", "{}"}
		if f.Least > 1 {
			out = append(out, strict.FormatDuration(time.Duration(f.Least)-1))
		}
		return out
	case strict.IsAmount:
		return []string{"2000Pi", "much", "[]"}
	case strict.IsShare:
		return []string{fmt.Sprintf("%g", float64(f.Most)/float64(f.Scale)+0.01), "-0.1", "half"}
	case strict.IsBoolean:
		return []string{"1", "perhaps"}
	case strict.IsChoice:
		return []string{"somethingelse", "[]"}
	case strict.IsName:
		return []string{"Upper", "a_b", "[]"}
	case strict.IsMoment:
		return []string{"tomorrow", "2026-03-01T18:00:00"}
	case strict.IsObject:
		return []string{"3", "[]", "{nosuchkey: 1}"}
	case strict.IsList:
		return []string{"3", "{a: 1}"}
	case strict.IsTable:
		return []string{"3", "[]"}
	default:
		return []string{"{a: 1}"}
	}
}

func decode(t *testing.T, data []byte) any {
	t.Helper()
	var v any
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// validate says what a JSON Schema has against a value, of the words that JSONSchema uses.
func validate(s map[string]any, v any, path string) string {
	if list, ok := s["anyOf"].([]any); ok {
		var all []string
		for _, one := range list {
			bad := validate(one.(map[string]any), v, path)
			if bad == "" {
				return ""
			}
			all = append(all, bad)
		}
		return strings.Join(all, "; ")
	}
	if list, ok := s["enum"].([]any); ok && !slices.Contains(list, v) {
		return fmt.Sprintf("%s: %v is none of %v", path, v, list)
	}
	if want, ok := s["type"]; ok && !typed(want, v) {
		return fmt.Sprintf("%s: %v (%T) is no %v", path, v, v, want)
	}
	switch v := v.(type) {
	case json.Number:
		n, _ := v.Float64()
		if least, ok := s["minimum"].(float64); ok && n < least {
			return fmt.Sprintf("%s: %v is less than %v", path, n, least)
		}
		if most, ok := s["maximum"].(float64); ok && n > most {
			return fmt.Sprintf("%s: %v is more than %v", path, n, most)
		}
	case string:
		if p, ok := s["pattern"].(string); ok && !regexp.MustCompile(p).MatchString(v) {
			return fmt.Sprintf("%s: %q is not like %s", path, v, p)
		}
	case []any:
		for i, e := range v {
			if bad := validate(s["items"].(map[string]any), e, fmt.Sprintf("%s[%d]", path, i)); bad != "" {
				return bad
			}
		}
	case map[string]any:
		return validateObject(s, v, path)
	}
	return ""
}

func validateObject(s, v map[string]any, path string) string {
	if s["x-kubernetes-preserve-unknown-fields"] == true {
		return ""
	}
	known, _ := s["properties"].(map[string]any)
	needed, _ := s["required"].([]any)
	for _, k := range needed {
		if _, ok := v[k.(string)]; !ok {
			return fmt.Sprintf("%s: %s is missing", path, k)
		}
	}
	if kinds, ok := s["oneOf"].([]any); ok {
		n := 0
		for _, k := range kinds {
			if _, ok := v[k.(map[string]any)["required"].([]any)[0].(string)]; ok {
				n++
			}
		}
		if n != 1 {
			return fmt.Sprintf("%s: %d of the kinds of work", path, n)
		}
	}
	for k, e := range v {
		sub, ok := known[k].(map[string]any)
		if !ok {
			if sub, ok = s["additionalProperties"].(map[string]any); !ok {
				return fmt.Sprintf("%s: unknown key %s", path, k)
			}
		}
		if bad := validate(sub, e, path+"."+k); bad != "" {
			return bad
		}
	}
	return ""
}

func typed(want, v any) bool {
	if list, ok := want.([]any); ok {
		return slices.ContainsFunc(list, func(w any) bool { return typed(w, v) })
	}
	n, number := v.(json.Number)
	switch want {
	case "object":
		_, ok := v.(map[string]any)
		return ok
	case "array":
		_, ok := v.([]any)
		return ok
	case "string":
		_, ok := v.(string)
		return ok
	case "boolean":
		_, ok := v.(bool)
		return ok
	case "integer":
		return number && !strings.ContainsAny(n.String(), ".eE")
	case "number":
		return number
	}
	return false
}

// TestSchemaTakesWhatIsRead: every good file of the tests and of the examples passes the schema; files with a key that is
// not known, or of another kind, do not.
func TestSchemaTakesWhatIsRead(t *testing.T) {
	var schema map[string]any
	if err := json.Unmarshal(JSONSchema(), &schema); err != nil {
		t.Fatal(err)
	}
	good, _ := filepath.Glob("testdata/*.good.yml")
	more, _ := filepath.Glob("../../../examples/*/job.yaml")
	for _, file := range append(good, more...) {
		for i, doc := range documentsOf(t, file) {
			if bad := validate(schema, doc, fmt.Sprintf("%s[%d]", file, i)); bad != "" {
				t.Error(bad)
			}
		}
	}
	if len(more) < 4 {
		t.Errorf("%d examples", len(more))
	}
	for _, name := range strings.Fields("bad-kind unknown-key unknown-inner-key unknown-far-key no-total total-zero total-text " +
		"no-memory no-command two-kinds-of-work no-kind-of-work bad-name command-text continue-text") {
		file := "testdata/" + name + ".bad.yml"
		for _, doc := range documentsOf(t, file) {
			if validate(schema, doc, file) == "" {
				t.Errorf("%s passes the schema", file)
			}
		}
	}
}

// documentsOf are a file's documents as JSON has them.
func documentsOf(t *testing.T, file string) (out []any) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for d := yaml.NewDecoder(bytes.NewReader(data)); ; {
		var n yaml.Node
		if d.Decode(&n) != nil {
			return out
		}
		var plain func(n *yaml.Node)
		plain = func(n *yaml.Node) {
			if n.Tag == "!!timestamp" {
				n.Tag = "!!str"
			}
			for _, c := range n.Content {
				plain(c)
			}
		}
		plain(&n)
		var v any
		if err := n.Decode(&v); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if v == nil { // nothing between two separators
			continue
		}
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		out = append(out, decode(t, text))
	}
}

// TestManual: the page and the schema are those of the fields.
func TestManual(t *testing.T) {
	for file, want := range map[string][]byte{"../../../docs/job.md": Manual(), "../../../docs/job.schema.json": JSONSchema()} {
		got, err := os.ReadFile(file)
		if *update {
			err = os.WriteFile(file, want, 0o644)
			got = want
		}
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what the fields say (%v); run the test with -update and look at the difference", file, err)
		}
	}
}

// TestStarters: each starter is a job that can be submitted, and still is with any one of its comments taken away.
func TestStarters(t *testing.T) {
	for _, kind := range StarterKinds() {
		data, err := Starter(kind)
		if err != nil {
			t.Fatal(err)
		}
		if spec, _, err := ParseJob(kind, data); err != nil || string(spec.Name) != "my-"+kind {
			t.Errorf("%v\n%s", err, data)
		}
		lines := strings.Split(string(data), "\n")
		tried := 0
		for i, line := range lines {
			m := regexp.MustCompile(`^( +)# ([a-zA-Z]+: .*)$`).FindStringSubmatch(line)
			if m == nil || strings.HasSuffix(line, ".") && !strings.HasSuffix(line, " .") {
				continue
			}
			tried++
			key, _, _ := strings.Cut(m[2], ":")
			changed := slices.Clone(lines)
			changed[i] = m[1] + m[2]
			text := strings.Join(changed, "\n")
			switch key {
			case "subdir":
				text = strings.Replace(text, "# workdir:", "workdir:", 1)
			case "restore", "checkpoint":
				text = strings.Replace(text, "# chain:", "chain:", 1)
			case "onOverrun", "parallelism":
			}
			if _, _, err := ParseJob(kind+" with "+key, []byte(text)); err != nil {
				t.Error(err)
			}
		}
		if tried < 10 {
			t.Errorf("%s: %d comments", kind, tried)
		}
	}
	if _, err := Starter("item"); err == nil || !strings.Contains(err.Error(), `did you mean "items"?`) {
		t.Errorf("%v", err)
	}
}

func TestExplain(t *testing.T) {
	for _, path := range Paths() {
		text, err := Explain(path)
		if err != nil || !strings.HasPrefix(text, path+"  ") {
			t.Errorf("%s: %v", path, err)
		}
	}
	text, err := Explain("spec.items")
	for _, want := range []string{"spec.items  a mapping", "Work of independent units", "for example  items: {total: 10000",
		"total        a whole number from 1 to 1000000000000; needed", "without it: 1"} {
		if err != nil || !strings.Contains(text, want) {
			t.Errorf("%v: %q is not in\n%s", err, want, text)
		}
	}
	for path, want := range map[string]string{
		"spec.item": `spec has no key "item"; did you mean "items"?`, "spce": `the job file has no key "spce"; did you mean "spec"?`,
		"spec.queue.x": "spec.queue has no keys: it is a name", "": "the job file has no key", "spec.": "spec has no key",
	} {
		if _, err := Explain(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestTheSchemaTakesTheSizesThatAreRead, and no others: what an editor marks is what the daemon refuses, and what a cluster refuses of a
// new object.
func TestTheSchemaTakesTheSizesThatAreRead(t *testing.T) {
	var file map[string]any
	if err := json.Unmarshal(JSONSchema(), &file); err != nil {
		t.Fatal(err)
	}
	for size, want := range map[string]bool{
		"600Mi": true, "1.5Gi": true, "2G": true, "2GB": true, "2GiB": true, `"16 Gi"`: true, "1k": true, "1K": true,
		"1Ki": true, "16B": true, `" 1M "`: true, "0.123456789Ti": true,
		"16": false, "3000": false, "1.5": false, `"3001"`: false, ".5": false, ".5Gi": false, "5.Gi": false, "-1Gi": false,
		"12gi": false, "1ki": false, "1m": false, "1e3": false, "0.1234567891Gi": false, "Gi": false, "16BB": false, "16iB": false,
	} {
		text := "apiVersion: sluice.dev/v1alpha1\nkind: Job\nmetadata: {name: a}\n" +
			"spec: {image: a/b, command: [\"true\"], rigid: {walltime: 1m}, memory: 1Gi, limits: {log: " + size + "}}\n"
		if _, err := ParseJobs("f", []byte(text)); want != (err == nil) {
			t.Errorf("%s is read: %v; want %v", size, err, want)
		}
		path := filepath.Join(t.TempDir(), "job.yml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		doc := documentsOf(t, path)[0]
		for name, schema := range map[string]map[string]any{
			"the schema of job files": file, "the cluster's definition": definition(t, JobKind),
		} {
			if bad := validate(schema, doc, name); want != (bad == "") {
				t.Errorf("%s: %s says %q; want %v", size, name, bad, want)
			}
		}
	}
}
