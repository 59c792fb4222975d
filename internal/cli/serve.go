package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/klog/v2"

	"github.com/espalier-dev/espalier/server"
)

func newServe(a *app) *cobra.Command {
	o := server.NewOptions()
	o.Version = Version()
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run an API server for CRDs and their objects, on etcd",
		Long: `Serve runs an API server that has CustomResourceDefinitions, their objects, and
the resources that their controllers need: namespaces, config maps, secrets,
service accounts, events, leases, roles, admission webhooks and policies. There are
no pods and no nodes. kubectl, client-go and controllers use it like any other.
Everything is kept in etcd.

Nothing is open by default. The server speaks TLS only. It knows its clients by
their certificates, by tokens of service accounts, and by tokens of OpenID
providers (--authentication-config); what they may do is what roles and bindings
say. Members of system:masters, which is an organization in a certificate, may do
everything. /livez, /readyz and /healthz answer to everybody.

The flags are those of kube-apiserver, as far as they make sense here.

Exit codes: 0 stopped by a signal, 2 could not run.`,
		Example: a.example(`
  # etcd on this machine, certificates in this folder
  %[1]s serve --etcd-servers http://127.0.0.1:2379 --client-ca-file ca.crt

  # etcd with TLS on both sides, a certificate for the server, users of an OpenID provider
  %[1]s serve --etcd-servers https://etcd:2379 \
    --etcd-cafile etcd-ca.crt --etcd-certfile etcd-client.crt --etcd-keyfile etcd-client.key \
    --tls-cert-file server.crt --tls-private-key-file server.key \
    --client-ca-file ca.crt --authentication-config authentication.yaml`),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return serve(cmd.Context(), o) },
	}
	groups := o.Flags()
	for _, set := range groups.FlagSets {
		cmd.Flags().AddFlagSet(set)
	}
	cmd.SetHelpFunc(func(cmd *cobra.Command, _ []string) { a.serveHelp(cmd, groups) })
	return cmd
}

// serve runs the server until a signal asks it to stop. The second signal does
// not wait for requests to be finished.
func serve(ctx context.Context, o *server.Options) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, func() { signal.Reset(os.Interrupt, syscall.SIGTERM) })
	if err := o.ApplyToProcess(); err != nil {
		return err
	}
	defer klog.Flush()
	s, err := server.New(ctx, o)
	if err != nil {
		return err
	}
	go collectLate(ctx)
	return s.Run(ctx)
}

// serveHelp prints the help with the flags in groups, which are too many for
// one list.
func (a *app) serveHelp(cmd *cobra.Command, groups cliflag.NamedFlagSets) {
	width := 100
	if out, ok := a.out.(*os.File); ok {
		if w, _, err := term.GetSize(int(out.Fd())); err == nil {
			width = w
		}
	}
	fmt.Fprintf(a.out, "%s\n\nUsage:\n  %s\n\nExamples:\n%s\n", strings.TrimSpace(cmd.Long), cmd.UseLine(), cmd.Example)
	cliflag.PrintSections(a.out, groups, width)
}
