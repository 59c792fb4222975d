package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"syscall"
	"time"

	"github.com/espalier-dev/espalier/conformance/launch"
	"github.com/espalier-dev/espalier/conformance/suite"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "upstream-suite:", err)
		os.Exit(1)
	}
}

func run() error {
	server := flag.String("server", suite.Espalier, "server to test: espalier, upstream (in the process of the tests, unchanged), upstream-process")
	only := flag.String("run", "", "only the functions that match this regular expression")
	limit := flag.Duration("limit", 5*time.Minute, "time for one function")
	content := flag.String("content-type", "", "what clients send (default: what they choose, protobuf for CRDs)")
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	o := suite.Options{Server: *server, Limit: *limit, Content: *content, Progress: os.Stderr}
	var err error
	if *only != "" {
		if o.Only, err = regexp.Compile(*only); err != nil {
			return err
		}
	}
	dir, err := os.MkdirTemp("", "upstream-suite-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	switch *server {
	case suite.Espalier:
		o.Binary, err = launch.Build(ctx, dir)
	case suite.UpstreamProcess:
		o.Binary, err = launch.Tool("upstream")
	}
	if err != nil {
		return err
	}
	began := time.Now()
	results, err := suite.Run(ctx, o)
	if err != nil {
		return err
	}
	fmt.Printf("%d functions in %v\n", len(results), time.Since(began).Round(time.Second))
	if n := suite.Report(os.Stdout, results); n > 0 {
		return fmt.Errorf("%d functions without a reason in conformance/suite/reasons.txt", n)
	}
	return nil
}
