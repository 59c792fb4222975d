package command

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/espalier-dev/espalier/cmd/internal/cli"
	"github.com/espalier-dev/espalier/cmd/internal/report"
	"github.com/espalier-dev/espalier/server"
	"github.com/espalier-dev/espalier/server/crdinstall"
	"github.com/espalier-dev/espalier/server/gctune"
	"github.com/espalier-dev/espalier/server/local"
)

// devOptions are the flags of `espalier dev`.
type devOptions struct {
	dir       string
	temporary bool
	trust     bool // data that another user or machine made
	address   string
	port      uint16
	hosts     []string
	crds      []string
	kinds     string
	tenants   bool
	quiet     bool
	verbosity int
	log       string
	server    []string // flags of `espalier serve`
}

func newDev(a *app) *cobra.Command {
	var d devOptions
	cmd := &cobra.Command{
		Use:   "dev [-- FLAGS OF SERVE]",
		Short: cli.DevShort,
		Long: `Run a control plane in one process: etcd, certificates and the server of 'espalier
serve'. Dev prints how to connect kubectl, and runs until you press Ctrl-C.

Dev keeps all data in the folder .espalier of the current folder, or in --data-dir, and
continues with it at the next start. Git ignores the folder. Any user who can read the
folder is an administrator: it has the key of the CA. Remove the folder to start anew,
or use --temporary to keep no data.

Dev uses a data folder only if it was made by this user on this machine, which a key
in your state folder (~/.local/state/espalier) proves. Dev refuses a data folder that
came with a repository: its author may have the keys.

With --crds, dev loads the CustomResourceDefinitions of files and folders before it is
ready, and again whenever the files change. It reports mistakes in a file as 'espalier
check' does, and keeps serving the previous CRDs. Dev does not delete a CRD that you
remove from the files, because that would delete its objects.

Arguments after -- are flags of 'espalier serve'. Dev rejects those that it sets itself.

Exit codes: 0 stopped by a signal, 2 failed.`,
		Example: a.Example(`
  # A control plane for this folder, with the CRDs of a project
  %[1]s dev --crds config/crd

  # A second control plane on a free port, which keeps no data
  %[1]s dev --temporary --port 0

  # With pods, deployments, services and the other kinds of Kubernetes, as data
  %[1]s dev --kinds all

  # With a control plane of its own for each tenant
  %[1]s dev --tenants

  # A kubeconfig for a user without administrator rights
  %[1]s dev user bob --group team-a

  # As in Kubernetes, deleting a CRD deletes its objects
  %[1]s dev -- --protect-instances=false`),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && cmd.ArgsLenAtDash() != 0 {
				return fmt.Errorf("dev takes no argument %q; give files of CRDs with --crds", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			d.server = args
			return d.run(cmd.Context(), a)
		},
	}
	dataDirFlag(cmd, &d.dir)
	d.addFlags(cmd.Flags())
	cmd.MarkFlagsMutuallyExclusive("data-dir", "temporary")
	cmd.MarkFlagsMutuallyExclusive("trust-data-dir", "temporary")
	cli.Must(cmd.RegisterFlagCompletionFunc("kinds", cobra.FixedCompletions([]string{
		string(server.KindsCustom), string(server.KindsControlPlane), string(server.KindsAll),
	}, cobra.ShellCompDirectiveNoFileComp)))
	cmd.AddCommand(newDevUser(a))
	return cmd
}

func dataDirFlag(cmd *cobra.Command, into *string) {
	cmd.Flags().StringVar(into, "data-dir", defaultDataDir, "folder for all data")
	cli.Must(cmd.MarkFlagDirname("data-dir"))
}

func (d *devOptions) addFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&d.temporary, "temporary", false, "keep no data")
	flags.BoolVar(&d.trust, "trust-data-dir", false, "use a data folder that another machine, another user or an earlier version made; never use this for one that came with a repository")
	flags.StringVar(&d.address, "address", "127.0.0.1", "address to listen on; 0.0.0.0 for all addresses")
	flags.Uint16Var(&d.port, "port", 6443, "port to listen on; 0 for a free port")
	flags.StringSliceVar(&d.hosts, "host", nil, "further host name or address for the server's certificate")
	flags.StringSliceVar(&d.crds, "crds", nil, "file, folder or pattern of CustomResourceDefinitions to load, and to reload when the files change")
	flags.StringVar(&d.kinds, "kinds", string(server.KindsControlPlane), "built-in resources: custom (only what the server itself needs), control-plane (also config maps, secrets, service accounts and events) or all (also pods, deployments, services and the like, as data)")
	flags.BoolVar(&d.tenants, "tenants", false, "serve every object tenants.espalier.dev as an API server of its own, at /clusters/NAME; 'espalier tenant' creates them")
	flags.BoolVarP(&d.quiet, "quiet", "q", false, "print only errors")
	flags.IntVarP(&d.verbosity, "verbosity", "v", 0, "verbosity of the server's log, 1 to 9; without it, only errors are printed")
	flags.StringVar(&d.log, "log", "", "write the server's log to this file instead of standard error")
}

// endSignals stop a control plane. A terminal that is closed sends SIGHUP.
var endSignals = []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP}

// run starts a control plane and stops it when a signal comes.
func (d *devOptions) run(ctx context.Context, a *app) error {
	ctx, stop := untilSignal(ctx, endSignals...)
	defer stop()
	hush := sync.OnceFunc(hushLogs)
	context.AfterFunc(ctx, hush)
	if err := d.check(); err != nil {
		return err
	}
	excluded, err := a.Excluded()
	if err != nil {
		return err
	}
	if err := d.setLogs(); err != nil {
		return err
	}
	files, err := newCRDFiles(a, d.crds, excluded)
	if err != nil {
		return err
	}
	defer files.close()
	defer gctune.Late()()
	controlPlane, err := d.start(ctx)
	if err != nil {
		return unlessStopped(ctx, err)
	}
	err = d.live(ctx, a, controlPlane, files)
	if ctx.Err() != nil {
		hush() // before anything of it ends
	}
	if err := errors.Join(unlessStopped(ctx, err), controlPlane.Stop()); err != nil {
		return err
	}
	d.say(a, "Stopped.\n")
	return nil
}

// unlessStopped returns err, or nil if a signal caused it.
func unlessStopped(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// check says what is wrong with the flags before anything is started.
func (d *devOptions) check() error {
	for _, path := range d.crds {
		if _, err := os.Stat(path); err != nil && !strings.ContainsAny(path, "*?[{") {
			return fmt.Errorf("--crds: %w", err)
		}
	}
	return d.configure(server.NewOptions())
}

// ownFlags are flags of the server that dev sets itself.
var ownFlags = []string{"bind-address", "secure-port", "permit-port-sharing", "permit-address-sharing", "cert-dir", "tls-cert-file", "tls-private-key-file", "client-ca-file",
	"etcd-servers", "etcd-prefix", "etcd-cafile", "etcd-certfile", "etcd-keyfile"}

// configure sets the options of the server.
func (d *devOptions) configure(o *server.Options) error {
	o.Version, o.Kinds, o.Tenants = cli.Version(), server.Kinds(d.kinds), d.tenants
	if err := o.Kinds.Validate(); err != nil {
		return err
	}
	o.Run.ShutdownWatchTerminationGracePeriod = 0 // do not wait for watches at the end
	if len(d.server) == 0 {
		return nil
	}
	flags := pflag.NewFlagSet("dev", pflag.ContinueOnError)
	groups := o.Flags()
	for _, name := range groups.Order {
		if name != "logs" {
			flags.AddFlagSet(groups.FlagSets[name])
		}
	}
	if err := flags.Parse(d.server); err != nil {
		return fmt.Errorf("after --: %w", err)
	}
	for _, name := range ownFlags {
		if flags.Changed(name) {
			return fmt.Errorf("after --: dev sets --%s itself; use 'espalier serve' to set it", name)
		}
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("after --: %q is not a flag of 'espalier serve'", flags.Arg(0))
	}
	return o.Run.ComponentGlobalsRegistry.Set()
}

// start runs the control plane, and writes the kubeconfig.
func (d *devOptions) start(ctx context.Context) (*local.ControlPlane, error) {
	o := local.Options{
		Address:   net.JoinHostPort(d.address, strconv.Itoa(int(d.port))),
		Hosts:     d.hosts,
		Configure: func(o *server.Options) { cli.Must(d.configure(o)) }, // check has tried
	}
	if !d.temporary {
		var err error
		if o.Dir, err = ownData(d.dir, d.trust); err != nil {
			return nil, err
		}
	}
	if name, err := os.Hostname(); err == nil && d.beyond() {
		o.Hosts = append(slices.Clone(o.Hosts), name)
	}
	controlPlane, err := local.Start(ctx, o)
	if err != nil {
		return nil, d.explain(err)
	}
	if d.temporary {
		d.dir = controlPlane.Dir()
		_ = ownTemporary(d.dir) // without a state folder there is no 'dev user', which says why
	}
	kubeconfig, err := local.Kubeconfig(controlPlane.Config())
	if err == nil {
		err = writeSecret(filepath.Join(d.dir, kubeconfigName), kubeconfig)
	}
	if err != nil {
		return nil, errors.Join(err, controlPlane.Stop())
	}
	return controlPlane, nil
}

// beyond says whether others than this machine can reach the port.
func (d *devOptions) beyond() bool {
	ip := net.ParseIP(d.address)
	return d.address != "localhost" && (ip == nil || !ip.IsLoopback())
}

// explain says what to do if listening on the port failed.
func (d *devOptions) explain(err error) error {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "listen" {
		return fmt.Errorf("listening on port %d of %s failed, another program may use it: %w\nChoose another port with --port, or a free one with --port 0", d.port, d.address, op.Err)
	}
	return err
}

// live loads CRDs, says that it is ready, and goes on until something ends
// it.
func (d *devOptions) live(ctx context.Context, a *app, controlPlane *local.ControlPlane, files *crdFiles) error {
	client, err := crdinstall.NewClient(controlPlane.Config())
	if err != nil {
		return err
	}
	files.client = client
	loaded := files.load(ctx)
	if ctx.Err() != nil {
		return nil
	}
	a.complain(loaded)
	d.say(a, "%s", d.greeting(controlPlane, len(files.served)))
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-controlPlane.Done():
			return errors.New("the server stopped unexpectedly")
		case <-files.changes():
			reloaded := files.load(ctx)
			if ctx.Err() != nil {
				return nil
			}
			d.say(a, "%s", reloaded.summary())
			a.complain(reloaded)
		}
	}
}

func (d *devOptions) say(a *app, format string, args ...any) {
	if !d.quiet {
		fmt.Fprintf(a.Out, format, args...)
	}
}

// greeting says where the server is, and what to do next.
func (d *devOptions) greeting(controlPlane *local.ControlPlane, crds int) string {
	var text strings.Builder
	fmt.Fprintf(&text, "Espalier is ready at %s\n", controlPlane.Config().Host)
	if d.temporary {
		fmt.Fprintf(&text, "No data is kept.\n")
	} else {
		fmt.Fprintf(&text, "Data is kept in %s\n", d.dir)
	}
	if len(d.crds) > 0 {
		fmt.Fprintf(&text, "Serving %s of %s, reloaded when the files change\n", report.Counted(crds, "CRD"), strings.Join(d.crds, ", "))
	}
	if d.beyond() {
		fmt.Fprintf(&text, "Other machines can connect; clients need a certificate or a token\n")
	}
	fmt.Fprintf(&text, "\nIn another terminal:\n\n  %s\n  kubectl get crd\n\nCtrl-C stops it.\n", exportLine(filepath.Join(d.dir, kubeconfigName)))
	return text.String()
}

// exportLine is how a shell is told of a kubeconfig.
func exportLine(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	if runtime.GOOS == "windows" {
		return "$env:KUBECONFIG = '" + strings.ReplaceAll(path, "'", "''") + "'"
	}
	if strings.Trim(path, "/._-+=:,@abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") != "" {
		path = "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
	}
	return "export KUBECONFIG=" + path
}
