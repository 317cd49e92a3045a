// Package openb reads Alibaba's GPU trace of 2023: its node lists, and its pod lists with times (eleven columns) or
// without (five). Times are seconds since the trace's start.
package openb

import (
	"io"
	"strings"

	"sluice.dev/sluice/internal/lab/trace"
)

// Columns of a node list.
const (
	nodeName = iota
	nodeCPU
	nodeMemory
	nodeGPUs
	nodeModel
)

// Columns of a pod list.
const (
	name = iota
	cpu
	memory
	gpus
	milli
	spec
	qos
	phase
	created
	deleted
	scheduled
)

// lifetime is how long a pod ran, and waited, of a list that does not say when pods began.
const lifetime = "pod without scheduled_time: taken as running for as long as it was there"

// Format of the files. Records are nodes or jobs; a job's queue is its class of service and its status its phase.
func Format() trace.Format {
	return trace.Format{Name: "openb", Doc: "nodes and pods of Alibaba's GPU cluster, 2023 (CSV)",
		Kinds: []trace.Kind{trace.Node, trace.Job}, Open: open}
}

func open(r io.Reader, file string) trace.Reader {
	pods := podReader{models: map[string][]string{}}
	return trace.OpenCSV(r, file,
		trace.Sheet{
			Columns:  []string{name: "name", cpu: "cpu_milli", memory: "memory_mib", gpus: "num_gpu", milli: "gpu_milli"},
			Optional: []string{"gpu_spec", "qos", "pod_phase", "creation_time", "deletion_time", "scheduled_time"},
			Parse:    pods.parse,
		},
		trace.Sheet{
			Columns: []string{nodeName: "sn", nodeCPU: "cpu_milli", nodeMemory: "memory_mib", nodeGPUs: "gpu", nodeModel: "model"},
			Parse:   parseNode,
		})
}

func parseNode(l *trace.Line, r *trace.Record) {
	r.Kind = trace.Node
	r.Node = trace.NodeRecord{
		ID:     l.Column(nodeName).ID(),
		GPUs:   l.Column(nodeGPUs).Count(),
		CPU:    l.Column(nodeCPU).Count(),
		Memory: l.Column(nodeMemory).Count(),
	}
	if model := l.Column(nodeModel); !model.Empty() || r.Node.GPUs > 0 {
		r.Node.Model = model.Name()
	}
}

// podReader remembers the lists of models it has cut: there are few.
type podReader struct{ models map[string][]string }

func (p podReader) parse(l *trace.Line, r *trace.Record) {
	r.Kind = trace.Job
	r.Job = trace.UnknownJob()
	job := &r.Job
	job.ID = l.Column(name).ID()
	job.CPU, job.Memory = l.Column(cpu).Count(), l.Column(memory).Count()
	job.GPUs, job.Milli = l.Column(gpus).Count(), l.Column(milli).Count()
	switch {
	case job.GPUs == 0 && job.Milli != 0, job.GPUs > 1 && job.Milli != 1000, job.GPUs == 1 && (job.Milli < 1 || job.Milli > 1000):
		l.Column(milli).Fail("0 without a GPU, 1 to 1000 with one, 1000 with several")
	}
	if l.Has(spec) && !l.Column(spec).Empty() {
		job.Models = p.list(l.Column(spec))
	}
	if l.Has(qos) && !l.Column(qos).Empty() {
		job.Queue = l.Column(qos).Name()
	}
	if l.Has(phase) && !l.Column(phase).Empty() {
		job.Status = l.Column(phase).Name()
	}
	if l.Has(created) {
		r.At = l.Column(created).Seconds()
	}
	if !l.Has(scheduled) && l.Has(created) && l.Has(deleted) {
		l.Treat(lifetime)
		if job.Duration = l.Column(deleted).Seconds() - r.At; job.Duration < 0 {
			l.Column(deleted).Fail("a time that is not before creation_time")
		}
	}
	if l.Has(scheduled) && !l.Column(scheduled).Empty() { // empty: the pod never started
		job.Start = l.Column(scheduled).Seconds()
		if l.Has(created) && job.Start < r.At {
			l.Column(scheduled).Fail("a time that is not before creation_time")
		}
		if l.Has(deleted) {
			if job.Duration = l.Column(deleted).Seconds() - job.Start; job.Duration < 0 {
				l.Column(deleted).Fail("a time that is not before scheduled_time")
			}
		}
	}
}

// list cuts "A10|V100M32" into its models.
func (p podReader) list(f trace.Field) []string {
	if models, ok := p.models[string(f.Bytes())]; ok {
		return models
	}
	text := f.Name()
	models := strings.Split(text, "|")
	for _, m := range models {
		if m == "" {
			f.Fail("models with | between them")
			return nil
		}
	}
	p.models[text] = models
	return models
}
