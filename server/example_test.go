package server_test

import (
	"context"
	"fmt"
	"log"
	"os/signal"
	"syscall"

	"github.com/espalier-dev/espalier/server"
)

// Validate reports all that is missing, at once; New calls it.
func ExampleNewOptions() {
	options := server.NewOptions()
	options.Etcd.StorageConfig.Transport.ServerList = nil
	fmt.Println(options.Validate() != nil)
	// Output:
	// true
}

// A server on an etcd of yours, with your certificates, until the process gets a signal. Package local does without
// either.
func ExampleNew() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	options := server.NewOptions()
	options.Etcd.StorageConfig.Transport.ServerList = []string{"http://127.0.0.1:2379"}
	options.Serving.ServerCert.CertKey.CertFile = "server.crt"
	options.Serving.ServerCert.CertKey.KeyFile = "server.key"
	options.Identity.ClientCAFile = "ca.crt"
	s, err := server.New(ctx, options)
	if err != nil {
		log.Print(err)
		return
	}
	if err := s.Run(ctx); err != nil {
		log.Print(err)
	}
}
