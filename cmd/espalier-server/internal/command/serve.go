package command

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"
	cliflag "k8s.io/component-base/cli/flag"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/klog/v2"

	"github.com/espalier-dev/espalier/cmd/internal/cli"
	"github.com/espalier-dev/espalier/server"
	"github.com/espalier-dev/espalier/server/gctune"
)

func newServe(a *app) *cobra.Command {
	o := server.NewOptions()
	o.Version = cli.Version()
	o.RecordAudit()
	cmd := &cobra.Command{
		Use:   "serve",
		Short: cli.ServeShort,
		Long: `Run an API server for CustomResourceDefinitions, their objects, and the resources that
controllers need: namespaces, config maps, secrets, service accounts, events, leases,
roles, admission webhooks and policies. It has no pods and no nodes. kubectl, client-go
and controllers use it like any other API server. It stores all objects in etcd.

The server accepts only TLS. It authenticates clients by client certificate, by
service account token, and by OpenID Connect token (--authentication-config). Roles and
bindings authorize requests. Members of the group system:masters, which is an
organization in a certificate, may do everything. Only /livez, /readyz and /healthz
answer without authentication.

The flags are those of kube-apiserver, as far as they apply. They can be in a file
instead (--config), under the same names; --print-config writes such a file. The
command line takes precedence over the file. --check validates the settings and the
files that they name, without opening a port.

The server writes an audit log as lines of JSON to standard output (--audit-log-path,
--audit-policy-file): which user changed an object, read a secret or was denied,
without contents. The server's log goes to standard error. When it is ready, the server
prints there what it is, in ten lines: its address and version, etcd, who may do what,
kinds, admission, audit log, encryption, and what production usually has and is not set.
With --logging-format=json this is one entry of the log.

The first SIGTERM or interrupt shuts the server down: /readyz fails at once; after
--shutdown-delay-duration the server accepts no new requests and finishes those that
have begun. It aborts requests that have not ended --request-timeout and ten seconds
later. The second signal stops the server at once.

Exit codes: 0 stopped by a signal, or no mistakes (--check), 2 failed.`,
		Example: a.Example(`
  # etcd on this machine, the CA of clients in this folder
  %[1]s serve --etcd-servers http://127.0.0.1:2379 --client-ca-file ca.crt

  # etcd with mutual TLS, a certificate for the server, users of an OpenID provider
  %[1]s serve --etcd-servers https://etcd:2379 \
    --etcd-cafile etcd-ca.crt --etcd-certfile etcd-client.crt --etcd-keyfile etcd-client.key \
    --tls-cert-file server.crt --tls-private-key-file server.key \
    --client-ca-file ca.crt --authentication-config authentication.yaml

  # The same from a file, after checking it
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

// serving are the flags of the command itself; the other flags are the server's.
type serving struct {
	config string // file of settings
	check  bool   // and nothing else
	print  bool   // the settings, and nothing else
}

func (s *serving) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&s.config, "config", "",
		"YAML file of settings. Names are those of the flags without the dashes; values are strings, numbers, true, false, lists and, for flags such as --feature-gates, maps. "+
			"A flag on the command line replaces the whole setting. Paths are relative to the working directory, as those of flags are.")
	flags.BoolVar(&s.check, "check", false,
		"Validate the settings and the files that they name, print errors and warnings, and exit: with code 0 without errors, else 2. Opens no port and does not connect to etcd.")
	flags.BoolVar(&s.print, "print-config", false,
		"Print the settings of the command line and the file as a file for --config, and exit.")
}

// run checks or prints the settings, or runs the server.
func (s *serving) run(ctx context.Context, a *app, o *server.Options, settings *pflag.FlagSet) error {
	if s.config != "" {
		if err := readConfigFile(s.config, settings); err != nil {
			return err
		}
	}
	if s.print {
		return printConfig(a.Out, settings)
	}
	if err := o.ApplyToProcess(); err != nil {
		return err
	}
	if s.check {
		return checkServing(a, o)
	}
	return serve(ctx, a, o)
}

// checkServing validates the settings.
func checkServing(a *app, o *server.Options) error {
	if err := o.Validate(); err != nil {
		return err
	}
	for _, text := range o.Advice() {
		fmt.Fprintln(a.Err, "warning:", text)
	}
	fmt.Fprintln(a.Out, "the settings are valid")
	return nil
}

// serve runs the server until a signal asks it to stop. The second signal does
// not wait for requests to be finished.
func serve(ctx context.Context, a *app, o *server.Options) error {
	ctx, stop := untilSignal(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	defer klog.Flush()
	defer endWithin(ctx, o.Run.ShutdownDelayDuration+o.Run.RequestTimeout+endGrace, os.Exit)()
	advice := o.Advice() // of the settings as they are given: New fills in some
	s, err := server.New(ctx, o)
	if ctx.Err() != nil {
		klog.InfoS("Stopped before the server was ready", "cause", context.Cause(ctx), "err", err)
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
	defer gctune.Late()()
	running, over := context.WithCancel(ctx)
	defer over()
	go func() {
		select {
		case <-s.Ready():
			a.introduce(s, o.Logs.Format)
		case <-running.Done():
		}
	}()
	return s.Run(ctx)
}

// introduce says what the server is, in ten lines on standard error. If the log there is for
// programs, it is one entry of it.
func (a *app) introduce(s *server.Server, format string) {
	facts := s.Summary()
	if format != logsapi.DefaultLogFormat {
		var values []any
		for _, fact := range facts {
			values = append(values, strings.ReplaceAll(fact.Name, " ", ""), fact.Text)
		}
		klog.InfoS("Summary", values...)
		return
	}
	var text strings.Builder
	for i, fact := range facts {
		if i == 0 {
			fmt.Fprintf(&text, "%s\n", fact.Text)
			continue
		}
		fmt.Fprintf(&text, "  %-15s %s\n", fact.Name, fact.Text)
	}
	fmt.Fprintf(&text, "  %-15s %s doctor looks for what is wrong, %[2]s top shows what clients do\n", "see also", a.Name)
	_, _ = io.WriteString(a.Err, text.String()) // at once: the log writes to it as well
}

// serveHelp prints the help with the flags in groups, which are too many for
// one list.
func (a *app) serveHelp(cmd *cobra.Command, groups cliflag.NamedFlagSets) {
	width := 100
	if out, ok := a.Out.(*os.File); ok {
		if w, _, err := term.GetSize(int(out.Fd())); err == nil {
			width = w
		}
	}
	fmt.Fprintf(a.Out, "%s\n\nUsage:\n  %s\n\nExamples:\n%s\n", strings.TrimSpace(cmd.Long), cmd.UseLine(), cmd.Example)
	cliflag.PrintSections(a.Out, groups, width)
}
