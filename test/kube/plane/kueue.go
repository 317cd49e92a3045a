//go:build kubernetes

package plane

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
)

// Kueue is installed as its own manifests install it, with its own certificates: a Secret that it fills, which is put into its folder as a
// kubelet mounts it, and which it gives to its webhooks. It runs beside the plane and not in it, so that its Service is a name for this
// machine.

// The names that Kueue's manifests give.
const (
	kueueNamespace = "kueue-system"
	kueueService   = "kueue-webhook-service"
	kueueSecret    = "kueue-webhook-server-cert"
)

// kueueFiles is what assets.sh puts beside the programs: definitions and webhooks of Kueue's module.
const kueueFiles = "kueue-files"

//go:embed kueue.yaml
var kueueConfiguration string

// kueueWebhooks is the address that Kueue's webhooks listen on.
const kueueWebhooks = "kueue-webhooks"

// configureKueue writes Kueue's configuration.
func (p *Plane) configureKueue() error {
	text := strings.NewReplacer("HEALTH", p.at(string(Kueue)), "PORT", port(p.at(kueueWebhooks)), "CERTIFICATES",
		p.kueueCertificates()).Replace(kueueConfiguration)
	return os.WriteFile(filepath.Join(p.dir, "kueue.yaml"), []byte(text), 0o600)
}

func (p *Plane) kueueCertificates() string { return filepath.Join(p.dir, "kueue.certs") }

// installKueue makes what Kueue's manifests make: namespace, Secret, Service, definitions, webhooks. What is there already it leaves.
func (p *Plane) installKueue(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(p.admin)
	if err != nil {
		return err
	}
	objects, err := dynamic.NewForConfig(p.admin)
	if err != nil {
		return err
	}
	made := func(_ any, err error) error {
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	}
	meta := metav1.ObjectMeta{Namespace: kueueNamespace}
	secret := &corev1.Secret{ObjectMeta: meta}
	secret.Name = kueueSecret
	service := &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"}}
	service.Name = kueueService
	if err = errors.Join(
		made(client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: kueueNamespace}},
			metav1.CreateOptions{})),
		made(client.CoreV1().Secrets(kueueNamespace).Create(ctx, secret, metav1.CreateOptions{})),
		made(client.CoreV1().Services(kueueNamespace).Create(ctx, service, metav1.CreateOptions{})),
	); err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(p.assets, kueueFiles, "*.yaml"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("%s has no definitions of Kueue: %w", filepath.Join(p.assets, kueueFiles), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		all, err := documents(text)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		for _, o := range all {
			resource, err := p.asInstalled(o)
			if err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
			if err := made(objects.Resource(resource).Create(ctx, o, metav1.CreateOptions{})); err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
		}
	}
	return nil
}

// documents are the objects of a file of YAML.
func documents(text []byte) (all []*unstructured.Unstructured, err error) {
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096); ; {
		o := &unstructured.Unstructured{}
		if err := decoder.Decode(&o.Object); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		if len(o.Object) > 0 {
			all = append(all, o)
		}
	}
}

// asInstalled makes of an object of Kueue's module what its manifests make of it: names with a prefix, a Service that is there, and
// conversion where versions differ.
func (p *Plane) asInstalled(o *unstructured.Unstructured) (schema.GroupVersionResource, error) {
	at := map[string]any{"namespace": kueueNamespace, "name": kueueService, "port": int64(number(port(p.at(kueueWebhooks))))}
	switch o.GetKind() {
	case "CustomResourceDefinition":
		if !converted[strings.TrimSuffix(o.GetName(), ".kueue.x-k8s.io")] {
			return crds, nil
		}
		at["path"] = "/convert"
		return crds, unstructured.SetNestedField(o.Object, map[string]any{
			"strategy": "Webhook", "webhook": map[string]any{"clientConfig": map[string]any{"service": at},
				"conversionReviewVersions": []any{"v1"}}}, "spec", "conversion")
	case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
		o.SetName("kueue-" + o.GetName())
		hooks, _, err := unstructured.NestedSlice(o.Object, "webhooks")
		if err != nil {
			return schema.GroupVersionResource{}, err
		}
		for _, h := range hooks {
			hook, is := h.(map[string]any)
			if !is {
				return schema.GroupVersionResource{}, fmt.Errorf("a webhook of %s is no object", o.GetName())
			}
			for key, value := range at {
				if err := unstructured.SetNestedField(hook, value, "clientConfig", "service", key); err != nil {
					return schema.GroupVersionResource{}, err
				}
			}
		}
		resource := schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1",
			Resource: strings.ToLower(o.GetKind()) + "s"}
		return resource, unstructured.SetNestedSlice(o.Object, hooks, "webhooks")
	}
	return schema.GroupVersionResource{}, fmt.Errorf("unknown kind %q", o.GetKind())
}

// converted are the definitions whose versions differ in more than their name, as config/components/crd of its module says.
//
//nolint:gochecknoglobals // read-only by use
var converted = map[string]bool{"localqueues": true, "clusterqueues": true, "workloads": true, "cohorts": true,
	"multikueueclusters": true}

//nolint:gochecknoglobals // read-only by use
var crds = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1",
	Resource: "customresourcedefinitions"}

// mountKueue puts Kueue's Secret into its folder, once Kueue has filled it. The files are there at once, as a kubelet's are.
func (p *Plane) mountKueue(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(p.admin)
	if err != nil {
		return err
	}
	secret, err := client.CoreV1().Secrets(kueueNamespace).Get(ctx, kueueSecret, metav1.GetOptions{})
	switch old, _ := os.ReadFile(filepath.Join(p.kueueCertificates(), "tls.crt")); { // without a file there is none
	case err != nil:
		return err
	case len(secret.Data["tls.crt"]) == 0:
		return errors.New("it has made no certificate")
	case bytes.Equal(old, secret.Data["tls.crt"]):
		return nil
	}
	return mount(p.kueueCertificates(), secret.Data)
}

func mount(dir string, data map[string][]byte) error {
	fresh, err := os.MkdirTemp(filepath.Dir(dir), "mount-")
	if err != nil {
		return err
	}
	for name, content := range data {
		if err := os.WriteFile(filepath.Join(fresh, name), content, 0o600); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	return os.Rename(fresh, dir)
}
