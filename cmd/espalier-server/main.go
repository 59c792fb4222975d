package main

import (
	"context"
	"os"
	"os/signal"

	"github.com/espalier-dev/espalier/cmd/espalier-server/internal/command"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := command.Main(ctx, os.Args[0], os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
