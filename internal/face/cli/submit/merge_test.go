package submit

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/face/cli/clitest"
)

// TestAnswersAreWholeLines: of each piece as many lines are kept as count, however its bytes come and whatever lies behind, and of headers
// the first.
func TestAnswersAreWholeLines(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		f, err := os.Create(filepath.Join(dir, "out"))
		if err != nil {
			t.Fatal(err)
		}
		s := &answers{file: f, w: bufio.NewWriterSize(f, 16), header: rapid.Bool().Draw(t, "header")}
		want := ""
		if s.header {
			want = "head\n"
		}
		for piece := range rapid.IntRange(1, 4).Draw(t, "pieces") {
			text := ""
			if s.header {
				text = "head\n"
			}
			count := rapid.IntRange(0, 4).Draw(t, "lines")
			for i := range count {
				line := fmt.Sprintf("%d %d %s\n", piece, i, rapid.StringMatching(`[a-z]{0,20}`).Draw(t, "line"))
				text, want = text+line, want+line
			}
			text += rapid.SampledFrom([]string{"", "half", "whole\n", "whole\nhalf"}).Draw(t, "behind")
			s.begin(int64(count))
			s.taking = true
			for len(text) > 0 {
				n := rapid.IntRange(1, len(text)).Draw(t, "chunk")
				if _, err := s.Write([]byte(text[:n])); err != nil {
					t.Fatal(err)
				}
				text = text[n:]
			}
			if s.left != 0 {
				t.Fatalf("%d lines are missing of piece %d", s.left, piece)
			}
		}
		if err := s.w.Flush(); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(f.Name())
		if err != nil || string(got) != want {
			t.Fatalf("%q %v, want %q", got, err, want)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestHeadersThatDiffer: a piece without the header of the others is no part of one file.
func TestHeadersThatDiffer(t *testing.T) {
	s := &answers{w: bufio.NewWriter(&strings.Builder{}), header: true}
	for i, text := range []string{"head\n1\n", "2\n3\n"} {
		s.begin(1)
		s.taking = true
		if _, err := s.Write([]byte(text)); (err != nil) != (i == 1) {
			t.Errorf("piece %d: %v", i, err)
		}
	}
}

// TestGaps: what no piece answers was skipped; twice is refused, and so is what is lost.
func TestGaps(t *testing.T) {
	piece := func(from, to int64) *pb.Output { return &pb.Output{Range: &pb.Range{From: from, To: to}} }
	for want, list := range map[string][]*pb.Output{
		"[0 3 6 7]": {piece(1, 3), piece(4, 6)}, "[]": {piece(0, 5), piece(5, 8)}, "[0 1 2 3 4 5 6 7]": nil,
	} {
		if got, err := gaps(list, 8, "line"); err != nil || fmt.Sprint(got) != want {
			t.Errorf("%v %v, want %s", got, err, want)
		}
	}
	if _, err := gaps([]*pb.Output{piece(0, 5), piece(4, 8)}, 8, "line"); err == nil ||
		!strings.Contains(err.Error(), "line 5 is answered twice") {
		t.Errorf("twice: %v", err)
	}
	if _, err := gaps([]*pb.Output{{Range: &pb.Range{To: 8}, Lost: "gone"}}, 8, "record"); err == nil ||
		!strings.Contains(err.Error(), "records 1 to 8 can't be had: gone") {
		t.Errorf("lost: %v", err)
	}
}

// TestWhatRowsAreCalled: where each record is a line they are lines for all that counts them.
func TestWhatRowsAreCalled(t *testing.T) {
	t.Chdir(clitest.Tree(t, map[string]string{"flat.csv": "n,text\r\n1,a\r\n2,\"b,c\"", "rows.csv": "n,text\n1,\"a\nb\"\n2,c\n",
		"gaps.csv": "n,text\n\n1,a\n2,b\n"}))
	for file, want := range map[string]job.Lines{
		"flat.csv": {Format: job.Text, Header: true}, "rows.csv": {Format: job.CSV, Header: true},
		"gaps.csv": {Format: job.CSV, Header: true},
	} {
		m := mapping{input: file, output: "out"}
		in, err := m.read()
		if err != nil {
			t.Fatal(err)
		}
		unit := map[job.LineFormat]string{job.Text: "line", job.CSV: "record"}[want.Format]
		if in.lines.Format != want.Format || in.lines.Header != want.Header || in.index.Lines != 2 || in.unit() != unit {
			t.Errorf("%s: %d %ss, %+v", file, in.index.Lines, in.unit(), in.lines)
		}
	}
}
