package command

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/klog/v2"

	"github.com/espalier-dev/espalier/cmd/internal/cli"
	"github.com/espalier-dev/espalier/server/kubebuilder"
)

// The programs that envtest starts.
const (
	kubeAPIServer = "kube-apiserver"
	etcdProgram   = "etcd"
)

// multicall returns how to run under the name of a program that envtest starts; nil
// under any other name.
func multicall(program string) func(context.Context, *app, []string) int {
	switch strings.TrimSuffix(filepath.Base(program), ".exe") {
	case kubeAPIServer:
		return asAPIServer
	case etcdProgram:
		return asEtcd
	}
	return nil
}

// likeAPIServer makes `serve` behave like kube-apiserver: tests create all kinds of
// objects, delete CRDs that have objects, have webhooks on this machine, and do not wait for watches at the end.
var likeAPIServer = []string{"--kinds=all", "--protect-instances=false", "--shutdown-watch-termination-grace-period=0s", "--webhook-allowed-networks=0.0.0.0/0,::/0"}

// asAPIServer runs `serve` with the arguments of kube-apiserver.
func asAPIServer(ctx context.Context, a *app, args []string) int {
	if slices.ContainsFunc(args, func(arg string) bool { return arg == "--version" || strings.HasPrefix(arg, "--version=") }) {
		fmt.Fprintln(a.Out, "Kubernetes", cli.Kubernetes())
		return cli.ExitNothing
	}
	args, ignored := kubebuilder.Arguments(args)
	for _, text := range ignored {
		klog.Info(text)
	}
	like := likeAPIServer
	if !slices.ContainsFunc(args, func(arg string) bool { return arg == "--controllers" || strings.HasPrefix(arg, "--controllers=") }) {
		like = append(slices.Clone(like), "--controllers="+strings.Join(kubebuilder.Controllers, ",")) // a second list would add to the first
	}
	return run(ctx, a, slices.Concat([]string{"serve"}, like, args))
}

// likeTests are settings of an etcd of one member, which elects itself at once.
var likeTests = []string{"--heartbeat-interval=10", "--election-timeout=100"}

// asEtcd runs etcd, which ends the process itself.
func asEtcd(_ context.Context, _ *app, args []string) int {
	if len(args) > 0 && strings.HasPrefix(args[0], "-") {
		args = slices.Concat(likeTests, args)
	}
	etcdmain.Main(append([]string{etcdProgram}, args...))
	return cli.ExitNothing
}

// newTolerantServe is `serve` with the flags of kube-apiserver that have no meaning
// here, so that scripts and tests written for that one need no change.
func newTolerantServe(a *app) *cobra.Command {
	cmd := newServe(a)
	ignored := kubebuilder.Tolerate(cmd.Flags())
	cmd.PreRun = func(*cobra.Command, []string) {
		for _, text := range ignored() {
			klog.Info(text)
		}
	}
	return cmd
}
