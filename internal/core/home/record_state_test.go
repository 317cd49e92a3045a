package home

import (
	"fmt"
	"os"
	"reflect"
	"testing"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
)

// TestMain also sees to it that no test wrote to what jobs share that have nothing of their own yet: one job's change would be
// every job's.
func TestMain(m *testing.M) {
	code := m.Run()
	for name, shared := range map[string]any{"work": unsold, "lessons": unlearned, "fate": unsealed, "trouble": untroubled} {
		if !reflect.ValueOf(shared).IsZero() {
			fmt.Printf("the %s of jobs without any was written to: %+v\n", name, shared)
			code = 1
		}
	}
	os.Exit(code)
}

// TestARecordComesBackWhole: whichever of its fields alone says something, a job made of a record says the same again, and one that
// says nothing but that it was accepted has no records of its own.
func TestARecordComesBackWhole(t *testing.T) {
	empty := func() *protocol.Record { return &protocol.Record{Generation: 1, Spec: &job.Spec{Kind: job.Items}} }
	kept := func(r *protocol.Record) *Job { return alone(&Queue{Queue: protocol.Queue{Name: r.Queue}}, r) }
	if j := kept(empty()); j.sold != nil || j.lessons != nil || j.sealed != nil || j.trouble != nil {
		t.Errorf("a job that only waits has records of its own: %+v", j)
	}
	leaves := 0
	var each func(path string, at func(*protocol.Record) reflect.Value)
	each = func(path string, at func(*protocol.Record) reflect.Value) {
		r := empty()
		v := at(r)
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				each(path+"."+v.Type().Field(i).Name, func(r *protocol.Record) reflect.Value { return at(r).Field(i) })
			}
			return
		case reflect.Array:
			v.Index(0).SetInt(7)
		case reflect.Slice:
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		case reflect.Pointer:
			v.Set(reflect.New(v.Type().Elem()))
		case reflect.String:
			v.SetString("x")
		case reflect.Bool:
			v.SetBool(true)
		case reflect.Uint8, reflect.Uint32, reflect.Uint64:
			v.SetUint(7)
		default:
			v.SetInt(7)
		}
		leaves++
		s := kept(r)
		if got := s.Record(); !reflect.DeepEqual(got, r) {
			t.Errorf("%s: of\n%+v came\n%+v", path, r, got)
		}
		f := s.AppendFacts(nil)[0]
		if f.Kind == protocol.HomeTaken { // as Apply takes it
			f.Record = &protocol.Record{Job: f.Job, Epoch: f.Epoch, Generation: f.Generation, Spec: f.Spec, Queue: f.Spec.Queue, Submitted: f.At}
		}
		if !reflect.DeepEqual(f.Record, r) {
			t.Errorf("%s: a snapshot says of\n%+v\n%+v", path, r, f.Record)
		}
		if len(s.work().past) != s.work().fruitless { // none of the past here has committed anything
			t.Errorf("%s: of %d subjobs %d are said to have committed nothing", path, len(s.work().past), s.work().fruitless)
		}
	}
	each("Record", func(r *protocol.Record) reflect.Value { return reflect.ValueOf(r).Elem() })
	if leaves < 40 {
		t.Errorf("only %d fields were tried", leaves)
	}
}

// alone is the job of a record with nothing beside it.
func alone(q *Queue, r *protocol.Record) *Job {
	j := &Job{}
	j.fill(q, r)
	return j
}
