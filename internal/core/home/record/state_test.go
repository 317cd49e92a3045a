package record

import (
	"reflect"
	"testing"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
)

// TestARecordComesBackWhole: whichever of its fields alone says something, a job made of a record says the same again, and one that
// says nothing but that it was accepted has no records of its own.
func TestARecordComesBackWhole(t *testing.T) {
	empty := func() *protocol.Record { return &protocol.Record{Generation: 1, Spec: &job.Spec{Kind: job.Items}} }
	kept := func(r *protocol.Record) *Job { return alone(r) }
	if j := kept(empty()); j.work != nil || j.lessons != nil || j.end != nil || j.trouble != nil {
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
		var said *protocol.Record
		f := s.AppendFacts(nil)[0]
		switch b := f.Body.(type) {
		case *protocol.Keeping:
			said = b.Record
		case *protocol.Taking: // as Apply takes it
			said = &protocol.Record{Job: f.Job, Epoch: f.Epoch, Generation: f.Generation, Spec: b.Spec, Queue: b.Spec.Queue,
				Submitted: f.At}
		}
		if !reflect.DeepEqual(said, r) {
			t.Errorf("%s: a snapshot says of\n%+v\n%+v", path, r, said)
		}
		if len(s.History().Past()) != s.History().Fruitless() { // none of the past here has committed anything
			t.Errorf("%s: of %d subjobs %d are said to have committed nothing", path, len(s.History().Past()), s.History().Fruitless())
		}
	}
	each("Record", func(r *protocol.Record) reflect.Value { return reflect.ValueOf(r).Elem() })
	if leaves < 40 {
		t.Errorf("only %d fields were tried", leaves)
	}
}

// alone is the job of a record with nothing beside it.
func alone(r *protocol.Record) *Job {
	j := &Job{}
	j.fill(newQueue(r.Queue), r)
	return j
}
