// Command plugin is a device plugin of made-up devices, for tests on a real kubelet: it registers a resource as NVIDIA's does, and gives a
// container the name of its device in an environment variable. It needs no hardware, and is a module of its own for the sake of the
// kubelet's API.
//
//	plugin RESOURCE NUMBER
package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

type plugin struct {
	api.UnimplementedDevicePluginServer
	devices []*api.Device
}

func main() {
	log.SetFlags(0)
	if len(os.Args) != 3 {
		log.Fatal("usage: plugin RESOURCE NUMBER")
	}
	n, err := strconv.Atoi(os.Args[2])
	if err == nil {
		err = run(os.Args[1], n)
	}
	log.Fatal(err)
}

// run serves the devices until it fails.
func run(resource string, n int) error {
	p := &plugin{}
	for i := range n {
		p.devices = append(p.devices, &api.Device{ID: fmt.Sprintf("made-up-%d", i), Health: api.Healthy})
	}
	socket := filepath.Join(api.DevicePluginPath, strings.ReplaceAll(resource, "/", "-")+".sock")
	_ = os.Remove(socket) // of one that was killed
	l, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	api.RegisterDevicePluginServer(server, p)
	over := make(chan error, 1)
	go func() { over <- server.Serve(l) }()
	kubelet, err := grpc.NewClient("unix://"+api.KubeletSocket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	_, err = api.NewRegistrationClient(kubelet).Register(context.Background(),
		&api.RegisterRequest{Version: api.Version, Endpoint: filepath.Base(socket), ResourceName: resource})
	if err != nil {
		return fmt.Errorf("registering %s: %w", resource, err)
	}
	log.Printf("%d devices of %s are registered", n, resource)
	return <-over
}

// GetDevicePluginOptions says that nothing is asked before a container starts.
func (*plugin) GetDevicePluginOptions(context.Context, *api.Empty) (*api.DevicePluginOptions, error) {
	return &api.DevicePluginOptions{}, nil
}

// ListAndWatch tells the devices once: they don't change.
func (p *plugin) ListAndWatch(_ *api.Empty, s grpc.ServerStreamingServer[api.ListAndWatchResponse]) error {
	if err := s.Send(&api.ListAndWatchResponse{Devices: p.devices}); err != nil {
		return err
	}
	<-s.Context().Done()
	return nil
}

// Allocate names a container's devices in its environment.
func (*plugin) Allocate(_ context.Context, q *api.AllocateRequest) (*api.AllocateResponse, error) {
	var r api.AllocateResponse
	for _, c := range q.ContainerRequests {
		r.ContainerResponses = append(r.ContainerResponses,
			&api.ContainerAllocateResponse{Envs: map[string]string{"MADE_UP_DEVICES": strings.Join(c.DevicesIds, ",")}})
	}
	return &r, nil
}
