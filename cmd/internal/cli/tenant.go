package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/espalier-dev/espalier/cmd/internal/cluster"
)

// tenantsResource is what kubectl is asked for, whatever other resources have this name.
const tenantsResource = "tenants.v1alpha1.espalier.dev"

// tenantName is a DNS label.
var tenantName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

type tenantOptions struct {
	from     cluster.Source
	requests int
	objects  int
	storage  string
	etcd     string
	file     string
	lifetime time.Duration
	wait     bool
}

func newTenant(a *App) *cobra.Command {
	o := tenantOptions{}
	cmd := &cobra.Command{
		Use:   "tenant",
		Short: "Create, move, export, import and delete control planes on one server",
		Long: `A tenant is an API server of its own, at /clusters/NAME of an Espalier server that
runs with --tenants: it has CRDs, namespaces, roles, service accounts and objects
of its own. A tenant takes no memory while no client uses it.

Tenant uses kubectl and its kubeconfig.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return errors.New("no subcommand given: create, kubeconfig, list, move, export, import or delete")
		},
	}
	cmd.PersistentFlags().StringVar(&o.from.Context, "context", "", "the context of the kubeconfig (default: the current one)")
	cmd.PersistentFlags().StringVar(&o.from.Kubeconfig, "kubeconfig", "", "the kubeconfig (default: kubectl's)")
	create := a.tenantCommand(&o, "create NAME", "Create a tenant, and write a kubeconfig for its administrator",
		`Create creates a tenant, and in it the service account kube-system/admin with the
role cluster-admin. It writes a kubeconfig with a token of this account.

Exit codes: 0 created, 2 could not run.`, "create shop --file shop.kubeconfig", a.createTenant)
	create.Flags().IntVar(&o.requests, "requests", 0, "how many requests of the tenant one replica works on at a time (default: 20)")
	create.Flags().IntVar(&o.objects, "objects", 0, "how many objects the tenant may have (default: 100000)")
	create.Flags().StringVar(&o.storage, "storage", "", "how many bytes of etcd its objects may take, such as 2Gi (default: 500Mi)")
	create.Flags().StringVar(&o.etcd, "etcd", "", "the etcd that the tenant is in, of 'etcd list', or root (default: the server chooses)")
	kubeconfig := a.tenantCommand(&o, "kubeconfig NAME", "Write a kubeconfig for the administrator of a tenant",
		`Kubeconfig writes a kubeconfig with a new token of the service account
kube-system/admin of a tenant. It creates the account if it is missing.

Exit codes: 0 written, 2 could not run.`, "kubeconfig shop --file shop.kubeconfig", a.tenantKubeconfig)
	for _, c := range []*cobra.Command{create, kubeconfig} {
		c.Flags().StringVarP(&o.file, "file", "f", "", "the file to write (default: standard output)")
		c.Flags().DurationVar(&o.lifetime, "lifetime", 24*time.Hour, "how long the token is valid; the server may shorten it")
	}
	list := &cobra.Command{
		Use: "list", Short: "List tenants", Long: "List lists the tenants of a server.\n\nExit codes: 0 listed, 2 could not run.",
		Example: a.Example("  %[1]s tenant list"), Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.listTenants(cmd.Context(), o) },
	}
	remove := a.tenantCommand(&o, "delete NAME", "Delete a tenant and everything in it",
		`Delete deletes a tenant and everything in it. This cannot be undone.

Exit codes: 0 deleted, 2 could not run.`, "delete shop --wait", a.deleteTenant)
	remove.Flags().BoolVar(&o.wait, "wait", false, "wait until nothing of the tenant is left")
	cmd.AddCommand(create, kubeconfig, list, a.newTenantMove(&o), remove)
	cmd.AddCommand(a.archiveCommands(&o)...)
	return cmd
}

// tenantCommand makes a subcommand about one tenant.
func (a *App) tenantCommand(o *tenantOptions, use, short, long, example string, run func(ctx context.Context, name string, o tenantOptions) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Long: long, Example: a.Example("  %[1]s tenant " + example), Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkTenantName(args[0]); err != nil {
				return err
			}
			return run(cmd.Context(), args[0], *o)
		},
	}
}

func checkTenantName(name string) error {
	if !tenantName.MatchString(name) {
		return fmt.Errorf("%q cannot be the name of a tenant: it must be a DNS label, which has lower case letters, digits and hyphens, at most 63", name)
	}
	return nil
}

// tenantObject is the object of a tenant, as JSON.
func tenantObject(name string, o tenantOptions, annotations map[string]string) (string, error) {
	spec := map[string]any{}
	if o.requests > 0 {
		spec["requests"] = o.requests
	}
	if o.objects > 0 {
		spec["objects"] = o.objects
	}
	if o.storage != "" {
		spec["storage"] = o.storage
	}
	if o.etcd != "" {
		spec["etcd"] = o.etcd
	}
	text, err := json.Marshal(map[string]any{
		"apiVersion": "espalier.dev/v1alpha1", "kind": "Tenant", "spec": spec,
		"metadata": map[string]any{"name": name, "annotations": annotations},
	})
	return string(text), err
}

// createTenant creates a tenant with an administrator.
func (a *App) createTenant(ctx context.Context, name string, o tenantOptions) error {
	text, err := tenantObject(name, o, nil)
	if err != nil {
		return err
	}
	if _, err := cluster.Run(ctx, o.from, text, "create", "-f", "-"); err != nil {
		return explainTenant("creating the tenant "+name, err)
	}
	fmt.Fprintf(a.Err, "tenant/%s created\n", name)
	return a.tenantKubeconfig(ctx, name, o)
}

// explainTenant adds what to do to an error of kubectl.
func explainTenant(what string, err error) error {
	switch text := err.Error(); {
	case strings.Contains(text, "AlreadyExists"):
		return fmt.Errorf("%s failed: there is one of this name; 'tenant kubeconfig' writes a kubeconfig for it", what)
	case strings.Contains(text, "no matches for kind"), strings.Contains(text, "could not find the requested resource"), strings.Contains(text, "doesn't have a resource type"):
		return fmt.Errorf("%s failed: the server has no tenants; it must be an Espalier server that runs with --tenants", what)
	default:
		return fmt.Errorf("%s failed: %w", what, err)
	}
}

// administrator is what gives the service account its rights.
const administrator = `{"apiVersion":"v1","kind":"List","items":[
{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"admin","namespace":"kube-system"}},
{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"admin"},
"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"cluster-admin"},
"subjects":[{"kind":"ServiceAccount","name":"admin","namespace":"kube-system"}]}]}`

// kubeconfigView is what is read of the kubeconfig of the server.
type kubeconfigView struct {
	Clusters []struct {
		Cluster map[string]any `json:"cluster"`
	} `json:"clusters"`
}

// tenantKubeconfig writes a kubeconfig with a new token.
func (a *App) tenantKubeconfig(ctx context.Context, name string, o tenantOptions) error {
	text, err := cluster.Run(ctx, o.from, "", "config", "view", "--raw", "--minify", "--flatten", "-o", "json")
	if err != nil {
		return fmt.Errorf("reading the kubeconfig failed: %w", err)
	}
	var view kubeconfigView
	if err := json.Unmarshal(text, &view); err != nil || len(view.Clusters) != 1 {
		return errors.New("reading the kubeconfig failed: it does not name one server; check the current context with 'kubectl config get-contexts'")
	}
	server, _ := view.Clusters[0].Cluster["server"].(string)
	server = strings.TrimSuffix(server, "/") + "/clusters/" + name
	if _, err := cluster.Run(ctx, o.from, administrator, "apply", "--server-side", "--force-conflicts", "--field-manager=espalier", "-f", "-", "--server="+server); err != nil {
		return explainTenant("creating the administrator of the tenant "+name, err)
	}
	token, err := cluster.Run(ctx, o.from, "", "create", "token", "admin", "--namespace=kube-system", "--duration="+o.lifetime.String(), "--server="+server)
	if err != nil {
		return explainTenant("creating a token for the tenant "+name, err)
	}
	own := view.Clusters[0].Cluster
	own["server"] = server
	config, err := json.MarshalIndent(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": name,
		"clusters": []any{map[string]any{"name": name, "cluster": own}},
		"users":    []any{map[string]any{"name": name, "user": map[string]string{"token": strings.TrimSpace(string(token))}}},
		"contexts": []any{map[string]any{"name": name, "context": map[string]string{"cluster": name, "user": name, "namespace": "default"}}},
	}, "", "  ")
	if err != nil {
		return err
	}
	if o.file == "" {
		fmt.Fprintf(a.Out, "%s\n", config)
		return nil
	}
	if err := os.WriteFile(o.file, append(config, '\n'), 0o600); err != nil {
		return fmt.Errorf("writing the kubeconfig failed: %w", err)
	}
	fmt.Fprintf(a.Err, "kubeconfig written to %s\n", o.file)
	return nil
}

// listTenants prints the tenants.
func (a *App) listTenants(ctx context.Context, o tenantOptions) error {
	text, err := cluster.Run(ctx, o.from, "", "get", tenantsResource)
	if err != nil {
		return explainTenant("listing tenants", err)
	}
	_, err = a.Out.Write(text)
	return err
}

// deleteTenant deletes a tenant.
func (a *App) deleteTenant(ctx context.Context, name string, o tenantOptions) error {
	stop := a.waiting("deleting the tenant " + name)
	_, err := cluster.Run(ctx, o.from, "", "delete", tenantsResource, name, "--wait="+fmt.Sprint(o.wait))
	stop()
	if err != nil {
		return explainTenant("deleting the tenant "+name, err)
	}
	what := "is being deleted"
	if o.wait {
		what = "deleted"
	}
	fmt.Fprintf(a.Err, "tenant/%s %s\n", name, what)
	return nil
}
