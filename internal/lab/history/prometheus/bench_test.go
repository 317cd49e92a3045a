package prometheus

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/lab/history"
)

// BenchmarkRead reads a week of 100 nodes and 1,000 Pods, a sample each minute: 3 million.
func BenchmarkRead(b *testing.B) {
	const week = 7 * 1440
	var text bytes.Buffer
	series := func(labels string, from, to int) {
		fmt.Fprintf(&text, `{"metric":{%s},"values":[`, labels)
		for m := from; m < to; m++ {
			fmt.Fprintf(&text, `[%d,"1"],`, begin+m*step)
		}
		fmt.Fprintf(&text, `[%d,"1"]]}`, begin+to*step)
	}
	text.WriteString(`{"status":"success","data":{"resultType":"matrix","result":[`)
	for n := range 100 {
		series(fmt.Sprintf(`"__name__":"kube_node_status_allocatable","node":"n%d","resource":"nvidia_com_gpu"`, n), 0, week)
		text.WriteString(",")
	}
	for p := range 1000 {
		from := p * (week - 2000) / 1000
		labels := fmt.Sprintf(`"namespace":"x","pod":"p%[1]d","uid":"u%[1]d"`, p)
		series(fmt.Sprintf(`"__name__":%q,%s,"container":"c","node":"n%d","resource":"nvidia_com_gpu"`, requests, labels, p%100), from,
			from+1000)
		text.WriteString(",")
		series(`"__name__":"kube_pod_start_time",`+labels, from, from+1000)
		text.WriteString(strings.Repeat(",", min(1, 999-p)))
	}
	text.WriteString(`]}}`)
	b.SetBytes(int64(text.Len()))
	for b.Loop() {
		book := history.NewBook(history.Options{})
		if err := Read(book, bytes.NewReader(text.Bytes()), "week.json"); err != nil {
			b.Fatal(err)
		}
		if h, err := book.Close(); err != nil || len(h.Runs) != 1000 {
			b.Fatalf("%v", err)
		}
	}
}
