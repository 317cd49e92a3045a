package api

import (
	"cmp"
	"context"
	"slices"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/durationpb"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/status"
)

// Machines are those of a cluster whose head this daemon is. Safe for concurrent use.
type Machines interface {
	// Cluster lists those that have joined.
	Cluster() status.Cluster
	// CreateToken makes a token by which one machine, only that of the name if it is not empty, can join within a time at the head's
	// address. Errors: Invalid, Exhausted.
	CreateToken(name job.NodeID, within time.Duration) (token, head string, err error)
	// RemoveMachine takes one out for good. Errors: NotFound.
	RemoveMachine(ctx context.Context, name job.NodeID) error
	// Bring returns once what these jobs have committed on machines is where people look for it, or could not be had now, or ctx is done.
	Bring(ctx context.Context, names ...job.ID)
}

// nodeHandler turns calls of NodeService into calls of the service and of the head's machines.
type nodeHandler struct {
	service  Service
	machines Machines // nil: this daemon is no head
}

// defaultToken is how long a token is good for by default.
const defaultToken = time.Hour

func errNoHead() error {
	return errkind.Errorf(errkind.Unsupported, "this daemon is no head of a cluster, so no machine can join it: start it with --cluster "+
		"HOST:PORT")
}

// ListNodes lists the daemon's own nodes and the machines that have joined.
func (h *nodeHandler) ListNodes(ctx context.Context, _ *connect.Request[pb.ListNodesRequest]) (*connect.Response[pb.ListNodesResponse],
	error) {
	list, err := h.service.Slices(ctx)
	if err != nil {
		return nil, wire(err)
	}
	about, err := h.service.About(ctx)
	if err != nil {
		return nil, wire(err)
	}
	var out []*pb.Node
	var cluster status.Cluster
	for _, name := range about.Nodes {
		out = append(out, &pb.Node{Name: string(name), Own: true, Up: true, Build: about.Version})
	}
	if h.machines != nil {
		cluster = h.machines.Cluster()
		out = append(out, each(cluster.Machines, machineMessage)...)
	}
	at := make(map[string]*pb.Node, len(out))
	for _, n := range out {
		at[n.Name] = n
	}
	for i := range list {
		n := at[string(list[i].Node)]
		if n == nil { // it was removed, and its slices are not forgotten yet
			continue
		}
		n.Slices++
		at := &list[i].Slice
		n.Rack, n.Block, n.Address = at.Rack, at.Block, at.Address
		if s := list[i].State; s == "idle" || s == "running" {
			n.Usable++
		} else if n.Up && n.Why == "" {
			n.Why = list[i].Reason
		}
	}
	for _, n := range out {
		if n.Up && n.Usable > 0 { // why some of its slices can't be used is said of those
			n.Why = ""
		}
	}
	slices.SortFunc(out, func(a, b *pb.Node) int { return cmp.Compare(a.Name, b.Name) })
	return connect.NewResponse(&pb.ListNodesResponse{Nodes: out, Head: cluster.Head, Removed: count(cluster.Removed)}), nil
}

func machineMessage(m *status.Machine) *pb.Node {
	out := &pb.Node{Name: string(m.Name), Up: m.Up, Why: m.Why, Joined: stamp(m.Joined), Since: stamp(m.Since), Heard: stamp(m.Heard),
		Build: m.Build, Ephemeral: m.Ephemeral, Until: stamp(m.Until)}
	if m.Measured {
		out.Offset, out.RoundTrip = durationpb.New(m.Offset), durationpb.New(m.RoundTrip)
	}
	return out
}

// CreateToken makes a token by which one machine can join.
func (h *nodeHandler) CreateToken(_ context.Context, r *connect.Request[pb.CreateTokenRequest]) (*connect.Response[pb.CreateTokenResponse],
	error) {
	if h.machines == nil {
		return nil, wire(errNoHead())
	}
	within := defaultToken
	if d := r.Msg.GetFor(); d != nil {
		within = d.AsDuration()
	}
	token, head, err := h.machines.CreateToken(job.NodeID(r.Msg.GetName()), within)
	return answer(&pb.CreateTokenResponse{Token: token, Head: head}, err)
}

// RemoveNode takes a machine out of the cluster.
func (h *nodeHandler) RemoveNode(ctx context.Context, r *connect.Request[pb.RemoveNodeRequest]) (*connect.Response[pb.RemoveNodeResponse],
	error) {
	if h.machines == nil {
		return nil, wire(errNoHead())
	}
	return answer(&pb.RemoveNodeResponse{}, h.machines.RemoveMachine(ctx, job.NodeID(r.Msg.GetName())))
}
