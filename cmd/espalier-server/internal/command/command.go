package command

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/espalier-dev/espalier/cmd/internal/cli"
)

// app is what the commands share.
type app struct{ *cli.App }

// Main runs the program with the arguments after its name and returns its exit code.
func Main(ctx context.Context, program string, args []string, in io.Reader, out, errOut io.Writer) int {
	a := &app{cli.New(program, in, out, errOut)}
	if run := multicall(program); run != nil {
		return run(ctx, a, args)
	}
	return run(ctx, a, a.CalledAs(args))
}

// run runs one of the commands.
func run(ctx context.Context, a *app, args []string) int {
	ours := func(command func(*app) *cobra.Command) cli.Command {
		return func(*cli.App) *cobra.Command { return command(a) }
	}
	return a.Run(ctx, args, newRoot(a), ours(newDev), ours(newTolerantServe), ours(newEnvtest), ours(newRolloutCRD), cli.NewVersion, cli.NewMan)
}

func newRoot(a *app) *cobra.Command {
	return &cobra.Command{
		Short: "Run an API server for CustomResourceDefinitions and their objects",
		Long: `Run an API server for CustomResourceDefinitions and their objects: in production on
etcd (serve), on this machine without setup (dev), and for tests that use
controller-runtime's envtest (envtest).

'espalier dev', 'espalier serve' and 'espalier envtest' run this program.`,
		Example: a.Example(`
  # A control plane for this folder, with the CRDs of a project
  %[1]s dev --crds config/crd

  # An API server on an etcd
  %[1]s serve --etcd-servers http://127.0.0.1:2379 --client-ca-file ca.crt`),
	}
}
