// Command helm is what the tests of the chart need of Helm, with Helm's own library: it is a module of its own, so that nothing of it is in the program's.
//
//	helm lint CHART [KEY=VALUE...]
//	helm template RELEASE NAMESPACE CHART [KEY=VALUE...]
//	helm install RELEASE NAMESPACE CHART [KEY=VALUE...]      (KUBECONFIG names the cluster)
//	helm uninstall RELEASE NAMESPACE
package main

import (
	"errors"
	"fmt"
	"io"
	"log"
	"os"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/cli"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	"helm.sh/helm/v3/pkg/strvals"
)

func main() {
	log.SetFlags(0)
	if err := run(os.Args[1:], os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(args []string, out io.Writer) error {
	switch {
	case len(args) >= 2 && args[0] == "lint":
		return lintChart(args[1], args[2:])
	case len(args) >= 4 && (args[0] == "template" || args[0] == "install"):
		return install(args[0] == "template", args[1], args[2], args[3], args[4:], out)
	case len(args) == 3 && args[0] == "uninstall":
		c, err := configuration(args[2])
		if err != nil {
			return err
		}
		_, err = action.NewUninstall(c).Run(args[1])
		return err
	}
	return errors.New("usage: helm lint|template|install|uninstall")
}

// lintChart fails for a warning too.
func lintChart(chart string, set []string) error {
	values, err := parse(set)
	if err != nil {
		return err
	}
	var errs []error
	for _, m := range lint.All(chart, values, "sluice", true).Messages {
		if m.Severity >= support.WarningSev {
			errs = append(errs, fmt.Errorf("%s: %w", m.Path, m.Err))
		}
	}
	return errors.Join(errs...)
}

func install(dry bool, release, namespace, path string, set []string, out io.Writer) error {
	values, err := parse(set)
	if err != nil {
		return err
	}
	chart, err := loader.Load(path)
	if err != nil {
		return err
	}
	c := new(action.Configuration)
	if !dry {
		if c, err = configuration(namespace); err != nil {
			return err
		}
	}
	i := action.NewInstall(c)
	i.ReleaseName, i.Namespace, i.CreateNamespace = release, namespace, !dry
	i.DryRun, i.ClientOnly = dry, dry
	if dry {
		i.KubeVersion = &chartutil.KubeVersion{Version: "v1.36.3", Major: "1", Minor: "36"} // what the tests of the whole have
	}
	r, err := i.Run(chart, values)
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(out, r.Manifest)
	return err
}

func configuration(namespace string) (*action.Configuration, error) {
	settings := cli.New()
	settings.SetNamespace(namespace)
	c := new(action.Configuration)
	return c, c.Init(settings.RESTClientGetter(), namespace, "secret", func(string, ...any) {})
}

// parse reads KEY=VALUE, as helm --set does.
func parse(set []string) (map[string]any, error) {
	values := map[string]any{}
	for _, s := range set {
		if err := strvals.ParseInto(s, values); err != nil {
			return nil, fmt.Errorf("%s: %w", s, err)
		}
	}
	return values, nil
}
