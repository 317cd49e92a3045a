package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"sluice.dev/sluice/internal/edge/strict"
)

// JSONSchema is what a job file may say, as a JSON Schema (draft 2020-12) for editors and other programs:
// docs/job.schema.json. It holds what one key alone may say; what holds between keys is the reader's to check.
func JSONSchema() []byte {
	root := jobFile()
	s := schema(&root)
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["title"] = "Sluice job"
	return encodeSchema(s)
}

func encodeSchema(s map[string]any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(s); err != nil {
		panic(err) // maps of strings and numbers
	}
	return b.Bytes()
}

// sizePattern is what quantity.ParseSize takes: a number with a unit, or 0.
const sizePattern = `^\s*([0-9]+(\.[0-9]{1,9})?\s*((k|[KMGTPE]i?)B?|B)|0+(\.0{1,9})?)\s*$`

// schema is the form as a JSON Schema.
func schema(f *strict.Form) map[string]any {
	switch f.Kind {
	case strict.IsNumber:
		return map[string]any{"type": "integer", "minimum": f.Least, "maximum": f.Most}
	case strict.IsLength:
		return map[string]any{"type": []string{"string", "integer"},
			"pattern": `^\s*([0-9]+d)?([0-9.]+(ns|us|µs|ms|s|m|h))*\s*$|^\s*[0-9:-]+\s*$`, "maximum": 0}
	case strict.IsAmount:
		return map[string]any{"type": []string{"string", "integer"}, "pattern": sizePattern, "minimum": 0, "maximum": 0}
	case strict.IsShare:
		return map[string]any{"type": []string{"number", "string"}, "pattern": `^[0-9]*\.?[0-9]*%?$`, "minimum": 0,
			"maximum": float64(f.Most) / float64(f.Scale)}
	case strict.IsBoolean:
		return map[string]any{"type": "boolean"}
	case strict.IsChoice:
		return map[string]any{"enum": f.Words}
	case strict.IsName:
		return map[string]any{"type": "string", "pattern": `^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`}
	case strict.IsMoment:
		return map[string]any{"type": "string", "format": "date-time"}
	case strict.IsList:
		return map[string]any{"type": "array", "items": schema(f.Elem), "maxItems": f.Most}
	case strict.IsTable:
		return map[string]any{"type": "object", "additionalProperties": schema(f.Elem), "maxProperties": f.Most}
	case strict.IsEither:
		return map[string]any{"anyOf": []any{schema(&f.Alternatives[0]), schema(&f.Alternatives[1])}}
	case strict.IsObject:
		return objectSchema(f)
	default: // any plain value is taken as text
		return map[string]any{"type": []string{"string", "number", "boolean"}}
	}
}

// objectSchema is that of a mapping.
func objectSchema(f *strict.Form) map[string]any {
	properties, needed := map[string]any{}, []string{}
	var kinds []any
	for i := range f.Keys {
		k := &f.Keys[i]
		p := schema(&k.Form)
		p["description"] = told(k)
		p["examples"] = []any{sample(k.Example)}
		properties[k.Key] = p
		if k.Old != "" {
			old := maps.Clone(p)
			old["description"] = "The older name of " + k.Key + "."
			old["deprecated"] = true
			properties[k.Old] = old
		}
		if k.Need {
			needed = append(needed, k.Key)
		}
		if slices.Contains(kindsOfWork(), k.Key) {
			kinds = append(kinds, map[string]any{"required": []string{k.Key}})
		}
	}
	s := map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	if len(needed) > 0 {
		s["required"] = needed
	}
	if len(kinds) == len(kindsOfWork()) {
		s["oneOf"] = kinds
	}
	return s
}

// told is what a key means and what counts without it.
func told(f *strict.Field) string {
	if without := f.Without(); without != "" {
		return fmt.Sprintf("%s Without it: %s.", meaning(f), without)
	}
	return meaning(f)
}

// sample is an example as JSON has it: plain values as they are, the rest as the text that a person would write.
func sample(text string) any {
	var v any
	if !strings.HasPrefix(text, "{") && regexp.MustCompile(`^(true|false|-?[0-9.]+)$`).MatchString(text) &&
		json.Unmarshal([]byte(text), &v) == nil {
		return v
	}
	return text
}
