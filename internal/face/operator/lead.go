//go:build kubernetes

package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"

	"sluice.dev/sluice/internal/core/arrangement"
	"sluice.dev/sluice/internal/core/ends"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/filing"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/edge/archive"
	"sluice.dev/sluice/internal/edge/archive/bolt"
	"sluice.dev/sluice/internal/edge/config"
	"sluice.dev/sluice/internal/edge/journal"
	"sluice.dev/sluice/internal/edge/journal/local"
	"sluice.dev/sluice/internal/face/api"
	"sluice.dev/sluice/internal/host"
	"sluice.dev/sluice/internal/host/datadir"
)

// lead runs the operator while it has the lease, until ctx ends or a part of it fails.
func lead(ctx context.Context, client kubernetes.Interface, o *Options, b *board, health string) error {
	uid, err := sameCluster(ctx, client, o.DataDir)
	if err != nil {
		return err
	}
	dynamics, err := dynamic.NewForConfig(o.Cluster)
	if err != nil {
		return errkind.Errorf(errkind.Invalid, "the cluster: %w", err)
	}
	pools, err := readPools(ctx, dynamics)
	if err != nil {
		return err
	}
	h, parts, err := open(ctx, client, dynamics, o, pools)
	if err != nil {
		return err
	}
	token, err := datadir.Token(o.DataDir)
	if err = errors.Join(err, nameCluster(o.DataDir, uid)); err != nil {
		return errors.Join(err, h.Close())
	}
	monitor := h.Monitor()
	server, err := api.Listen(api.Options{
		Service: service{h}, Containers: true, Listen: o.Listen, Socket: filepath.Join(o.DataDir, "socket"), OwnerToken: token,
		OwnerTokenFile: filepath.Join(o.DataDir, datadir.TokenFile),
		Metrics:        monitor.Metrics, Health: monitor.Health, Ready: monitor.Ready, Log: o.Log,
	})
	if err != nil {
		return errors.Join(err, h.Close())
	}
	broadcaster := record.NewBroadcaster()
	defer broadcaster.Shutdown()
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events("")})
	events := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "sluice-" + o.Name})

	// The API and the controller stop first, so that nothing is accepted that could not be answered.
	hosting, stopHost := context.WithCancel(context.WithoutCancel(ctx))
	defer stopHost()
	serving, stop := context.WithCancel(ctx)
	defer stop()
	var done, hosted sync.WaitGroup
	var errHost, errAPI, errLoop, errDesk error
	hosted.Go(func() { defer stop(); errHost = h.Run(hosting) })
	done.Go(func() { defer stop(); errAPI = server.Serve(serving) })
	c := newController(h, dynamics, events, o.Name, o.Watch, offers{pools, parts.Offer, parts.LeftOut}, o.Log)
	c.writable = o.JobNamespaces
	done.Go(func() { defer stop(); errLoop = c.run(serving) })
	done.Go(func() { defer stop(); errDesk = newDesk(h, parts.Lender, c.admitted, dynamics, o).run(serving) })
	waits := hostWaits{over: monitor.HostWaits, events: events, log: o.Log, after: map[job.NodeID]uint64{}}
	done.Go(func() { waits.run(serving) })
	b.show(&pages{monitor.Metrics, monitor.Health, monitor.Ready})
	if o.Ready != nil {
		o.Ready(server.Addr(), health)
	}
	done.Wait()
	stopHost()
	hosted.Wait()
	return errors.Join(errHost, errAPI, errLoop, errDesk)
}

// open assembles a cluster's daemon: one gate, one zone, and one node that stands for all machines.
func open(ctx context.Context, client kubernetes.Interface, dynamics dynamic.Interface, o *Options, pools []config.SlicePool) (_ *host.Host,
	parts Parts, err error) {
	actors, err := arrangement.Choice{
		Policy: o.Policy, Mechanism: o.Mechanism, Horizon: o.Horizon, Node: job.NodeID(o.Name), Ends: ends.DefaultTheta,
		Archive: &filing.Config{}, Fixed: true,
	}.Config()
	if err != nil {
		return nil, parts, err
	}
	built, err := actors.Build()
	if err != nil {
		return nil, parts, err
	}
	shown, err := json.Marshal(map[string]any{
		"mechanism": o.Mechanism, "policy": o.Policy.Name(), "horizon": o.Horizon.String(), "node": o.Name,
		"market": actors.Zones[0].Market, "archive": actors.Gate.Archive, "ends": ends.DefaultTheta, "fixed": true,
	})
	if err != nil {
		return nil, parts, err
	}
	named, keep, err := nameOfJournal(filepath.Join(o.DataDir, datadir.JournalDir))
	if err != nil {
		return nil, parts, err
	}
	if named.fresh && !o.NewJournal {
		if err = notLost(ctx, client, dynamics, o); err != nil {
			return nil, parts, err
		}
	}
	if parts, err = o.Parts(ctx, named, pools); err != nil {
		return nil, parts, err
	}
	for _, note := range append(parts.Notes, parts.Inventory.Describe()) {
		o.Log.Info(note)
	}
	h, err := host.Open(ctx, host.Options{
		DataDir: o.DataDir, Machine: job.NodeID(o.Name), Actors: built, Config: shown,
		Journal: func(dir string) (journal.Journal, error) {
			if failed := keep(); failed != nil {
				return nil, failed
			}
			return local.Open(dir, local.Options{Notice: func(text string) { o.Log.Warn("journal", "notice", text) }})
		},
		Archive: func(dir string, known bool) (archive.Archive, error) { return bolt.Open(dir, known) },
		Retain:  o.Retention.Age, MostArchived: o.Retention.Jobs,
		Executor: parts.Executor, Inventory: parts.Inventory, Log: o.Log,
		Ours:  func(job.SliceID, int) bool { return false }, // the inventory knows our Pods by their seals
		Named: named.Name != "",
		About: status.About{
			Version: o.Version, Commit: o.Commit, Mechanism: o.Mechanism, Policy: o.Policy.Name(), Listen: o.Listen, SingleUser: true,
		},
	})
	return h, parts, err
}

// clusterFile holds the ID of a data directory's cluster: the UID of its namespace kube-system, which lives as long as the cluster.
const clusterFile = "CLUSTER"

// sameCluster refuses a data directory of another cluster: its jobs have no objects here and would all be cancelled.
func sameCluster(ctx context.Context, client kubernetes.Interface, dir string) (uid string, err error) {
	ns, err := client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return "", errkind.Errorf(errkind.Unavailable, "which cluster this is: namespace %s: %w", metav1.NamespaceSystem, err)
	}
	path := filepath.Join(dir, clusterFile)
	data, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return string(ns.UID), nil
	case err != nil:
		return "", fmt.Errorf("which cluster %s is of: %w", dir, err)
	case strings.TrimSpace(string(data)) != string(ns.UID):
		return "", errkind.Errorf(errkind.Conflict, "%s is of cluster %s, and this is cluster %s: give each cluster a data directory of "+
			"its own; or, if this is that cluster put up anew, remove %s. Nothing was changed",
			dir, strings.TrimSpace(string(data)), ns.UID, path)
	}
	return string(ns.UID), nil
}

// nameCluster writes clusterFile, once the journal exists.
func nameCluster(dir, uid string) error {
	path := filepath.Join(dir, clusterFile)
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	if err := os.WriteFile(path+".tmp", []byte(uid+"\n"), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".tmp", path) // not synced: if a crash loses it the next start writes it
}
