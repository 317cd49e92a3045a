package head

import (
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/store"
)

func toObject(o store.Object) *pb.StoredObject {
	return &pb.StoredObject{Digest: string(o.Digest), Size: o.Size, Changed: timestamppb.New(o.Changed)}
}

func fromObject(p *pb.StoredObject) (store.Object, error) {
	o := store.Object{Digest: store.Digest(p.GetDigest()), Size: p.GetSize(), Changed: p.GetChanged().AsTime()}
	if o.Digest.Check() != nil || o.Size < 0 || p.GetChanged().CheckValid() != nil {
		return store.Object{}, errkind.Errorf(errkind.Unsupported, "the head's answer is no object: upgrade the older side")
	}
	return o, nil
}

func toNamed(n store.Named) *pb.StoredName {
	return &pb.StoredName{Name: n.Name, Refs: toRefs(n.Refs), Changed: timestamppb.New(n.Changed)}
}

func fromNamed(p *pb.StoredName) (store.Named, error) {
	n := store.Named{Name: p.GetName(), Refs: fromRefs(p.GetRefs()), Changed: p.GetChanged().AsTime()}
	if _, err := n.Refs.Encode(); err != nil || store.CheckName(n.Name) != nil || p.GetChanged().CheckValid() != nil {
		return store.Named{}, errkind.Errorf(errkind.Unsupported, "the head's answer is no name: upgrade the older side")
	}
	return n, nil
}

func toRefs(refs store.Refs) map[string]string {
	out := map[string]string{}
	for role, d := range refs {
		out[role] = string(d)
	}
	return out
}

func fromRefs(refs map[string]string) store.Refs {
	out := store.Refs{}
	for role, d := range refs {
		out[role] = store.Digest(d)
	}
	return out
}

// instant is a time that the other side has sent. One that is missing is none: nothing is as old as the beginning of 1970.
func instant(p *timestamppb.Timestamp) (time.Time, error) {
	if err := p.CheckValid(); err != nil {
		return time.Time{}, errkind.Errorf(errkind.Invalid, "a time is missing or none: %w", err)
	}
	return p.AsTime(), nil
}
