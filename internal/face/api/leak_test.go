package api_test

import (
	"context"
	"net/http"
	"runtime"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/durationpb"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/api/sluice/v1alpha1/sluicev1alpha1connect"
	"sluice.dev/sluice/internal/face/api"
	"sluice.dev/sluice/internal/face/api/apitest"
)

// TestNothingIsLeftRunning: callers who leave and a server that stops leave no goroutine behind.
func TestNothingIsLeftRunning(t *testing.T) {
	before := runtime.NumGoroutine()
	s, err := api.Listen(api.Options{Service: apitest.New(), Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	transport := &http.Transport{}
	c := sluicev1alpha1connect.NewSluiceServiceClient(&http.Client{Transport: transport}, "http://"+s.Addr())
	for range 10 {
		leaving, leave := context.WithCancel(t.Context())
		stream, err := c.Logs(leaving, connect.NewRequest(&pb.LogsRequest{Name: "train", Follow: true}))
		if err != nil || !stream.Receive() {
			t.Fatalf("no log: %v", err)
		}
		leave()
		stream.Close()
		short, end := context.WithTimeout(t.Context(), 5*time.Millisecond)
		if _, err := c.WaitJob(short, connect.NewRequest(&pb.WaitJobRequest{Names: []string{"train"},
			Timeout: durationpb.New(time.Minute)})); err == nil {
			t.Error("a wait of a minute ended at once")
		}
		end()
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	transport.CloseIdleConnections()
	for deadline := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			buf := make([]byte, 1<<20)
			t.Fatalf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, buf[:runtime.Stack(buf, true)])
		}
	}
}
