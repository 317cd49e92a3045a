package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// JSONSchema is what a job file may say, as a JSON Schema (draft 2020-12) for editors and other programs:
// docs/job.schema.json. It holds what one key alone may say; what holds between keys is the reader's to check.
func JSONSchema() []byte {
	root := jobFile()
	s := root.schema()
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
func (f *form) schema() map[string]any {
	switch f.kind {
	case isNumber:
		return map[string]any{"type": "integer", "minimum": f.least, "maximum": f.most}
	case isLength:
		return map[string]any{"type": []string{"string", "integer"}, "pattern": `^\s*([0-9]+d)?([0-9.]+(ns|us|µs|ms|s|m|h))*\s*$|^\s*[0-9:-]+\s*$`, "maximum": 0}
	case isAmount:
		return map[string]any{"type": []string{"string", "integer"}, "pattern": sizePattern, "minimum": 0, "maximum": 0}
	case isShare:
		return map[string]any{"type": []string{"number", "string"}, "pattern": `^[0-9]*\.?[0-9]*%?$`, "minimum": 0, "maximum": float64(f.most) / float64(f.scale)}
	case isBoolean:
		return map[string]any{"type": "boolean"}
	case isChoice:
		return map[string]any{"enum": f.words}
	case isName:
		return map[string]any{"type": "string", "pattern": `^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`}
	case isMoment:
		return map[string]any{"type": "string", "format": "date-time"}
	case isList:
		return map[string]any{"type": "array", "items": f.elem.schema(), "maxItems": f.most}
	case isTable:
		return map[string]any{"type": "object", "additionalProperties": f.elem.schema(), "maxProperties": f.most}
	case isEither:
		return map[string]any{"anyOf": []any{f.alternatives[0].schema(), f.alternatives[1].schema()}}
	case isObject:
		return f.objectSchema()
	default: // any plain value is taken as text
		return map[string]any{"type": []string{"string", "number", "boolean"}}
	}
}

// objectSchema is that of a mapping.
func (f *form) objectSchema() map[string]any {
	properties, needed := map[string]any{}, []string{}
	var kinds []any
	for i := range f.keys {
		k := &f.keys[i]
		p := k.form.schema()
		p["description"] = k.told()
		p["examples"] = []any{sample(k.example)}
		properties[k.key] = p
		if k.need {
			needed = append(needed, k.key)
		}
		if slices.Contains(kindsOfWork(), k.key) {
			kinds = append(kinds, map[string]any{"required": []string{k.key}})
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
func (f *field) told() string {
	if without := f.without(); without != "" {
		return fmt.Sprintf("%s Without it: %s.", f.meaning(), without)
	}
	return f.meaning()
}

// sample is an example as JSON has it: plain values as they are, the rest as the text that a person would write.
func sample(text string) any {
	var v any
	if !strings.HasPrefix(text, "{") && regexp.MustCompile(`^(true|false|-?[0-9.]+)$`).MatchString(text) && json.Unmarshal([]byte(text), &v) == nil {
		return v
	}
	return text
}
