package main

import (
	"strconv"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-version"
	"github.com/hashicorp/nomad/helper/uuid"
	"github.com/hashicorp/nomad/nomad/mock"
	"github.com/hashicorp/nomad/nomad/state"
	"github.com/hashicorp/nomad/nomad/structs"
	nomadscheduler "github.com/hashicorp/nomad/scheduler"

	"sluice.dev/sluice/bench/placement"
)

// nomad is Nomad's scheduler over its own state store, as its test harness puts them together: one batch job for each class of a batch of
// asks, one evaluation for each job, and the plan is applied to the store. The batch scheduler looks at two nodes for each allocation,
// which is its fastest way. It counts slices as a quarter of a node's processors each, and memory; which slice it is it does not know.
type nomad struct {
	state *state.StateStore
	index uint64
	quiet hclog.Logger
	evals []string
	dead  []string
	// deciding and applying are the times that the scheduler took for plans, and the store to take them in.
	deciding, applying time.Duration
	// placed are allocations of a job.
	placed map[string][]*structs.Allocation
}

const megahertz = 3500 // of each of a node's four cores

func newNomad(work placement.Work, nodes int) (*nomad, error) {
	n := &nomad{quiet: hclog.NewNullLogger(), placed: map[string][]*structs.Allocation{}}
	var err error
	n.state, err = state.NewStateStore(&state.StateStoreConfig{Logger: n.quiet, Region: "global",
		JobTrackedVersions: structs.JobDefaultTrackedVersions})
	if err != nil {
		return nil, err
	}
	for i := range nodes {
		memory := int64(0)
		for c, count := range work.Layout(i) {
			if count > 0 {
				memory += int64(count) * int64(placement.Levels()[c]/1e6)
			}
		}
		node := mock.Node()
		node.Datacenter = "dc1"
		node.ReservedResources, node.Reserved = nil, nil
		node.NodeResources = &structs.NodeResources{
			Processors: structs.NodeProcessorResources{Topology: structs.MockBasicTopology()},
			Memory:     structs.NodeMemoryResources{MemoryMB: memory},
			Disk:       structs.NodeDiskResources{DiskMB: 100 * 1024},
			Networks:   []*structs.NetworkResource{{Mode: "host", Device: "eth0", CIDR: "192.168.0.100/32", MBits: 1000}},
		}
		node.NodeResources.Compatibility()
		if err := node.ComputeClass(); err != nil {
			return nil, err
		}
		if err := n.state.UpsertNode(structs.MsgTypeTestSetup, n.next(), node); err != nil {
			return nil, err
		}
	}
	return n, nil
}

func (n *nomad) next() uint64 {
	n.index++
	return n.index
}

func (n *nomad) place(batch []task) (placed []task, err error) {
	var byClass [4][]task
	for _, t := range batch {
		byClass[t.class] = append(byClass[t.class], t)
	}
	for c, list := range byClass {
		if len(list) == 0 {
			continue
		}
		job := mock.BatchJob()
		job.ID = "job-" + strconv.Itoa(list[0].number)
		group := job.TaskGroups[0]
		group.Count = len(list)
		group.EphemeralDisk.SizeMB = 1
		group.Tasks[0].Resources = &structs.Resources{CPU: megahertz, MemoryMB: int(placement.Levels()[c] / 1e6)}
		if err := n.state.UpsertJob(structs.MsgTypeTestSetup, n.next(), nil, job); err != nil {
			return nil, err
		}
		eval := &structs.Evaluation{
			Namespace: structs.DefaultNamespace, ID: uuid.Generate(), Priority: job.Priority, TriggeredBy: structs.EvalTriggerJobRegister,
			JobID: job.ID, Status: structs.EvalStatusPending,
		}
		if err := n.state.UpsertEvals(structs.MsgTypeTestSetup, n.next(), []*structs.Evaluation{eval}); err != nil {
			return nil, err
		}
		begun, applying := time.Now(), n.applying
		snapshot, err := n.state.Snapshot()
		if err != nil {
			return nil, err
		}
		events := make(chan any, 16)
		if err := nomadscheduler.NewBatchScheduler(n.quiet, events, snapshot, n).Process(eval); err != nil {
			return nil, err
		}
		n.deciding += time.Since(begun) - (n.applying - applying)
		n.evals = append(n.evals, eval.ID)
		for i, a := range n.placed[job.ID] {
			list[i].id, list[i].node = a.ID, a.NodeID
			placed = append(placed, list[i])
		}
		delete(n.placed, job.ID)
	}
	return placed, nil
}

func (n *nomad) end(tasks []task) error {
	list := make([]*structs.Allocation, 0, len(tasks))
	for _, t := range tasks {
		list = append(list, &structs.Allocation{ID: t.id, NodeID: t.node, ClientStatus: structs.AllocClientStatusComplete})
		n.dead = append(n.dead, t.id)
	}
	return n.state.UpdateAllocsFromClient(structs.MsgTypeTestSetup, n.next(), list)
}

// tidy is Nomad's collection of garbage.
func (n *nomad) tidy() error {
	err := n.state.DeleteEval(n.next(), n.evals, n.dead, false)
	n.evals, n.dead = n.evals[:0], n.dead[:0]
	return err
}

func (n *nomad) waited() time.Duration { return 0 }

func (n *nomad) inner() time.Duration { return n.deciding }

func (n *nomad) close() {}

// SubmitPlan applies a plan as the harness does. A leader would look at every node of it again before.
func (n *nomad) SubmitPlan(plan *structs.Plan) (*structs.PlanResult, nomadscheduler.State, error) {
	begun := time.Now()
	index := n.next()
	result := &structs.PlanResult{NodeUpdate: plan.NodeUpdate, NodeAllocation: plan.NodeAllocation, NodePreemptions: plan.NodePreemptions,
		AllocIndex: index}
	request := structs.ApplyPlanResultsRequest{AllocUpdateRequest: structs.AllocUpdateRequest{Job: plan.Job}, EvalID: plan.EvalID}
	for _, list := range plan.NodeAllocation {
		request.AllocsUpdated = append(request.AllocsUpdated, list...)
		n.placed[plan.Job.ID] = append(n.placed[plan.Job.ID], list...)
	}
	err := n.state.UpsertPlanResults(structs.MsgTypeTestSetup, index, &request)
	n.applying += time.Since(begun)
	return result, nil, err
}

// UpdateEval, CreateEval and ReblockEval are for who would try again what found no place: it is given up here.
func (n *nomad) UpdateEval(*structs.Evaluation) error  { return nil }
func (n *nomad) CreateEval(*structs.Evaluation) error  { return nil }
func (n *nomad) ReblockEval(*structs.Evaluation) error { return nil }

// ServersMeetMinimumVersion is so.
func (n *nomad) ServersMeetMinimumVersion(*version.Version, bool) bool { return true }
