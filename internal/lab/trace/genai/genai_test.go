package genai

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/lab/trace"
	"sluice.dev/sluice/internal/lab/trace/tracetest"
)

var memory = tracetest.Suite{
	Format: Format(),
	File:   "pod_memory_anon.csv.gz",
	Sample: "value,container_ip,timestamp_anon\n33879490560.0,aa,1662858720.0\n0.09000000000000001,,1662858777.5\n1e3,aa,1662858778\n",
	Want: []trace.Record{
		{Kind: trace.Sample, Line: 2, At: 1662858720 * time.Second, Sample: trace.SampleRecord{Series: "pod_memory", Subject: "aa",
			Value: 33879490560}},
		{Kind: trace.Sample, Line: 3, At: 1662858777*time.Second + 500*time.Millisecond, Sample: trace.SampleRecord{Series: "pod_memory",
			Value: .09000000000000001}},
		{Kind: trace.Sample, Line: 4, At: 1662858778 * time.Second, Sample: trace.SampleRecord{Series: "pod_memory", Subject: "aa",
			Value: 1000}},
	},
	Broken: []tracetest.Broken{
		{Name: "wrong number", Old: "1e3", New: "inf", Says: `value is "inf", expected a number`},
		{Name: "too big a number", Old: "1e3", New: "1e999", Says: `value is "1e999"`},
		{Name: "missing column", Old: ",container_ip", New: "", Place: "1:1", Says: "the header lacks container_ip"},
		{Name: "no time", Old: "1662858777.5", New: "", Says: "timestamp_anon"},
	},
}

var rates = tracetest.Suite{
	Format: Format(),
	File:   "rates.csv",
	Sample: "timestamp_anon,value,container_ip,request_type\n60,0.5,,API Requests\n61,1,aa,Generative Requests\n",
	Want: []trace.Record{
		{Kind: trace.Sample, Line: 2, At: time.Minute, Sample: trace.SampleRecord{Series: "rates/API Requests", Value: .5}},
		{Kind: trace.Sample, Line: 3, At: 61 * time.Second, Sample: trace.SampleRecord{Series: "rates/Generative Requests", Subject: "aa",
			Value: 1}},
	},
	Broken: []tracetest.Broken{{Name: "no type", Old: "API Requests", New: "", Says: "request_type"}},
}

var requests = tracetest.Suite{
	Format: Format(),
	File:   "requests.csv",
	Sample: `gmt_create,predict_type,predict_status,exec_time_seconds,groupId,prompt_length,negative_prompt_length,num_images_per_prompt,num_inference_steps,checkpoint_model_version_id,num_lora
1970-01-01 00:10:00,TXT_2_IMG,SUCCEED,32.0,G0,63.0,,1.0,30.0,M0,0
1970-01-01 00:11:00,INPAINTING,PENDING,0.0,G1,,,,,,2
`,
	Want: []trace.Record{
		{Kind: trace.Job, Line: 2, At: 10 * time.Minute, Job: job("G0", "TXT_2_IMG", "SUCCEED", 32*time.Second)},
		{Kind: trace.Job, Line: 3, At: 11 * time.Minute, Job: job("G1", "INPAINTING", "PENDING", 0)},
	},
	Broken: []tracetest.Broken{
		{Name: "wrong number", Old: "32.0", New: "32s", Says: "exec_time_seconds"},
		{Name: "wrong setting", Old: "63.0", New: "long", Says: `prompt_length is "long"`},
		{Name: "missing column", Old: "groupId,", New: "", Place: "1:1", Says: "the header lacks groupId"},
	},
}

func job(queue, user, status string, ran time.Duration) trace.JobRecord {
	j := trace.UnknownJob()
	j.Queue, j.User, j.Status, j.Duration = queue, user, status, ran
	return j
}

func TestMemoryConforms(t *testing.T)  { tracetest.Run(t, memory) }
func TestRatesConform(t *testing.T)    { tracetest.Run(t, rates) }
func TestRequestsConform(t *testing.T) { tracetest.Run(t, requests) }
func FuzzGenaiSeries(f *testing.F)     { tracetest.Fuzz(f, rates) }
func FuzzGenaiRequests(f *testing.F)   { tracetest.Fuzz(f, requests) }
func BenchmarkGenai(b *testing.B)      { tracetest.Bench(b, memory) }

func TestPublishedSeries(t *testing.T) {
	for name, want := range map[string]struct {
		samples int
		most    float64
	}{
		"pod_gpu_memory_used_bytes_anon": {96380, 48 << 30}, "pod_gpu_duty_cycle_anon": {94616, 100}, "qps": {23695, 1e6},
		"basemodel_update_latency_anon": {7170, 1e9}, "lora_update_latency_anon": {26309, 1e9}, "model_predict_data_anon": {5561, 1e9},
		"pipeline_inference_data_anon": {32750, 1e9}, "queue_rt_raw_anon": {22817, 1e9}, "queue_size_raw_anon": {860, 1e9},
	} {
		var last time.Duration
		n := tracetest.Each(t, Format(), "genai2026/"+name+".csv.gz", func(r *trace.Record) {
			if r.At < last || r.Sample.Value < 0 || r.Sample.Value > want.most {
				t.Fatalf("%s, line %d: %+v at %v after %v", name, r.Line, r.Sample, r.At, last)
			}
			last = r.At
		})
		if n != want.samples {
			t.Errorf("%s: %d samples, want %d", name, n, want.samples)
		}
	}
}

func TestPublishedRequests(t *testing.T) {
	status := map[string]int{}
	n := tracetest.Each(t, Format(), "genai2026/lora_request_trace.csv.gz", func(r *trace.Record) { status[r.Job.Status]++ })
	if n != 16093 || status["SUCCEED"] != 15823 || status["FAILED"] != 255 || status["PENDING"] != 15 {
		t.Errorf("%d requests: %v", n, status)
	}
}
