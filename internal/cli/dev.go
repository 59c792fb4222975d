package cli

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

	"github.com/espalier-dev/espalier/internal/collect"
	"github.com/espalier-dev/espalier/internal/install"
	"github.com/espalier-dev/espalier/internal/report"
	"github.com/espalier-dev/espalier/server"
	"github.com/espalier-dev/espalier/server/local"
)

// developing is what `espalier dev` is told.
type developing struct {
	dir       string
	temporary bool
	trust     bool // data that somebody else made
	address   string
	port      uint16
	hosts     []string
	crds      []string
	quiet     bool
	verbosity int
	log       string
	server    []string // flags of `espalier serve`
}

func newDev(a *app) *cobra.Command {
	var d developing
	cmd := &cobra.Command{
		Use:   "dev [-- FLAGS OF SERVE]",
		Short: "Run a control plane on this machine: no other program, nothing to set up",
		Long: `Dev runs a whole control plane in one process: etcd, certificates, and the server
that is 'espalier serve'. It prints how kubectl gets there, and runs until Ctrl-C.

Everything is kept in a folder, .espalier in the current one unless --data-dir names
another: a project has its own, and starts again where it was. Git ignores the
folder. Whoever can read it can do everything: it has the key of the CA. To start
anew, remove it; with --temporary nothing is kept at all.

Dev uses only the data that it made itself, for this user on this machine: a key in
your state folder (~/.local/state/espalier) proves it. A data folder that came with a
repository is refused, since somebody else may have its keys.

With --crds the CustomResourceDefinitions of files and folders are loaded before it
is ready, and again whenever the files change. A file with a mistake is reported as
'espalier check' does, and the server goes on with what it has. A definition that
has gone from the files stays: its objects would go with it.

What comes after -- are flags of 'espalier serve', but for those that dev sets itself.

Exit codes: 0 stopped by a signal, 2 could not run.`,
		Example: a.example(`
  # A control plane for this folder, with the CRDs of a project
  %[1]s dev --crds config/crd

  # One beside others, of which nothing is kept
  %[1]s dev --temporary --port 0

  # A kubeconfig for somebody who is no administrator
  %[1]s dev user bob --group team-a

  # As in Kubernetes, a definition takes its objects with it
  %[1]s dev -- --protect-instances=false`),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && cmd.ArgsLenAtDash() != 0 {
				return fmt.Errorf("dev takes no argument %q; files of definitions are named by --crds", args[0])
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
	cmd.AddCommand(newDevUser(a))
	return cmd
}

func dataDirFlag(cmd *cobra.Command, into *string) {
	cmd.Flags().StringVar(into, "data-dir", defaultDataDir, "folder of everything that is kept")
	must(cmd.MarkFlagDirname("data-dir"))
}

func (d *developing) addFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&d.temporary, "temporary", false, "keep nothing")
	flags.BoolVar(&d.trust, "trust-data-dir", false, "use a data folder that another machine, another user or an earlier version made; never one that came with a repository")
	flags.StringVar(&d.address, "address", "127.0.0.1", "address to listen on; 0.0.0.0 is all of them")
	flags.Uint16Var(&d.port, "port", 6443, "port to listen on; 0 is a free one")
	flags.StringSliceVar(&d.hosts, "host", nil, "further name or address by which clients know this machine, for the certificate")
	flags.StringSliceVar(&d.crds, "crds", nil, "file, folder or pattern of CustomResourceDefinitions to load, and to load again when they change")
	flags.BoolVarP(&d.quiet, "quiet", "q", false, "print only what goes wrong")
	flags.IntVarP(&d.verbosity, "verbosity", "v", 0, "print the server's log, from 1 for little to 9 for all; without it, only its errors")
	flags.StringVar(&d.log, "log", "", "file for the server's log, instead of standard error")
}

// endSignals end a control plane. SIGHUP is that of a terminal that is closed.
var endSignals = []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP}

// run is the life of a control plane.
func (d *developing) run(ctx context.Context, a *app) error {
	ctx, stop := untilSignal(ctx, endSignals...)
	defer stop()
	hush := sync.OnceFunc(hushLogs)
	context.AfterFunc(ctx, hush)
	if err := d.check(); err != nil {
		return err
	}
	settings, err := a.settings()
	if err != nil {
		return err
	}
	if err := d.setLogs(); err != nil {
		return err
	}
	files, err := newDefinitionFiles(a, d.crds, settings)
	if err != nil {
		return err
	}
	defer files.close()
	defer collect.Late()()
	plane, err := d.start(ctx)
	if err != nil {
		return unlessStopped(ctx, err)
	}
	err = d.live(ctx, a, plane, files)
	if ctx.Err() != nil {
		hush() // before anything of it ends
	}
	if err := errors.Join(unlessStopped(ctx, err), plane.Stop()); err != nil {
		return err
	}
	d.say(a, "Stopped.\n")
	return nil
}

// unlessStopped is an error, but for one that comes of having been asked to stop.
func unlessStopped(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// check says what is wrong with the flags before anything is started.
func (d *developing) check() error {
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
func (d *developing) configure(o *server.Options) error {
	o.Version = Version()
	o.Run.ShutdownWatchTerminationGracePeriod = 0 // nobody is to wait for watches when it ends
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
			return fmt.Errorf("after --: dev sets --%s itself; run the server with 'espalier serve' to have it another way", name)
		}
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("after --: %q is no flag of 'espalier serve'", flags.Arg(0))
	}
	return o.Run.ComponentGlobalsRegistry.Set()
}

// start runs the plane, and writes the file for kubectl.
func (d *developing) start(ctx context.Context) (*local.Plane, error) {
	o := local.Options{
		Address:   net.JoinHostPort(d.address, strconv.Itoa(int(d.port))),
		Hosts:     d.hosts,
		Configure: func(o *server.Options) { must(d.configure(o)) }, // check has tried
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
	plane, err := local.Start(ctx, o)
	if err != nil {
		return nil, d.explain(err)
	}
	if d.temporary {
		d.dir = plane.Dir()
		_ = ownTemporary(d.dir) // without a state folder there is no 'dev user', which says why
	}
	kubeconfig, err := local.Kubeconfig(plane.Config())
	if err == nil {
		err = writeSecret(filepath.Join(d.dir, kubeconfigName), kubeconfig)
	}
	if err != nil {
		return nil, errors.Join(err, plane.Stop())
	}
	return plane, nil
}

// beyond says whether others than this machine can reach the port.
func (d *developing) beyond() bool {
	ip := net.ParseIP(d.address)
	return d.address != "localhost" && (ip == nil || !ip.IsLoopback())
}

// explain says what to do if the port cannot be had.
func (d *developing) explain(err error) error {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "listen" {
		return fmt.Errorf("cannot listen on port %d of %s, another program may have it: %w\nChoose another with --port, or any free one with --port 0", d.port, d.address, op.Err)
	}
	return err
}

// live loads definitions, says that it is ready, and goes on until something ends
// it.
func (d *developing) live(ctx context.Context, a *app, plane *local.Plane, files *definitionFiles) error {
	client, err := install.NewClient(plane.Config())
	if err != nil {
		return err
	}
	files.client = client
	loaded := files.load(ctx)
	if ctx.Err() != nil {
		return nil
	}
	a.complain(loaded)
	d.say(a, "%s", d.greeting(plane, len(files.served)))
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-plane.Done():
			return errors.New("the server has ended by itself")
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

func (d *developing) say(a *app, format string, args ...any) {
	if !d.quiet {
		fmt.Fprintf(a.out, format, args...)
	}
}

// greeting says where it is, and what to do now.
func (d *developing) greeting(plane *local.Plane, definitions int) string {
	var text strings.Builder
	fmt.Fprintf(&text, "Espalier is ready at %s\n", plane.Config().Host)
	if d.temporary {
		fmt.Fprintf(&text, "Nothing is kept.\n")
	} else {
		fmt.Fprintf(&text, "Everything is kept in %s\n", d.dir)
	}
	if len(d.crds) > 0 {
		fmt.Fprintf(&text, "It has %s of %s, and loads them again when the files change\n", report.Counted(definitions, "definition"), strings.Join(d.crds, ", "))
	}
	if d.beyond() {
		fmt.Fprintf(&text, "It listens beyond this machine: who has a certificate or a token comes in, nobody else\n")
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
