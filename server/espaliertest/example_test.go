package espaliertest_test

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/espalier-dev/espalier/server/espaliertest"
)

// t and m are those of a test.
var (
	t *testing.T
	m *testing.M
)

// TestMain of a package: it stops the etcd that the tests share.
func ExampleMain() {
	espaliertest.Main(m)
}

func ExampleStart() {
	config := espaliertest.Start(t, espaliertest.CRDs("config/crd"))
	client := kubernetes.NewForConfigOrDie(config)
	if _, err := client.CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}

// New is for tests that need more than an administrator's client.
func ExampleNew() {
	server := espaliertest.New(t)
	user, err := server.User("alice", "designers")
	if err != nil {
		t.Fatal(err)
	}
	_, err = kubernetes.NewForConfigOrDie(user).CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{})
	if !apierrors.IsForbidden(err) {
		t.Errorf("alice has no rights: %v", err)
	}
}

// The controller gets a client with faults, and the test one without.
func ExampleExplore() {
	espaliertest.Explore(t, 100, func(t *testing.T, config *rest.Config) {
		controller := kubernetes.NewForConfigOrDie(config)
		admin := kubernetes.NewForConfigOrDie(espaliertest.WithoutFaults(config))
		_, _ = controller, admin // start the one, and look at what it does with the other
	}, espaliertest.CRDs("config/crd"))
}

// Conflicts are off, and the rest is repeated from seed 1000.
func ExampleFaults() {
	espaliertest.Explore(t, 100, func(*testing.T, *rest.Config) {},
		espaliertest.Faults(espaliertest.Weight(espaliertest.Conflict, 0), espaliertest.Seed(1000)))
}

// A suite that was written for envtest.
func ExampleEnvironment() {
	environment := &espaliertest.Environment{CRDDirectoryPaths: []string{"config/crd"}}
	config, err := environment.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer environment.Stop() //nolint:errcheck // the process ends
	_ = kubernetes.NewForConfigOrDie(config)
}
