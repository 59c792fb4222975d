package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net/http"
	"time"

	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "address to serve sign-ups at")
	flag.Parse()
	// The kubeconfig of the server's administrator, from KUBECONFIG.
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	p := &Platform{Config: config}
	if err := p.Prepare(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("Sign up at http://%s/signup\n", *listen)
	server := &http.Server{Addr: *listen, Handler: p.Handler(), ReadTimeout: 10 * time.Second, WriteTimeout: time.Minute}
	log.Fatal(server.ListenAndServe())
}
