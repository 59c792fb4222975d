package command

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"k8s.io/klog/v2"

	"github.com/espalier-dev/espalier/cmd/internal/cli"
)

// endGrace is what the end of a server may take beyond its last request.
const endGrace = 10 * time.Second

// untilSignal returns a context that ends with the first of the signals, whose name is
// the cause. The second one does what it does by default: it ends the process.
func untilSignal(ctx context.Context, signals ...os.Signal) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	received := make(chan os.Signal, 1)
	signal.Notify(received, signals...)
	go func() {
		select {
		case s := <-received:
			signal.Reset(signals...)
			cancel(fmt.Errorf("received %s", signalName(s)))
		case <-ctx.Done():
			signal.Stop(received)
		}
	}()
	return ctx, func() { cancel(nil) }
}

// endWithin ends the process if it has not ended by itself some time after the context
// has. What it returns is called when it has: a request that cannot be broken off must
// not make the signal ineffective.
func endWithin(ctx context.Context, limit time.Duration, exit func(int)) (ended func()) {
	over := make(chan struct{})
	context.AfterFunc(ctx, func() {
		select {
		case <-over:
		case <-time.After(limit):
			klog.ErrorS(nil, "Shutdown did not finish in time; exiting without it", "cause", context.Cause(ctx), "limit", limit)
			klog.Flush()
			exit(cli.ExitFailed)
		}
	})
	return func() { close(over) }
}

// signalName is SIGTERM for a signal that Go calls "terminated".
func signalName(s os.Signal) string {
	switch s {
	case os.Interrupt:
		return "SIGINT"
	case syscall.SIGTERM:
		return "SIGTERM"
	case syscall.SIGHUP:
		return "SIGHUP"
	}
	return s.String()
}
