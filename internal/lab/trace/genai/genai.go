// Package genai reads the series of Alibaba's GenTD26 trace (Stable Diffusion serving, 2026) - GPU memory and duty cycle
// of each pod every 57 s, latencies of loads, queues, requests per second - and its log of requests.
package genai

import (
	"io"
	"strings"

	"sluice.dev/sluice/internal/lab/trace"
)

// Columns of a series.
const (
	timestamp = iota
	value
	container
	requestType
)

// Columns of the log of requests.
const (
	created = iota
	kind
	status
	seconds
	group
	promptLength // and further settings of the picture
	loras        = promptLength + 5
)

// Format of the files. Records of a series are samples: the series is the file's name without "_anon" (with "/" and the
// type of request behind it where the file has one), the subject the pod, empty for the whole service; values are bytes,
// percent, milliseconds or a count, as the name says. Records of the log are jobs: the queue is the group, the user the
// kind of request; lengths, steps, pictures and models are checked and left out.
func Format() trace.Format {
	return trace.Format{Name: "genai", Doc: "memory, duty cycle and requests of Alibaba's Stable Diffusion service, GenTD26 (CSV)",
		Kinds: []trace.Kind{trace.Sample, trace.Job}, Open: open}
}

func open(r io.Reader, file string) trace.Reader {
	s := series{name: strings.TrimSuffix(trace.Stem(file), "_anon"), typed: map[string]string{}}
	return trace.OpenCSV(r, file,
		trace.Sheet{
			Columns:  []string{timestamp: "timestamp_anon", value: "value", container: "container_ip"},
			Optional: []string{"request_type"},
			Parse:    s.parse,
		},
		trace.Sheet{
			Columns: []string{
				created: "gmt_create", kind: "predict_type", status: "predict_status", seconds: "exec_time_seconds", group: "groupId",
				promptLength: "prompt_length", promptLength + 1: "negative_prompt_length", promptLength + 2: "num_images_per_prompt",
				promptLength + 3: "num_inference_steps", promptLength + 4: "checkpoint_model_version_id", loras: "num_lora",
			},
			Parse: request,
		})
}

type series struct {
	name  string
	typed map[string]string // names with a type of request
}

func (s series) parse(l *trace.Line, r *trace.Record) {
	r.Kind = trace.Sample
	r.At = l.Column(timestamp).Seconds()
	r.Sample = trace.SampleRecord{Series: s.name, Value: l.Column(value).Float()}
	if pod := l.Column(container); !pod.Empty() {
		r.Sample.Subject = pod.Name()
	}
	if l.Has(requestType) {
		r.Sample.Series = s.of(l.Column(requestType))
	}
}

// of is the series' name with the type of request.
func (s series) of(f trace.Field) string {
	if name, ok := s.typed[string(f.Bytes())]; ok {
		return name
	}
	text := f.Name()
	name := s.name + "/" + text
	if len(s.typed) < 64 { // there are two
		s.typed[text] = name
	}
	return name
}

func request(l *trace.Line, r *trace.Record) {
	r.Kind = trace.Job
	r.At = l.Column(created).Date()
	r.Job = trace.UnknownJob()
	r.Job.User = l.Column(kind).Name()
	r.Job.Status = l.Column(status).Name()
	r.Job.Duration = l.Column(seconds).Seconds()
	if g := l.Column(group); !g.Empty() {
		r.Job.Queue = g.Name()
	}
	for i := promptLength; i <= loras; i++ {
		switch f := l.Column(i); {
		case f.Empty():
		case i == promptLength+4:
			f.Name()
		default:
			f.Milli()
		}
	}
}
