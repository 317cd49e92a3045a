// Command helm is what the tests of the chart need of Helm, with Helm's own library: it is a module of its own, so that nothing of it is
// in the program's.
//
//	helm lint CHART [KEY=VALUE...]
//	helm template RELEASE NAMESPACE CHART [KEY=VALUE...]
//	helm install RELEASE NAMESPACE CHART [KEY=VALUE...]      (KUBECONFIG names the cluster)
//	helm upgrade RELEASE NAMESPACE CHART [KEY=VALUE...]
//	helm rollback RELEASE NAMESPACE REVISION
//	helm uninstall RELEASE NAMESPACE
//
// What changes a cluster waits, as with --wait, until what it made is ready, or gone.
package main

import (
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"strconv"
	"time"

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
	case len(args) >= 4 && args[0] == "upgrade":
		return upgrade(args[1], args[2], args[3], args[4:])
	case len(args) == 4 && args[0] == "rollback":
		return rollback(args[1], args[2], args[3])
	case len(args) == 3 && args[0] == "uninstall":
		c, err := configuration(args[2])
		if err != nil {
			return err
		}
		u := action.NewUninstall(c)
		u.Wait, u.Timeout = true, patience
		_, err = u.Run(args[1])
		return err
	}
	return errors.New("usage: helm lint|template|install|upgrade|rollback|uninstall")
}

// patience is how long a cluster may take.
const patience = 3 * time.Minute

// upgrade keeps no value of the release as it is but those given, as helm upgrade does that is given any.
func upgrade(release, namespace, path string, set []string) error {
	values, err := parse(set)
	if err != nil {
		return err
	}
	chart, err := loader.Load(path)
	if err != nil {
		return err
	}
	c, err := configuration(namespace)
	if err != nil {
		return err
	}
	u := action.NewUpgrade(c)
	u.Namespace, u.Wait, u.Timeout = namespace, true, patience
	_, err = u.Run(release, chart, values)
	return err
}

func rollback(release, namespace, revision string) error {
	n, err := strconv.Atoi(revision)
	if err != nil {
		return err
	}
	c, err := configuration(namespace)
	if err != nil {
		return err
	}
	r := action.NewRollback(c)
	r.Version, r.Wait, r.Timeout = n, true, patience
	return r.Run(release)
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
	i.Wait, i.Timeout = !dry, patience
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
