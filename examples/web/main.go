package main

import (
	_ "embed"
	"flag"
	"fmt"
	"log"
	"net/http"
	"time"
)

//go:embed sites.yaml
var sites []byte

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "address to serve the form at")
	flag.Parse()
	handler, err := New(sites, "v1")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("Open http://%s\n", *listen)
	server := &http.Server{Addr: *listen, Handler: handler, ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second}
	log.Fatal(server.ListenAndServe())
}
