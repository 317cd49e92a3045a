package api_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/face/api"
	"sluice.dev/sluice/internal/face/api/apitest"
)

// TestPagesOfJobs: the pages together are the list, each job once, also where several were submitted at one instant, and a page
// may begin at a job that somebody names.
func TestPagesOfJobs(t *testing.T) {
	fake := apitest.New()
	for i := range 10 {
		fake.Set(status.Job{Name: job.ID(fmt.Sprintf("p%d", i)), Queue: "paged", Submitted: apitest.At(0)})
	}
	_, c := serve(t, api.Options{Service: fake})
	list := func(m *pb.ListJobsRequest) (names []string) {
		t.Helper()
		for pages := 0; ; pages++ {
			r, err := c.ListJobs(t.Context(), connect.NewRequest(m))
			if err != nil || pages > 10 {
				t.Fatalf("page %d: %v", pages, err)
			}
			var page []string
			for _, j := range r.Msg.Jobs {
				page = append(page, j.Name)
			}
			if names = append(page, names...); r.Msg.NextPageToken == "" {
				if r.Msg.LeftOut != 0 {
					t.Fatalf("the last page leaves out %d", r.Msg.LeftOut)
				}
				return names
			}
			m.PageToken, m.Before = r.Msg.NextPageToken, ""
		}
	}
	all := list(&pb.ListJobsRequest{Queue: "paged"})
	if len(all) != 10 || !slices.IsSorted(all) {
		t.Fatalf("in one page: %v", all)
	}
	if got := list(&pb.ListJobsRequest{Queue: "paged", Limit: 3}); !slices.Equal(got, all) {
		t.Errorf("in pages of 3: %v", got)
	}
	if got := list(&pb.ListJobsRequest{Queue: "paged", Limit: 4, Before: "p7"}); !slices.Equal(got, all[:7]) {
		t.Errorf("before p7: %v", got)
	}
	for _, tc := range []struct {
		m    *pb.ListJobsRequest
		want string
	}{
		{&pb.ListJobsRequest{PageToken: "!"}, "page_token"},
		{&pb.ListJobsRequest{PageToken: "AAAA"}, "page_token"},
		{&pb.ListJobsRequest{PageToken: "AAAAAAAAAAAAYQ", Before: "p1"}, "want one of them"},
		{&pb.ListJobsRequest{Before: "nobody"}, "nobody"},
	} {
		if _, err := c.ListJobs(t.Context(), connect.NewRequest(tc.m)); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%v: %v, want %q", tc.m, err, tc.want)
		}
	}
}
