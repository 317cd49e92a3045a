// Package machine runs a real machine of a cluster for a test: kubelet, containerd and runc, as they are built and released, beside a
// plane (test/kube/plane).
//
// It takes root, and changes nothing of the machine that it runs on: its programs live in namespaces of their own for mounts, processes
// and the network, whose first process is this package's; what a kubelet would write to the kernel's settings it writes to copies; its
// control groups are below one that is removed. Its network has two ways out: to the API server, and back to listeners of the test
// (Listen). When that first process ends, so does all that the machine runs. All but this file are tests, for Linux, behind the build
// tags kubernetes and machine, since they need root.
package machine
