package etcd_test

import (
	"context"
	"fmt"
	"log"
	"strings"
	"time"

	"github.com/espalier-dev/espalier/server/etcd"
)

func ExampleStart() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	storage, err := etcd.Start(ctx, etcd.Options{}) // with a Dir, the data stays
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(strings.HasPrefix(storage.Endpoint(), "unix:"))
	if err := storage.Stop(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// true
}
