// Package membership is how a machine comes to belong to a cluster and stays in it. A head answers here the calls of ClusterService, by a
// listener of its own: Join by a token, without a certificate; Renew, Settings and the links (package stream) with one. A machine keeps in
// one directory who it is, renews its certificate, and remembers the settings of its node for when the head is away.
//
// Who may join, and whose a certificate is, says package authority. This package knows nothing of nodes, zones or stores: settings are
// passed on as they are.
package membership

import (
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/internal/core/departure"
)

// Settings are those that a machine's node needs before it begins. An empty one has the default of the machine's build.
type Settings struct {
	// Zone that the node's slices are offered to.
	Zone string
	// Horizon is how far ahead a gap without a known end is offered.
	Horizon time.Duration
	// Mechanism of the market by its name, and its settings as JSON.
	Mechanism         string
	MechanismSettings []byte
	Store             StoreSettings
	// SeveralUsers: subjobs are of several users, and must not run as one.
	SeveralUsers bool
	// Stay is how long the machine belongs to the cluster. It is the head's authority that knows it.
	Stay departure.Stay
}

// StoreSettings say where work directories, outputs and checkpoints lie.
type StoreSettings struct {
	// Kind of the store, and what it needs as JSON.
	Kind string
	Spec []byte
	// Owner is whose objects are the cluster's, where several share the store.
	Owner string
	// TakesNothing: the head goes by a result that says that its subjob left nothing, and looks for no name of it in the store.
	TakesNothing bool
}

// toWire is s as it is sent.
func (s Settings) toWire() *pb.SettingsResponse {
	m := &pb.SettingsResponse{Zone: s.Zone, Mechanism: s.Mechanism, MechanismSettings: s.MechanismSettings,
		Store:        &pb.StoreSettings{Kind: s.Store.Kind, Spec: s.Store.Spec, Owner: s.Store.Owner, TakesNothing: s.Store.TakesNothing},
		SeveralUsers: s.SeveralUsers,
		Stay:         &pb.Stay{Ephemeral: s.Stay.Ephemeral}}
	if s.Stay.Until != 0 {
		m.Stay.Until = timestamppb.New(s.Stay.Until.Time())
	}
	if s.Horizon != 0 {
		m.Horizon = durationpb.New(s.Horizon)
	}
	return m
}

func fromWire(m *pb.SettingsResponse) Settings {
	return Settings{Zone: m.GetZone(), Horizon: m.GetHorizon().AsDuration(), Mechanism: m.GetMechanism(),
		MechanismSettings: m.GetMechanismSettings(), Store: StoreSettings{Kind: m.GetStore().GetKind(), Spec: m.GetStore().GetSpec(),
			Owner: m.GetStore().GetOwner(), TakesNothing: m.GetStore().GetTakesNothing()},
		SeveralUsers: m.GetSeveralUsers(), Stay: stayFromWire(m.GetStay())}
}
