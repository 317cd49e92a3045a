package prometheus

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/history"
)

const (
	begin  = 1_700_000_040 // a multiple of the step
	step   = 60
	second = quantity.Instant(time.Second)
)

// told is a series of a dump: a metric with labels as "pod=a,uid=u", and a value at each minute since begin, "-" where there is none.
type told struct{ metric, labels, values string }

// sampled is one whose value is the same from one minute to another, both included.
func sampled(metric, labels string, from, to int, value float64) told {
	text := strings.Repeat("- ", from) + strings.Repeat(strconv.FormatFloat(value, 'f', -1, 64)+" ", to-from+1)
	return told{metric, labels, text}
}

func (s told) json() map[string]any {
	metric := map[string]string{"__name__": s.metric}
	for pair := range strings.SplitSeq(s.labels, ",") {
		key, value, _ := strings.Cut(pair, "=")
		metric[key] = value
	}
	values := [][]any{}
	for i, v := range strings.Fields(s.values) {
		if v != "-" {
			values = append(values, []any{begin + i*step, v})
		}
	}
	return map[string]any{"metric": metric, "values": values}
}

// answer is what the API answers with.
func answer(series ...told) string {
	result := []any{}
	for _, s := range series {
		result = append(result, s.json())
	}
	text, _ := json.Marshal(map[string]any{"status": "success", "data": map[string]any{"resultType": "matrix", "result": result}})
	return string(text)
}

func closed(t interface {
	Helper()
	Fatal(...any)
}, dumps ...string) *history.History {
	t.Helper()
	h, err := opened(dumps...)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func opened(dumps ...string) (*history.History, error) {
	b := history.NewBook(history.Options{})
	for i, text := range dumps {
		if err := Read(b, strings.NewReader(text), fmt.Sprintf("%d.json", i)); err != nil {
			return nil, err
		}
	}
	return b.Close()
}

// shown are the runs of a history: name, node, from and to in seconds since begin, state, devices.
func shown(h *history.History) (out []string) {
	for i := range h.Runs {
		r := &h.Runs[i]
		var nodes, load []string
		for _, n := range h.Places[r.Place] {
			nodes = append(nodes, h.Nodes[n].Name)
		}
		for _, p := range h.Loads[r.Load] {
			load = append(load, fmt.Sprintf("%d %s", p.Count, h.Kinds[p.Kind].Name))
		}
		out = append(out, fmt.Sprintf("%s %s %d..%d %s %s", r.ID, strings.Join(nodes, ","), (r.Start-begin*second)/second,
			(r.End-begin*second)/second, r.State, strings.Join(load, ", ")))
	}
	slices.Sort(out)
	return out
}

func odd(h *history.History) (out []string) {
	for _, o := range h.Oddities {
		out = append(out, fmt.Sprintf("%s: %d %s", o.Name, o.Count, strings.Join(o.Places, " ")))
	}
	return out
}

func expect(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// Series of one Pod "a" and one node "n" of two GPUs over ten minutes.
const (
	requests = "kube_pod_container_resource_requests"
	onNode   = "namespace=x,pod=a,uid=u,container=c,node=n,resource=nvidia_com_gpu,unit=integer"
	ofPod    = "namespace=x,pod=a,uid=u"
)

func aNode() told {
	return sampled("kube_node_status_allocatable", "node=n,resource=nvidia_com_gpu,unit=integer", 0, 10, 2)
}

func TestPods(t *testing.T) {
	stamp := func(metric string, from, to, value int) told {
		return sampled(metric, ofPod, from, to, float64(begin+value))
	}
	over := func(phase string, from, to int) told {
		return sampled("kube_pod_status_phase", ofPod+",phase="+phase, from, to, 1)
	}
	for _, c := range []struct {
		name   string
		series []told
		want   []string
	}{
		{"exact", []told{sampled(requests, onNode, 2, 8, 1), stamp("kube_pod_status_scheduled_time", 2, 8, 95), over("Succeeded", 6, 8),
			stamp("kube_pod_completion_time", 6, 8, 333)}, []string{"x/a n 95..333 completed 1 gpu"}},
		{"started is less exact than scheduled", []told{sampled(requests, onNode, 2, 8, 1), stamp("kube_pod_start_time", 2, 8, 99),
			over("Failed", 6, 8)}, []string{"x/a n 99..360 failed 1 gpu"}},
		{"from sample to sample", []told{sampled(requests, onNode, 2, 5, 2)}, []string{"x/a n 120..360 unclear 2 gpu"}},
		{"goes on", []told{sampled(requests, onNode, 2, 10, 1)}, []string{"x/a n 120..600 running 1 gpu"}},
		{"waits first", []told{sampled(requests, "namespace=x,pod=a,uid=u,container=c,resource=nvidia_com_gpu,node=", 0, 3, 1),
			sampled(requests, onNode, 4, 10, 1)}, []string{"x/a n 240..600 running 1 gpu"}},
		{"a container that is over beside one that goes on", []told{sampled(requests, onNode, 2, 10, 1),
			stamp("kube_pod_completion_time", 4, 10, 200), sampled("kube_pod_status_phase", ofPod+",phase=Succeeded", 0, 10, 0)},
			[]string{"x/a n 120..600 running 1 gpu"}},
		{"a container that was begun anew", []told{sampled(requests, onNode, 2, 8, 1), stamp("kube_pod_completion_time", 4, 5, 200),
			sampled("kube_pod_status_phase", ofPod+",phase=Succeeded", 0, 8, 0)}, []string{"x/a n 120..540 unclear 1 gpu"}},
		{"deleted as soon as it was over", []told{sampled(requests, onNode, 2, 6, 1), stamp("kube_pod_completion_time", 6, 6, 351),
			sampled("kube_pod_status_phase", ofPod+",phase=Succeeded", 0, 6, 0)}, []string{"x/a n 120..351 completed 1 gpu"}},
		{"no phases", []told{sampled(requests, onNode, 2, 10, 1), stamp("kube_pod_completion_time", 6, 10, 351)},
			[]string{"x/a n 120..351 completed 1 gpu"}},
		{"two replicas of the exporter", []told{sampled(requests, onNode+",instance=1", 2, 4, 1), sampled(requests, onNode+",instance=2", 4,
			6, 1)},
			[]string{"x/a n 120..420 unclear 1 gpu"}},
		{"honor_labels is off", []told{sampled(requests, "namespace=monitoring,pod=ksm-0,exported_namespace=x,exported_pod=a,uid=u,"+
			"exported_container=c,container=ksm,node=n,resource=nvidia_com_gpu", 2, 4, 1)}, []string{"x/a n 120..300 unclear 1 gpu"}},
		{"limits stand for requests", []told{sampled("kube_pod_container_resource_limits", onNode, 2, 4, 2)},
			[]string{"x/a n 120..300 unclear 2 gpu"}},
		{"limits are no more", []told{sampled("kube_pod_container_resource_limits", onNode, 2, 4, 1), sampled(requests, onNode, 2, 4, 1)},
			[]string{"x/a n 120..300 unclear 1 gpu"}},
		{"containers add up", []told{sampled(requests, onNode, 2, 4, 1), sampled(requests, strings.Replace(onNode, "container=c",
			"container=d", 1),
			2, 4, 1)}, []string{"x/a n 120..300 unclear 2 gpu"}},
		{"setting up takes more", []told{sampled(requests, onNode, 2, 4, 1), sampled("kube_pod_init_container_resource_requests",
			strings.Replace(onNode, "container=c", "container=i", 1), 2, 4, 2)}, []string{"x/a n 120..300 unclear 2 gpu"}},
		{"a sidecar goes on", []told{sampled(requests, onNode, 2, 4, 1), sampled("kube_pod_init_container_resource_requests",
			strings.Replace(onNode, "container=c", "container=i", 1), 2, 4, 1), sampled("kube_pod_init_container_info",
			ofPod+",container=i,restart_policy=Always", 2, 4, 1)}, []string{"x/a n 120..300 unclear 2 gpu"}},
		{"the same name anew", []told{sampled(requests, onNode, 2, 4, 1), sampled(requests, strings.Replace(onNode, "uid=u", "uid=v", 1), 5,
			7, 1)},
			[]string{"x/a n 120..300 unclear 1 gpu", "x/a n 300..480 unclear 1 gpu"}},
		{"the same name anew, without uids", []told{sampled(requests, strings.Replace(onNode, "uid=u", "uid=", 1), 2, 4, 1),
			sampled(requests, strings.Replace(onNode, "uid=u", "uid=", 1), 6, 7, 1)},
			[]string{"x/a n 120..300 unclear 1 gpu", "x/a n 360..480 unclear 1 gpu"}},
		{"an exporter that flickers", []told{sampled(requests, onNode, 2, 4, 1), sampled(requests, onNode, 7, 10, 1)},
			[]string{"x/a n 120..600 running 1 gpu"}},
	} {
		t.Run(c.name, func(t *testing.T) { expect(t, shown(closed(t, answer(append(c.series, aNode())...))), c.want...) })
	}
}

// TestSluicesOwnPods hold nothing of the users', whatever they ask for.
func TestSluicesOwnPods(t *testing.T) {
	other := strings.NewReplacer("pod=a", "pod=b", "uid=u", "uid=v")
	h := closed(t, answer(aNode(), sampled(requests, onNode, 2, 10, 1), sampled(requests, other.Replace(onNode), 2, 10, 1),
		sampled("kube_pod_info", ofPod+",node=n,priority_class=sluice-leftover", 2, 10, 1),
		sampled("kube_pod_info", other.Replace(ofPod)+",node=n,priority_class=batch", 2, 10, 1)))
	expect(t, shown(h), "x/b n 120..600 running 1 gpu")
	expect(t, odd(h), "a Pod of Sluice itself: 1 Pod x/a")
}

// TestQuestionsForOtherInstants: of nodes and Pods asked a few seconds apart it is known to a step what was there.
func TestQuestionsForOtherInstants(t *testing.T) {
	later := func(text string) string { // two seconds
		for i := range 11 {
			text = strings.Replace(text, fmt.Sprint(begin+i*step), fmt.Sprint(begin+i*step+2), 1)
		}
		return text
	}
	without := strings.NewReplacer("pod=a", "pod=c", "uid=u", "uid=").Replace(onNode)
	b := strings.NewReplacer("pod=a", "pod=b", "uid=u", "uid=v").Replace(onNode)
	h := closed(t, later(answer(aNode())), answer(sampled(requests, onNode, 2, 10, 1)), answer(sampled(requests, b, 2, 5, 1)),
		answer(sampled(requests, without, 1, 4, 1)), answer(sampled(requests, without, 5, 10, 1)))
	expect(t, shown(h), "x/a n 120..600 running 1 gpu", "x/b n 120..360 unclear 1 gpu", "x/c n 60..600 running 1 gpu")
	expect(t, odd(h), "a run that found too few free devices on its nodes: 1 job x/a")
}

// TestHolesEndNothing: where nothing was sampled nothing ended, and nothing is idle.
func TestHolesEndNothing(t *testing.T) {
	broken := func(s told, from, to int) told {
		v := strings.Fields(s.values)
		for i := from; i < min(to, len(v)); i++ {
			v[i] = "-"
		}
		s.values = strings.Join(v, " ")
		return s
	}
	b := strings.NewReplacer("pod=a", "pod=b", "uid=u", "uid=v").Replace(onNode)
	without := strings.NewReplacer("pod=a", "pod=c", "uid=u", "uid=").Replace(onNode)
	h := closed(t, answer(broken(aNode(), 3, 8), broken(sampled(requests, onNode, 1, 10, 1), 3, 8), sampled(requests, b, 1, 2, 1)))
	expect(t, shown(h), "x/a n 60..600 running 1 gpu", "x/b n 60..120 unclear 1 gpu")
	expect(t, odd(h), "a Pod that was gone when samples came back: 1 Pod x/b",
		"a time in which kube-state-metrics was not sampled: 1 2023-11-14T22:16:00Z to 2023-11-14T22:22:00Z")
	var idle []history.Gap
	for g := range h.Idle(0, true) {
		idle = append(idle, history.Gap{From: (g.From - begin*second) / second, To: (g.To - begin*second) / second})
	}
	if !slices.Equal(idle, []history.Gap{{From: 0, To: 60}, {From: 120, To: 180}, {From: 480, To: 600}}) {
		t.Errorf("idle %v", idle)
	}
	h = closed(t, answer(broken(aNode(), 3, 8), broken(sampled(requests, without, 1, 10, 1), 3, 8)))
	expect(t, shown(h), "x/c n 60..600 running 1 gpu")
}

func TestNodes(t *testing.T) {
	pod := sampled(requests, onNode, 0, 10, 1)
	resource := func(name string, count float64) told {
		return sampled("kube_node_status_allocatable", "node=n,resource="+name, 0, 10, count)
	}
	label := func(text string) told { return sampled("kube_node_labels", "node=n,"+text, 0, 10, 1) }
	mig := sampled(requests, strings.Replace(onNode, "nvidia_com_gpu", "nvidia_com_mig_1g_10gb", 1), 0, 10, 2)
	for _, c := range []struct {
		name          string
		series        []told
		devices, away string
	}{
		{"plain", []told{pod, aNode()}, "2 gpu", ""},
		{"with a product", []told{pod, aNode(), label("label_nvidia_com_gpu_product=NVIDIA-A100-SXM4-80GB")}, "2 NVIDIA-A100-SXM4-80GB",
			""},
		{"slices as whole devices", []told{pod, aNode(), label("label_nvidia_com_gpu_product=NVIDIA-A100-SXM4-40GB-MIG-1g.5gb")},
			"2 NVIDIA-A100-SXM4-40GB-MIG-1g.5gb/142", ""},
		{"slices", []told{mig, resource("nvidia_com_gpu", 0), resource("nvidia_com_mig_1g_10gb", 4), resource("nvidia_com_mig_1g_10gb_me",
			1)},
			"4 1g.10gb/142, 1 1g.10gb+me/142", ""},
		{"capacity", []told{pod, sampled("kube_node_status_capacity", "node=n,resource=nvidia_com_gpu", 0, 10, 3)}, "3 gpu", ""},
		{"shares", []told{pod, resource("nvidia_com_gpu", 8),
			label("label_nvidia_com_gpu_replicas=4,label_nvidia_com_gpu_product=T4-SHARED")},
			"2 T4", ""},
		{"shares by their name", []told{sampled(requests, strings.Replace(onNode, "com_gpu", "com_gpu_shared", 1), 0, 10, 1),
			resource("nvidia_com_gpu_shared", 8), label("label_nvidia_com_gpu_replicas=4")}, "2 gpu", ""},
		{"cordoned", []told{pod, aNode(), {"kube_node_spec_unschedulable", "node=n", "0 0 1 1 0 0 0 0 1 1 1"}}, "2 gpu",
			"drained 120..240, drained 480.."},
		{"cordoned, zeros left out", []told{pod, aNode(), {"kube_node_spec_unschedulable", "node=n", "- - 1 1 - - - - 1"}}, "2 gpu",
			"drained 120..240, drained 480..540"},
		{"not ready", []told{pod, aNode(), {"kube_node_status_condition", "node=n,condition=Ready,status=true", "1 1 0 0 1 1 1 1 1 1 1"},
			{"kube_node_status_condition", "node=n,condition=Ready,status=unknown", "0 0 0 1 0 0 0 0 0 0 0"},
			{"kube_node_status_condition", "node=n,condition=DiskPressure,status=true", "1 1 1 1 1 1 1 1 1 1 1"}}, "2 gpu",
			"down 120..240"},
		{"no device for a time", []told{pod, {"kube_node_status_allocatable", "node=n,resource=nvidia_com_gpu", "2 2 0 0 2 2 2 2 2 2 2"}},
			"2 gpu", "down 120..240"},
		{"comes and goes", []told{sampled(requests, strings.Replace(onNode, "node=n", "node=m", 1), 0, 10, 1),
			sampled("kube_node_status_allocatable", "node=n,resource=nvidia_com_gpu", 3, 7, 2)}, "2 gpu", "down 0..180, down 480.."},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := closed(t, answer(c.series...))
			i := slices.IndexFunc(h.Nodes, func(n history.Node) bool { return n.Name == "n" })
			n, count := &h.Nodes[i], map[int32]int{}
			for _, d := range h.Devices[n.First : n.First+n.Count] {
				count[d.Kind]++
			}
			var devices, away []string
			for k := range h.Kinds {
				if kind := &h.Kinds[k]; count[int32(k)] > 0 {
					text := fmt.Sprintf("%d %s", count[int32(k)], kind.Name)
					if kind.Weight != 1000 {
						text += fmt.Sprintf("/%d", kind.Weight)
					}
					devices = append(devices, text)
				}
			}
			for _, a := range n.Away {
				to := ""
				if a.To != quantity.Never {
					to = fmt.Sprint((a.To - begin*second) / second)
				}
				away = append(away, fmt.Sprintf("%s %d..%s", a.Why, (a.From-begin*second)/second, to))
			}
			if got := strings.Join(devices, ", "); got != c.devices {
				t.Errorf("devices %q, want %q", got, c.devices)
			}
			if got := strings.Join(away, ", "); got != c.away {
				t.Errorf("away %q, want %q", got, c.away)
			}
		})
	}
}

// TestSharesHoldADevice: as long as any share of a device is held, the device is.
func TestSharesHoldADevice(t *testing.T) {
	pod := func(name string, from, to int) told {
		return sampled(requests, strings.NewReplacer("pod=a", "pod="+name, "uid=u", "uid="+name).Replace(onNode), from, to, 1)
	}
	h := closed(t, answer(sampled("kube_node_status_allocatable", "node=n,resource=nvidia_com_gpu", 0, 20, 8),
		sampled("kube_node_labels", "node=n,label_nvidia_com_gpu_replicas=4", 0, 20, 1),
		pod("a", 1, 4), pod("b", 2, 10), pod("c", 3, 6), pod("d", 15, 16)))
	var held []string
	for i, holds := range h.Held {
		for _, x := range holds {
			held = append(held, fmt.Sprintf("%d: %s %d..%d", i, h.Runs[x.Run].ID, (x.From-begin*second)/second, (x.To-begin*second)/second))
		}
	}
	expect(t, held, "0: x/a 60..420", "0: x/d 900..1020", "1: x/b 120..660")
	if !slices.ContainsFunc(h.Assumptions, func(s string) bool { return strings.HasPrefix(s, "a share of a GPU") }) {
		t.Error(h.Assumptions)
	}
}

// TestDumps: several documents, promtool's list, gzip; what is no range, cut or an error is named, and the rest counts.
func TestDumps(t *testing.T) {
	pod, list := sampled(requests, onNode, 2, 8, 1), func(series ...told) string {
		text, _ := json.MarshalIndent([]any{series[0].json()}, "", " ")
		return string(text)
	}
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	_, _ = w.Write([]byte(answer(pod, aNode())))
	_ = w.Close()
	run := "x/a n 120..540 unclear 1 gpu"
	whole := answer(aNode()) + "\n" + answer(pod)
	for _, c := range []struct {
		name  string
		dumps []string
		odd   []string
	}{
		{"one after another", []string{whole}, nil},
		{"in files", []string{answer(aNode()), answer(pod)}, nil},
		{"promtool", []string{list(aNode()), list(pod)}, nil},
		{"gzip", []string{zipped.String()}, nil},
		{"twice", []string{whole, whole}, nil},
		{"cut", []string{whole + answer(pod)[:200]}, []string{"a dump that is cut or damaged: 1 0.json:2"}},
		{"no JSON", []string{whole + "\nnothing\n"}, []string{"a dump that is no JSON from some place on: 1 0.json:3"}},
		{"an error", []string{`{"status":"error","errorType":"execution","error":"too many samples"}`, whole},
			[]string{"an answer of Prometheus that is an error: 1 0.json:1"}},
		{"a warning", []string{`{"status":"success","warnings":["partial"],"data":{"resultType":"matrix","result":[]}}` + whole},
			[]string{"a warning of Prometheus beside an answer: 1 0.json:1"}},
		{"one instant", []string{whole,
			`{"status":"success","data":{"resultType":"vector","result":[{"metric":{"a":"b"},"value":[1,"2"]}]}}`,
			`[{"metric":{},"value":[1,"2"]},7]`}, []string{"an answer that is no range of samples: 3 1.json:1 2.json:1 2.json:1"}},
		{"another metric", []string{whole, answer(told{"up", "job=x", "1 1"}, told{"kube_job_info", "job=x", "1 1"})},
			[]string{"a series of a metric that says nothing of Pods, nodes or devices: 1 up"}},
		{"no labels", []string{whole, answer(told{requests, "container=c", "1 1"}, told{"kube_node_labels", "x=y", "1 1"})},
			[]string{"a series without the labels that say what it is of: 2 1.json:1 1.json:1"}},
		{"a claim", []string{whole, answer(told{"kube_pod_resourceclaim_info", "namespace=x,pod=d,uid=w,claim_name=gpu", "1 1"})},
			[]string{"a Pod whose devices are those of a DRA claim: 1 Pod x/d"}},
		{"histograms and keys to come",
			[]string{`{"status":"success","more":{"a":[1,{"b":null}]},"data":{"stats":{},"resultType":"matrix",` +
				`"result":[{"metric":{"__name__":"kube_job_x"},"values":[[1700000040,"1"]],"histograms":[[1,{"count":"1"}]]}]}}` +
				whole}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := closed(t, c.dumps...)
			expect(t, shown(h), run)
			expect(t, odd(h), c.odd...)
			if !is([]byte(c.dumps[0])) && c.name != "gzip" {
				t.Error("it is not taken for a dump")
			}
		})
	}
	for _, c := range []struct{ dump, says string }{
		{`{"status":"error","errorType":"timeout","error":"query timed out"}`,
			"answered with an error: timeout: query timed out: ask again"},
		{answer(aNode()), "no job was read"},
		{answer(aNode(), sampled(requests, onNode+",cluster=a", 2, 8, 1), sampled(requests, onNode+",cluster=b", 2, 8, 1)),
			"clusters a and b"},
	} {
		if _, err := opened(c.dump); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v; want %q", err, c.says)
		}
	}
}

// TestScan: whatever stands in labels and values comes back as encoding/json has written it.
func TestScan(t *testing.T) {
	type told struct {
		Metric map[string]string `json:"metric"`
		Values [][2]any          `json:"values"`
	}
	rapid.Check(t, func(t *rapid.T) {
		var all []told
		for range rapid.IntRange(0, 4).Draw(t, "series") {
			x := told{Metric: rapid.MapOf(rapid.String(), rapid.String()).Draw(t, "labels"), Values: [][2]any{}}
			at := rapid.Int64Range(0, 2e12).Draw(t, "begin")
			for range rapid.IntRange(0, 5).Draw(t, "samples") {
				at += rapid.Int64Range(1, 1e6).Draw(t, "apart")
				v := rapid.Float64().Draw(t, "value")
				x.Values = append(x.Values, [2]any{float64(at) / 1000, strconv.FormatFloat(v, 'g', -1, 64)})
			}
			all = append(all, x)
		}
		plain := rapid.Bool().Draw(t, "plain")
		var text []byte
		if plain {
			text, _ = json.Marshal(all)
		} else {
			text, _ = json.MarshalIndent(map[string]any{"status": "success", "data": map[string]any{"result": all, "resultType": "matrix"}},
				"", "\t")
		}
		if all == nil {
			return
		}
		got := &heard{}
		b := bufio.NewReader(bytes.NewReader(text))
		if err := newScanner(b).document(got); err != nil || len(got.all) != len(all) {
			t.Fatalf("%v, %d of %d", err, len(got.all), len(all))
		}
		for i, x := range all {
			again, _ := json.Marshal(got.all[i].labels)
			labels, _ := json.Marshal(x.Metric)
			if string(again) != string(labels) || len(got.all[i].at) != len(x.Values) {
				t.Fatalf("%s, %s; %v, %v", again, labels, got.all[i].at, x.Values)
			}
			for k, v := range x.Values {
				y := got.all[i]
				if y.at[k] != int64(v[0].(float64)*1000+.5) || strconv.FormatFloat(y.values[k], 'g', -1, 64) != v[1].(string) {
					t.Fatalf("%v %v; %v", y.at[k], y.values[k], v)
				}
			}
		}
	})
}

// TestPodsAreFoundAsTheyWere plays Pods on nodes and samples them, with holes, in files, with replicas: what is read is what a look at each
// instant of the grid says.
func TestPodsAreFoundAsTheyWere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const last = 40 // minutes
		hole := rapid.IntRange(3, 30).Draw(t, "hole")
		long := rapid.IntRange(0, 6).Draw(t, "long")
		sampledAt := func(minute int) bool { return minute < hole || minute >= hole+long }
		exact := rapid.Bool().Draw(t, "exact")
		line := func(metric, labels string, value func(minute int) string) told {
			var v []string
			for m := range last + 1 {
				text := "-"
				if sampledAt(m) {
					text = value(m)
				}
				v = append(v, text)
			}
			return told{metric, labels, strings.Join(v, " ")}
		}
		all := []told{line("kube_node_status_allocatable", "node=n,resource=nvidia_com_gpu", func(int) string { return "64" })}
		var wanted []string
		for i := range rapid.IntRange(1, 6).Draw(t, "pods") {
			from := rapid.IntRange(1, last*60-1).Draw(t, "from")
			to := rapid.IntRange(from, last*60+600).Draw(t, "to")
			name := fmt.Sprintf("p%d", i)
			labels := "namespace=x,pod=" + name + ",uid=" + name
			there := func(m int) bool { return m*60 >= from && m*60 < to }
			first, gone := -1, -1
			for m := range last + 1 {
				if sampledAt(m) && there(m) && first < 0 {
					first = m
				}
				if sampledAt(m) && !there(m) && first >= 0 && gone < 0 {
					gone = m
				}
			}
			if first < 0 {
				continue
			}
			value := func(v int) func(int) string {
				return func(m int) string {
					if !there(m) {
						return "-"
					}
					return fmt.Sprint(v)
				}
			}
			all = append(all, line(requests, labels+",container=c,node=n,resource=nvidia_com_gpu", value(1)))
			start, end, state := first*60, last*60, "running"
			if exact {
				start = from
				all = append(all, line("kube_pod_status_scheduled_time", labels, value(begin+from)))
			}
			if gone >= 0 {
				end, state = gone*60, "unclear"
				if before := hole - 1; gone == hole+long && long >= 2 && there(before) {
					end = before * 60 // it ended in the hole
				}
			}
			if exact && start > first*60 {
				start = first * 60
			}
			wanted = append(wanted, fmt.Sprintf("x/%s n %d..%d %s 1 gpu", name, start, max(start, end), state))
		}
		if len(wanted) == 0 {
			return
		}
		slices.Sort(wanted)
		for i, s := range all { // a replica that was there for a part
			if rapid.Bool().Draw(t, "replica") {
				v := strings.Fields(s.values)
				for k := range rapid.IntRange(0, last).Draw(t, "until") {
					v[k] = "-"
				}
				all = append(all, told{s.metric, s.labels + ",instance=2", strings.Join(v, " ")})
			}
			_ = i
		}
		cut := rapid.IntRange(0, last).Draw(t, "cut")
		var files [2][]told
		for _, s := range rapid.Permutation(all).Draw(t, "order") {
			v := strings.Fields(s.values)
			files[0] = append(files[0], told{s.metric, s.labels, strings.Join(v[:cut], " ")})
			files[1] = append(files[1], told{s.metric, s.labels, strings.Repeat("- ", cut) + strings.Join(v[cut:], " ")})
		}
		h, err := opened(answer(files[1]...), answer(files[0]...))
		if err != nil {
			t.Fatal(err)
		}
		if got := shown(h); !slices.Equal(got, wanted) {
			t.Fatalf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(wanted, "\n  "))
		}
	})
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(answer(aNode(), sampled(requests, onNode, 2, 8, 1), sampled("kube_pod_status_phase", ofPod+",phase=Failed", 0, 10, 1))))
	f.Add([]byte(`[{"metric":{"__name__":"kube_node_labels","node":"\ud83d\ude00"},"values":[[1.5,"1e3"],[2,"NaN"],[3,"+Inf"]]}]`))
	f.Add([]byte(`{"status":"error","errorType":"bad_data","error":"exceeded maximum resolution of 11,000 points per timeseries"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		read := func() (string, string) {
			h, err := opened(string(text))
			if err != nil {
				return "", err.Error()
			}
			return fmt.Sprint(shown(h), odd(h)), ""
		}
		got, err := read()
		if again, other := read(); again != got || other != err {
			t.Errorf("%q, %q; again %q, %q", got, err, again, other)
		}
	})
}

// heard keeps what a scanner has read.
type heard struct{ all []series }

func (h *heard) series(s *series, _ uint32) {
	kept := series{labels: map[string]string{}, at: slices.Clone(s.at), values: slices.Clone(s.values)}
	for k, v := range s.labels {
		kept.labels[k] = v
	}
	h.all = append(h.all, kept)
}
func (h *heard) failed(string, uint32)  {}
func (h *heard) warned(string, uint32)  {}
func (h *heard) strange(string, uint32) {}
