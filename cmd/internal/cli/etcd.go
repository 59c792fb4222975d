package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/espalier-dev/espalier/cmd/internal/cluster"
)

// etcdsResource is what kubectl is asked for, whatever other resources have this name.
const etcdsResource = "etcds.v1alpha1.espalier.dev"

type etcdOptions struct {
	from    cluster.Source
	servers []string
	secret  string
	full    bool
}

func newEtcd(a *App) *cobra.Command {
	o := etcdOptions{}
	cmd := &cobra.Command{
		Use:   "etcd",
		Short: "Add and remove the etcds that tenants are in",
		Long: `A server that runs with --tenants can keep tenants in several etcds. New tenants are
spread over the etcds that are added; the objects of the server itself stay in its own
etcd, which is called root. Every replica of the server must reach every etcd.

Etcd uses kubectl and its kubeconfig.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return errors.New("no subcommand given: add, list or remove")
		},
	}
	cmd.PersistentFlags().StringVar(&o.from.Context, "context", "", "the context of the kubeconfig (default: the current one)")
	cmd.PersistentFlags().StringVar(&o.from.Kubeconfig, "kubeconfig", "", "the kubeconfig (default: kubectl's)")
	add := &cobra.Command{
		Use: "add NAME --servers URL,…", Short: "Add an etcd for tenants",
		Long: `Add adds an etcd. New tenants are spread over all etcds that are added and not full.
The certificates for TLS are in a Secret of the server, with the keys tls.crt and tls.key
of the server as a client, and ca.crt. Add again with other flags changes the etcd.

Exit codes: 0 added, 2 could not run.`,
		Example: a.Example("  %[1]s etcd add east --servers https://etcd-east-0:2379,https://etcd-east-1:2379 --tls-secret kube-system/etcd-east"),
		Args:    cobra.ExactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.addEtcd(cmd.Context(), args[0], o) },
	}
	add.Flags().StringSliceVar(&o.servers, "servers", nil, "the URLs of the members of the etcd")
	add.Flags().StringVar(&o.secret, "tls-secret", "", "the Secret with the certificates, as NAMESPACE/NAME (default: no client certificate, and the CAs of the system)")
	add.Flags().BoolVar(&o.full, "full", false, "place no new tenants in it")
	list := &cobra.Command{
		Use: "list", Short: "List the etcds of tenants", Long: "List lists the etcds that were added.\n\nExit codes: 0 listed, 2 could not run.",
		Example: a.Example("  %[1]s etcd list"), Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.listEtcds(cmd.Context(), o) },
	}
	remove := &cobra.Command{
		Use: "remove NAME", Short: "Remove an etcd that has no tenants",
		Long: `Remove removes an etcd. It refuses that while tenants are in it: move or delete them
first. The data of the etcd is left alone.

Exit codes: 0 removed, 2 could not run.`,
		Example: a.Example("  %[1]s etcd remove east"), Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.removeEtcd(cmd.Context(), args[0], o) },
	}
	cmd.AddCommand(add, list, remove)
	return cmd
}

// addEtcd creates or changes the object of an etcd.
func (a *App) addEtcd(ctx context.Context, name string, o etcdOptions) error {
	if len(o.servers) == 0 {
		return errors.New("--servers is missing: give the URLs of the members of the etcd")
	}
	spec := map[string]any{"servers": o.servers, "full": o.full}
	if o.secret != "" {
		namespace, secret, ok := strings.Cut(o.secret, "/")
		if !ok {
			return fmt.Errorf("--tls-secret is %q: give NAMESPACE/NAME", o.secret)
		}
		spec["tlsSecret"] = map[string]string{"namespace": namespace, "name": secret}
	}
	text, err := json.Marshal(map[string]any{"apiVersion": "espalier.dev/v1alpha1", "kind": "Etcd", "metadata": map[string]string{"name": name}, "spec": spec})
	if err != nil {
		return err
	}
	if _, err := cluster.Run(ctx, o.from, string(text), "apply", "--server-side", "--force-conflicts", "--field-manager=espalier-etcd", "-f", "-"); err != nil {
		return explainTenant("adding the etcd "+name, err)
	}
	fmt.Fprintf(a.Err, "etcd/%s added\n", name)
	return nil
}

// listEtcds prints the etcds.
func (a *App) listEtcds(ctx context.Context, o etcdOptions) error {
	text, err := cluster.Run(ctx, o.from, "", "get", etcdsResource)
	if err != nil {
		return explainTenant("listing etcds", err)
	}
	_, err = a.Out.Write(text)
	return err
}

// placesOfTenants prints for each tenant its name, and the etcds that it is in, is to be in or has left
// something in, with slashes between them.
const placesOfTenants = `jsonpath={range .items[*]}{.metadata.name}{"/"}{.spec.etcd}{"/"}{.status.etcd}{"/"}{.status.move.to}{range .status.leftovers[*]}{"/"}{@}{end}{"\n"}{end}`

// removeEtcd deletes the object of an etcd without tenants. Whether tenants are in it is looked at
// here, so that the object is not marked as deleted in vain; the server looks again, and keeps the
// object as long as there are any.
func (a *App) removeEtcd(ctx context.Context, name string, o etcdOptions) error {
	text, err := cluster.Run(ctx, o.from, "", "get", tenantsResource, "-o", placesOfTenants)
	if err != nil {
		return explainTenant("looking for tenants in the etcd "+name, err)
	}
	var there []string
	for line := range strings.Lines(string(text)) {
		if parts := strings.Split(strings.TrimSpace(line), "/"); slices.Contains(parts[1:], name) {
			there = append(there, parts[0])
		}
	}
	if n := len(there); n > 0 {
		const shown = 5
		more := ""
		if n > shown {
			more = fmt.Sprintf(" and %d more", n-shown)
		}
		return fmt.Errorf("removing the etcd %s failed: tenants are in it, or move to or from it: %s%s; move them with 'tenant move', or delete them", name, strings.Join(there[:min(n, shown)], ", "), more)
	}
	if _, err := cluster.Run(ctx, o.from, "", "delete", etcdsResource, name, "--timeout=30s"); err != nil {
		return explainTenant("removing the etcd "+name, err)
	}
	fmt.Fprintf(a.Err, "etcd/%s removed\n", name)
	return nil
}
