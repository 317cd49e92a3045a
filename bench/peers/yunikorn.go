package main

import (
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/apache/yunikorn-core/pkg/entrypoint"
	"github.com/apache/yunikorn-core/pkg/log"
	"github.com/apache/yunikorn-core/pkg/mock"
	"github.com/apache/yunikorn-scheduler-interface/lib/go/si"

	"sluice.dev/sluice/bench/placement"
	"sluice.dev/sluice/internal/core/federation/flow"
)

// yunikorn is YuniKorn's scheduler core as its own BenchmarkScheduling runs it: all of its services in this process, two queues, a
// resource manager that says yes. Slices are a resource for each size, as MIG's are in Kubernetes, and one for all of them, by which it
// sorts nodes.
type yunikorn struct {
	mock.ResourceManagerCallback
	services *entrypoint.ServiceContext

	mutex     sync.Mutex
	apps      int
	nodes     int
	nodeOf    map[string]string
	idle      time.Duration
	moved     chan struct{}
	partition string
}

const (
	manager = "rm:123"
	// applications there are. With two, as in its own benchmark, it goes over thousands of asks for each that it allocates; this many are
	// fastest.
	applications = 100
	// patience is after how long without any placement what is left of a batch is given up; it is not counted as time.
	patience = 3 * time.Second
)

const queues = `
partitions:
  - name: default
    nodesortpolicy:
      type: fair # packing goes over all full nodes first
      resourceweights: {slices: 1} # those that it has by default are processors and memory
    queues:
      - name: root
        submitacl: "*"
        queues:
          - name: a
          - name: b
`

func newYunikorn(work placement.Work, nodes int) (*yunikorn, error) {
	log.UpdateLoggingConfig(map[string]string{"log.level": "ERROR"})
	y := &yunikorn{services: entrypoint.StartAllServices(), nodeOf: map[string]string{}, moved: make(chan struct{}, 1), partition: "[" +
		manager + "]default"}
	proxy := y.services.RMProxy
	_, err := proxy.RegisterResourceManager(&si.RegisterResourceManagerRequest{
		RmID: manager, PolicyGroup: "policygroup", Version: "0.0.2", BuildInfo: map[string]string{"k": "v"}, Config: queues,
		ExtraConfig: map[string]string{"log.level": "ERROR"},
	}, y)
	if err != nil {
		return nil, err
	}
	user := &si.UserGroupInformation{User: "bench", Groups: []string{"bench"}}
	request := &si.ApplicationRequest{RmID: manager}
	for i := range applications {
		request.New = append(request.New, &si.AddApplicationRequest{ApplicationID: "app-" + strconv.Itoa(i), QueueName: "root." +
			[...]string{"a", "b"}[i%2], Ugi: user})
	}
	if err = proxy.UpdateApplication(request); err != nil {
		return nil, err
	}
	if err := y.until(func() bool { return y.apps == applications }); err != nil {
		return nil, fmt.Errorf("yunikorn: applications: %w", err)
	}
	news := &si.NodeRequest{RmID: manager}
	for i := range nodes {
		f := work.Layout(i)
		total := &si.Resource{Resources: map[string]*si.Quantity{"slices": {Value: placement.Slices}}}
		for c, n := range f {
			if n > 0 {
				total.Resources[kind(flow.Class(c))] = &si.Quantity{Value: int64(n)}
			}
		}
		news.Nodes = append(news.Nodes, &si.NodeInfo{NodeID: "node-" + strconv.Itoa(i), Attributes: map[string]string{},
			SchedulableResource: total, Action: si.NodeInfo_CREATE})
	}
	if err := proxy.UpdateNode(news); err != nil {
		return nil, err
	}
	if err := y.until(func() bool { return y.nodes == nodes }); err != nil {
		return nil, fmt.Errorf("yunikorn: nodes: %w", err)
	}
	return y, nil
}

func kind(class flow.Class) string {
	return "slice-" + strconv.Itoa(int(placement.Levels()[class]/1e9)) + "gb"
}

func app(t task) string { return "app-" + strconv.Itoa(t.number%applications) }

func (y *yunikorn) place(batch []task) ([]task, error) {
	request := &si.AllocationRequest{RmID: manager}
	for i := range batch {
		t := &batch[i]
		t.id = "ask-" + strconv.Itoa(t.number)
		need := &si.Resource{Resources: map[string]*si.Quantity{"slices": {Value: 1}, kind(t.class): {Value: 1}}}
		request.Allocations = append(request.Allocations, &si.Allocation{AllocationKey: t.id, ApplicationID: app(*t),
			ResourcePerAlloc: need})
	}
	y.mutex.Lock()
	before := len(y.nodeOf)
	y.mutex.Unlock()
	if err := y.services.RMProxy.UpdateAllocation(request); err != nil {
		return nil, err
	}
	// An error is that some have found no place: to release what is only asked for takes it back.
	_ = y.until(func() bool { return len(y.nodeOf) == before+len(batch) })
	placed, failed := make([]task, 0, len(batch)), []task(nil)
	y.mutex.Lock()
	for _, t := range batch {
		if _, ok := y.nodeOf[t.id]; ok {
			placed = append(placed, t)
		} else {
			failed = append(failed, t)
		}
	}
	y.mutex.Unlock()
	return placed, y.release(failed)
}

func (y *yunikorn) end(tasks []task) error {
	y.mutex.Lock()
	for _, t := range tasks {
		delete(y.nodeOf, t.id)
	}
	y.mutex.Unlock()
	return y.release(tasks)
}

func (y *yunikorn) release(tasks []task) error {
	if len(tasks) == 0 {
		return nil
	}
	list := &si.AllocationReleasesRequest{}
	for _, t := range tasks {
		list.AllocationsToRelease = append(list.AllocationsToRelease, &si.AllocationRelease{
			PartitionName: y.partition, ApplicationID: app(t), AllocationKey: t.id, TerminationType: si.TerminationType_STOPPED_BY_RM,
		})
	}
	return y.services.RMProxy.UpdateAllocation(&si.AllocationRequest{RmID: manager, Releases: list})
}

func (y *yunikorn) tidy() error { return nil }

func (y *yunikorn) waited() time.Duration { return y.idle }

func (y *yunikorn) inner() time.Duration { return 0 }

func (y *yunikorn) close() { y.services.StopAll() }

// until waits for something that callbacks bring about; an error is that nothing has moved for patience.
func (y *yunikorn) until(ok func() bool) error {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		y.mutex.Lock()
		done := ok()
		y.mutex.Unlock()
		if done {
			return nil
		}
		select {
		case <-y.moved:
			timer.Reset(patience)
		case <-timer.C:
			y.idle += patience
			return fmt.Errorf("nothing has moved for %v", patience)
		}
	}
}

func (y *yunikorn) move() {
	select {
	case y.moved <- struct{}{}:
	default:
	}
}

// UpdateApplication, UpdateNode and UpdateAllocation are what YuniKorn tells its resource manager.
func (y *yunikorn) UpdateApplication(r *si.ApplicationResponse) error {
	y.mutex.Lock()
	defer y.mutex.Unlock()
	y.apps += len(r.Accepted)
	y.move()
	return nil
}

func (y *yunikorn) UpdateNode(r *si.NodeResponse) error {
	y.mutex.Lock()
	defer y.mutex.Unlock()
	y.nodes += len(r.Accepted)
	y.move()
	return nil
}

func (y *yunikorn) UpdateAllocation(r *si.AllocationResponse) error {
	y.mutex.Lock()
	defer y.mutex.Unlock()
	for _, a := range r.New {
		y.nodeOf[a.AllocationKey] = a.NodeID
	}
	if len(r.New) > 0 {
		y.move()
	}
	return nil
}
