package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"time"

	"github.com/espalier-dev/espalier/conformance/launch"
	"github.com/espalier-dev/espalier/conformance/results"
	"github.com/espalier-dev/espalier/conformance/suite"
)

var figures = results.New("upstream-suite")

var (
	server  = flag.String("server", suite.Espalier, "server to test: espalier, upstream (in the process of the tests, unchanged), upstream-process")
	only    = flag.String("run", "", "only the functions that match this regular expression")
	limit   = flag.Duration("limit", 5*time.Minute, "time for one function")
	tenant  = flag.String("tenant", "", "test a tenant of this name instead of our server itself, for example -tenant suite")
	content = flag.String("content-type", "", "what clients send (default: what they choose, protobuf for CRDs)")
)

func main() { launch.Main("upstream-suite", run) }

func run(ctx context.Context, dir string) error {
	o := suite.Options{Server: *server, Limit: *limit, Tenant: *tenant, Content: *content, Progress: os.Stderr}
	var err error
	if *only != "" {
		if o.Only, err = regexp.Compile(*only); err != nil {
			return err
		}
	}
	if *tenant != "" && *server != suite.Espalier {
		return errors.New("-tenant is for our server only")
	}
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
	functions, err := suite.Run(ctx, o)
	if err != nil {
		return err
	}
	fmt.Printf("%d functions in %v\n", len(functions), time.Since(began).Round(time.Second))
	passed, unexplained := suite.Report(os.Stdout, functions)
	if unexplained > 0 {
		return fmt.Errorf("%d functions without a reason in conformance/suite/reasons.txt", unexplained)
	}
	figures.Set("passed", "%d", passed)
	figures.Set("functions", "%d", len(functions))
	return figures.Save()
}
