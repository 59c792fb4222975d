package cli

import (
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/klog/v2"

	"github.com/espalier-dev/espalier/internal/collect"
	"github.com/espalier-dev/espalier/server"
)

func newServe(a *app) *cobra.Command {
	o := server.NewOptions()
	o.Version = Version()
	o.RecordAudit()
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

The flags are those of kube-apiserver, as far as they make sense here. They can be
in a file instead (--config), under the same names; --print-config makes such a
file of flags. What is on the command line wins over the file. --check says what is
wrong with both, and with the files that they name, without opening a port.

Who changed what, who read secrets and who was denied is recorded, without contents, as
lines of JSON on standard output (--audit-log-path, --audit-policy-file); the log is on
standard error.

The first SIGTERM or interrupt ends the server in order: /readyz fails at once; after
--shutdown-delay-duration no new requests are taken, and those that have begun are
finished. Requests that have not ended --request-timeout and ten seconds later are
broken off. The second signal ends the server at once.

Exit codes: 0 stopped by a signal, or nothing wrong (--check), 2 could not run.`,
		Example: a.example(`
  # etcd on this machine, certificates in this folder
  %[1]s serve --etcd-servers http://127.0.0.1:2379 --client-ca-file ca.crt

  # etcd with TLS on both sides, a certificate for the server, users of an OpenID provider
  %[1]s serve --etcd-servers https://etcd:2379 \
    --etcd-cafile etcd-ca.crt --etcd-certfile etcd-client.crt --etcd-keyfile etcd-client.key \
    --tls-cert-file server.crt --tls-private-key-file server.key \
    --client-ca-file ca.crt --authentication-config authentication.yaml

  # The same from a file, once it is found to be right
  %[1]s serve --config serve.yaml --check && %[1]s serve --config serve.yaml`),
		Args: cobra.NoArgs,
	}
	groups := o.Flags()
	settings := pflag.NewFlagSet("settings", pflag.ContinueOnError)
	for _, name := range groups.Order {
		settings.AddFlagSet(groups.FlagSets[name])
	}
	var s serving
	s.addFlags(groups.FlagSet("settings"))
	for _, set := range groups.FlagSets {
		cmd.Flags().AddFlagSet(set)
	}
	cmd.MarkFlagsMutuallyExclusive("check", "print-config")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return s.run(cmd.Context(), a, o, settings) }
	cmd.SetHelpFunc(func(cmd *cobra.Command, _ []string) { a.serveHelp(cmd, groups) })
	return cmd
}

// serving is what the command itself is told; the rest is for the server.
type serving struct {
	config string // file of settings
	check  bool   // and nothing else
	print  bool   // the settings, and nothing else
}

func (s *serving) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&s.config, "config", "",
		"YAML file of settings: the names are those of the flags without the dashes, the values are texts, numbers, true, false, lists and, for --feature-gates and its like, maps. "+
			"A flag on the command line takes the place of the whole setting. Paths are relative to the working directory, as those of flags are.")
	flags.BoolVar(&s.check, "check", false,
		"Say what is wrong with the settings and with the files that they name, and what is better changed, and end: with exit code 0 if nothing is wrong, else 2. No port is opened and etcd is not asked.")
	flags.BoolVar(&s.print, "print-config", false,
		"Print the settings that the command line and the file make, as a file for --config, and end.")
}

// run does with the settings what the command was asked for.
func (s *serving) run(ctx context.Context, a *app, o *server.Options, settings *pflag.FlagSet) error {
	if s.config != "" {
		if err := readConfigFile(s.config, settings); err != nil {
			return err
		}
	}
	if s.print {
		return printConfig(a.out, settings)
	}
	if err := o.ApplyToProcess(); err != nil {
		return err
	}
	if s.check {
		return checkServing(a, o)
	}
	return serve(ctx, o)
}

// checkServing says what is wrong, or that nothing is.
func checkServing(a *app, o *server.Options) error {
	if err := o.Validate(); err != nil {
		return err
	}
	for _, text := range o.Advice() {
		fmt.Fprintln(a.err, "warning:", text)
	}
	fmt.Fprintln(a.out, "nothing is wrong with the settings")
	return nil
}

// serve runs the server until a signal asks it to stop. The second signal does
// not wait for requests to be finished.
func serve(ctx context.Context, o *server.Options) error {
	ctx, stop := untilSignal(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	defer klog.Flush()
	defer endWithin(ctx, o.Run.ShutdownDelayDuration+o.Run.RequestTimeout+endGrace, os.Exit)()
	advice := o.Advice() // of the settings as they are given: New fills in some
	s, err := server.New(ctx, o)
	if ctx.Err() != nil {
		klog.InfoS("Stopped before it was ready", "cause", context.Cause(ctx), "err", err)
		if s != nil {
			return s.Close()
		}
		return nil
	}
	if err != nil {
		return err
	}
	for _, text := range advice {
		klog.Warning(text)
	}
	defer collect.Late()()
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
