package local_test

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/espalier-dev/espalier/server/local"
)

func ExampleStart() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	plane, err := local.Start(ctx, local.Options{}) // with a Dir, objects and certificates stay
	if err != nil {
		log.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(plane.Config())
	if err != nil {
		log.Fatal(err)
	}
	namespace, err := client.CoreV1().Namespaces().Get(ctx, "default", metav1.GetOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(namespace.Name, namespace.Status.Phase)
	if err := plane.Stop(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// default Active
}

// A kubeconfig for kubectl, of a user whom roles of the control plane authorize.
func ExampleKubeconfig() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	plane, err := local.Start(ctx, local.Options{})
	if err != nil {
		log.Fatal(err)
	}
	alice, err := plane.User("alice", "designers")
	if err != nil {
		log.Fatal(err)
	}
	kubeconfig, err := local.Kubeconfig(alice)
	fmt.Println(bytes.Contains(kubeconfig, []byte("client-certificate-data:")), err)
	if err := plane.Stop(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// true <nil>
}
