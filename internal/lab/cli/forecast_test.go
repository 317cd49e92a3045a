package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/edge/command"
)

// TestForecastAnswers: the first line of every form is the answer, the page needs nothing else, and what is wrong is said with what to do.
func TestForecastAnswers(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	log := "; MaxProcs: 2\n"
	for i := range 40 {
		log += fmt.Sprintf("%d %d 0 %d 1 -1 -1 1 7200 -1 1 1 1 -1 1 1 -1 -1\n", i+1, i*2400, 1200+i*30)
	}
	swf, page := file("log.swf", log), filepath.Join(dir, "page.html")
	own := file("mine.yml", "- {at: 0s, name: scan, items: {total: 100, perItem: 10s}, memory: 1Gi}\n")
	text := sluice(t, "forecast", swf, "--jobs", own, "--html", page)
	if text.code != 0 || !strings.HasPrefix(text.out, "Don't install: ") || !strings.Contains(text.out, "If the backlog is yours") ||
		!strings.Contains(text.out, "What is assumed") {
		t.Errorf("exit %d, %q, %q", text.code, text.out, text.err)
	}
	html, err := os.ReadFile(page)
	if err != nil || !strings.Contains(string(html), "<h1>Don&#39;t install") || strings.Count(string(html), "<svg") != 3 ||
		strings.Contains(string(html), "src=") || strings.Contains(string(html), "<link") {
		t.Errorf("%v: %.300s", err, html)
	}
	var answer struct {
		Says     string
		Install  bool
		Outcomes []struct {
			Name       string
			Mechanisms []struct{ Mechanism string }
		}
	}
	got := sluice(t, "forecast", swf, "--jobs", own, "-o", "json", "--quick")
	if err := json.Unmarshal([]byte(got.out), &answer); err != nil || answer.Install || !strings.HasPrefix(text.out, answer.Says) ||
		len(answer.Outcomes) != 1 || len(answer.Outcomes[0].Mechanisms) != 11 {
		t.Errorf("%v: %+v", err, answer)
	}
	noPage := sluice(t, "forecast", swf, "--jobs", own, "--quick", "--html", dir)
	if quick := sluice(t, "forecast", swf, "--jobs", own, "--quick"); noPage.code != command.ExitFailed || noPage.out != quick.out ||
		!strings.Contains(noPage.err, "--html: ") {
		t.Errorf("without room for a page: exit %d, %q, %q", noPage.code, noPage.out, noPage.err)
	}
	dump, nodes := slurmDump(file)
	got = sluice(t, "forecast", dump, nodes, "--jobs", own, "--quick")
	for _, says := range []string{"The record: 40 runs on 2 GPUs or slices of 1 node over 2 whole days.", "If the backlog is yours"} {
		if got.code != 0 || !strings.Contains(got.out, says) {
			t.Errorf("exit %d, %q, %q: want %q", got.code, got.out, got.err, says)
		}
	}
	if parts := sluice(t, "forecast", nodes, dump, "--jobs", own, "--quick"); parts.out != got.out {
		t.Errorf("the order of files changes the answer: %q, %q", parts.out, got.out)
	}
	got = sluice(t, "forecast", kubeDump(file), "--jobs", own, "--quick")
	for _, says := range []string{"The record: 40 runs on 2 GPUs or slices of 1 node over 2 whole days.",
		"of 40 ends 40, are known to the 5m0s between"} {
		if got.code != 0 || !strings.Contains(got.out, says) {
			t.Errorf("exit %d, %q, %q: want %q", got.code, got.out, got.err, says)
		}
	}
	smi := "timestamp, index, utilization.gpu [%], memory.used [MiB]\n"
	for at := time.Unix(1700006400, 0).UTC(); at.Before(time.Unix(1700006400+2*86400, 0)); at = at.Add(5 * time.Minute) {
		smi += at.Format("2006/01/02 15:04:05.000") + ", 0, 0 %, 4 MiB\n" + at.Format("2006/01/02 15:04:05.020") + ", 1, 0 %, 4 MiB\n"
	}
	got = sluice(t, "forecast", dump, nodes, file("n1.csv", smi), "--jobs", own, "--quick")
	for _, says := range []string{"The record: 40 runs on 2 GPUs", "Measured: 2 devices, ",
		"Of the time that jobs held them 100.0% was idle",
		"Held and idle, as measured", "free by the record and were measured, none was busy"} {
		if got.code != 0 || !strings.Contains(got.out, says) {
			t.Errorf("exit %d, %q, %q: want %q", got.code, got.out, got.err, says)
		}
	}
	named := regexp.MustCompile("debug|a100|mine|x[0-9a-f]{8}")
	hidden := sluice(t, "forecast", dump, nodes, "--jobs", own, "--quick", "-o", "json", "--anonymize", "--html", page)
	html, err = os.ReadFile(page)
	if names := named.FindAllString(hidden.out, -1); hidden.code != 0 || err != nil || len(names) != 2 || names[0][0] != 'x' ||
		names[1][0] != 'x' || names[0] == names[1] {
		t.Errorf("exit %d, %q, %v: %q", hidden.code, hidden.err, err, names)
	}
	if found := named.FindString(string(html)); found != "" && found[0] != 'x' {
		t.Errorf("the page has %q", found)
	}
	if again := sluice(t, "forecast", dump, nodes, "--jobs", own, "--quick", "-o", "json", "--anonymize"); named.FindString(again.out) ==
		named.FindString(hidden.out) {
		t.Error("two runs have one key")
	}
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{dump, "--gpus", "2"}, command.ExitUsage, "leave it out"},
		{nil, command.ExitUsage, "requires at least 1 arg"},
		{[]string{filepath.Join(dir, "none")}, command.ExitUsage, "no such file"},
		{[]string{own}, command.ExitUsage, "this is no log that is known"},
		{[]string{"--since", "7d", swf}, command.ExitUsage, "--since is for --prometheus URL"},
		{[]string{"--prometheus", "here"}, command.ExitUsage, "such as http://prometheus:9090"},
		{[]string{"--prometheus", "http://127.0.0.1:1", "--since", "1h"}, command.ExitUsage, "--since 1h: want 1d"},
		{[]string{"--prometheus", "http://127.0.0.1:1", "--step", "2h"}, command.ExitUsage, "--step 2h0m0s: want 1s to 1h"},
		{[]string{"--prometheus", "http://127.0.0.1:1", "--prometheus-token", dir + "/none"}, command.ExitUsage, "--prometheus-token"},
		{[]string{"--prometheus", "http://127.0.0.1:1"}, command.ExitUnavailable, "can it be reached from here?"},
		{[]string{swf, "--grace", "2h"}, command.ExitUsage, "want 0s to 1h"},
		{[]string{swf, "--days", "-1"}, command.ExitUsage, "--days -1: want 1 or more"},
		{[]string{swf, "--gpus", "-1"}, command.ExitUsage, "want 1 or more"},
		{[]string{swf, "--zone", "Mars/Base"}, command.ExitUsage, "Europe/Berlin"},
		{[]string{swf, "--hours", "Mars/Base"}, command.ExitUsage, "--hours Mars/Base"},
		{[]string{swf, "--jobs", swf}, command.ExitUsage, "log.swf"},
		{[]string{swf, "--jobs", dir + "/none"}, command.ExitUsage, "--jobs"},
		{[]string{swf, "--html", dir + "/none/x.html"}, command.ExitUsage, "there is no directory " + dir + "/none: make it"},
	} {
		if r := sluice(t, append([]string{"forecast"}, c.args...)...); r.code != c.code || !strings.Contains(r.err, c.says) {
			t.Errorf("%v: exit %d, %q; want %d, %q", c.args, r.code, r.err, c.code, c.says)
		}
	}
}

// slurmDump is two days of one machine as sacct and scontrol print them.
func slurmDump(file func(name, text string) string) (dump, nodes string) {
	text := "JobIDRaw|JobID|User|Account|Partition|QOS|State|Submit|Eligible|Start|End|Timelimit|AllocNodes|AllocTRES|ReqTRES|NodeList\n"
	for i := range 40 {
		at := 1700006400 + i*4500
		text += fmt.Sprintf("%[1]d|%[1]d|u|a|debug|normal|COMPLETED|%[2]d|%[2]d|%[3]d|%[4]d|02:00:00|1|cpu=1,gres/gpu=1,gres/gpu:a100=1|"+
			"cpu=1,gres/gpu:a100=1|n1\n", i+1, at, at+60, at+1200+i*30)
	}
	return file("sacct.txt", text), file("nodes.txt", "NodeName=n1 Arch=x86_64 CPUTot=8 Gres=gpu:a100:2 State=IDLE Partitions=debug\n")
}

// kubeDump is two days of one node as a Prometheus answers with them.
func kubeDump(file func(name, text string) string) string {
	const begin, step = 1700006400, 300
	series := func(labels string, from, to int) string {
		var values []string
		for at := from; at <= to; at += step {
			values = append(values, fmt.Sprintf(`[%d,"1"]`, at))
		}
		return fmt.Sprintf(`{"metric":{%s},"values":[%s]}`, labels, strings.Join(values, ","))
	}
	all := []string{strings.ReplaceAll(series(`"__name__":"kube_node_status_allocatable","node":"n","resource":"nvidia_com_gpu"`, begin,
		begin+2*86400+step), `"1"]`, `"2"]`)}
	for i := range 40 {
		from := begin + i*4200
		all = append(all,
			series(fmt.Sprintf(`"__name__":"kube_pod_container_resource_requests","namespace":"x","pod":"p%[1]d","uid":"u%[1]d",`+
				`"container":"c","node":"n","resource":"nvidia_com_gpu"`, i), from, from+1800+i%5*step))
	}
	return file("kube.json", `{"status":"success","data":{"resultType":"matrix","result":[`+strings.Join(all, ",")+"]}}")
}
