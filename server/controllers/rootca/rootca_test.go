package rootca

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"

	"github.com/espalier-dev/espalier/server/etcdtest"
	"github.com/espalier-dev/espalier/server/restmappingtest"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

const bundle = "the certificates"

// start runs the controller until the function that it returns is called.
func start(t *testing.T, s *restmappingtest.Server) (stop func()) {
	t.Helper()
	factory := informers.NewSharedInformerFactory(s.Client, 0)
	namespaces := factory.Core().V1().Namespaces()
	namespaces.Informer()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- Run(ctx, s.Client, namespaces, func() ([]byte, error) { return []byte(bundle), nil })
	}()
	factory.Start(ctx.Done())
	return func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Run returned %v", err)
		}
		factory.Shutdown()
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func namespace(t *testing.T, s *restmappingtest.Server, name string) {
	t.Helper()
	_, err := s.Client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	must(t, err)
}

// published waits until a namespace has a ConfigMap that is right.
func published(t *testing.T, s *restmappingtest.Server, namespace string) (m *corev1.ConfigMap) {
	t.Helper()
	restmappingtest.Eventually(t, namespace+" has the CA", func() bool {
		var err error
		m, err = s.Client.CoreV1().ConfigMaps(namespace).Get(t.Context(), Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false
		}
		must(t, err)
		return len(m.Data) == 1 && m.Data[Key] == bundle && m.Annotations[descriptionKey] == description
	})
	return m
}

func TestEveryNamespaceHasTheCA(t *testing.T) {
	s := restmappingtest.Start(t, restmappingtest.Options{})
	namespace(t, s, "before")
	namespace(t, s, "ended")
	must(t, s.Client.CoreV1().Namespaces().Delete(t.Context(), "ended", metav1.DeleteOptions{}))
	namespace(t, s, "wrong")
	_, err := s.Client.CoreV1().ConfigMaps("wrong").Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: Name, Labels: map[string]string{"mine": "yes"}}, Data: map[string]string{Key: "another", "more": "x"},
	}, metav1.CreateOptions{})
	must(t, err)
	defer start(t, s)()
	first := published(t, s, "before")
	if m := published(t, s, "wrong"); m.Labels["mine"] != "yes" {
		t.Errorf("repairing has removed labels: %v", m.Labels)
	}
	namespace(t, s, "after")
	published(t, s, "after")

	maps := s.Client.CoreV1().ConfigMaps("before")
	must(t, maps.Delete(t.Context(), Name, metav1.DeleteOptions{}))
	restmappingtest.Eventually(t, "there is another one", func() bool { return published(t, s, "before").UID != first.UID })
	for _, patch := range []string{
		`{"data":{"ca.crt":"forged"}}`, `{"data":{"more":"x"}}`, `{"data":null}`, `{"binaryData":{"b":"eA=="}}`, `{"metadata":{"annotations":null}}`,
	} {
		changed, err := maps.Patch(t.Context(), Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		must(t, err)
		restmappingtest.Eventually(t, patch+" is repaired", func() bool {
			m := published(t, s, "before")
			return m.ResourceVersion != changed.ResourceVersion && len(m.BinaryData) == 0
		})
	}
	if _, err := s.Client.CoreV1().ConfigMaps("ended").Get(t.Context(), Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a namespace that is being deleted: %v", err)
	}
}

// The next leader finds all ConfigMaps right, and writes nothing.
func TestSecondLeaderWritesNothing(t *testing.T) {
	s := restmappingtest.Start(t, restmappingtest.Options{})
	namespace(t, s, "shop")
	stop := start(t, s)
	first := published(t, s, "shop")
	stop()
	defer start(t, s)()
	namespace(t, s, "last")
	published(t, s, "last")
	if m := published(t, s, "shop"); m.ResourceVersion != first.ResourceVersion {
		t.Errorf("written again: %s, then %s", first.ResourceVersion, m.ResourceVersion)
	}
}

func TestWithoutCertificates(t *testing.T) {
	s := restmappingtest.Start(t, restmappingtest.Options{})
	cause := errors.New("no such file")
	namespaces := informers.NewSharedInformerFactory(s.Client, 0).Core().V1().Namespaces()
	if err := Run(t.Context(), s.Client, namespaces, func() ([]byte, error) { return nil, cause }); !errors.Is(err, cause) {
		t.Errorf("got %v", err)
	}
}
