package local_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/espalier-dev/espalier/server"
	"github.com/espalier-dev/espalier/server/local"
)

func TestWhatIsInTheFolderSurvives(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	first := start(t, local.Options{Dir: dir})
	note := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "note"}, Data: map[string]string{"a": "b"}}
	if _, err := client(t, first.Config()).CoreV1().ConfigMaps("default").Create(t.Context(), note, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	await(t, "the service account of the namespace", func() bool {
		_, err := client(t, first.Config()).CoreV1().ServiceAccounts("default").Get(t.Context(), "default", metav1.GetOptions{})
		return err == nil
	})
	token, err := client(t, first.Config()).CoreV1().ServiceAccounts("default").CreateToken(t.Context(), "default", tokenRequest(), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}

	second := start(t, local.Options{Dir: dir})
	// The certificate of the first is signed by the CA of the folder, and so is
	// good for the second.
	old := first.Config()
	old.Host = second.Config().Host
	got, err := client(t, old).CoreV1().ConfigMaps("default").Get(t.Context(), "note", metav1.GetOptions{})
	if err != nil || got.Data["a"] != "b" {
		t.Errorf("got %v, %v", got.Data, err)
	}
	bearer := rest.AnonymousClientConfig(second.Config())
	bearer.BearerToken = token.Status.Token
	if who, err := client(t, bearer).AuthenticationV1().SelfSubjectReviews().Create(t.Context(), self(), metav1.CreateOptions{}); err != nil ||
		who.Status.UserInfo.Username != "system:serviceaccount:default:default" {
		t.Errorf("the token of a service account is not known any more: %v, %v", who, err)
	}
	for _, path := range []string{dir, filepath.Join(dir, "pki"), filepath.Join(dir, "etcd")} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: others may enter: %v, %v", path, info.Mode(), err)
		}
	}
}

func TestUsersMayDoWhatRolesSay(t *testing.T) {
	p := start(t, local.Options{})
	config, err := p.User("jane", "team")
	if err != nil {
		t.Fatal(err)
	}
	_, err = client(t, config).CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `User "jane" cannot list resource "secrets"`) {
		t.Errorf("got %v", err)
	}
	who, err := client(t, config).AuthenticationV1().SelfSubjectReviews().Create(t.Context(), self(), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if groups := who.Status.UserInfo.Groups; groups[0] != "team" {
		t.Errorf("got %v", groups)
	}
}

func TestKubeconfigIsComplete(t *testing.T) {
	p := start(t, local.Options{})
	data, err := local.Kubeconfig(p.Config())
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(data)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client(t, config).CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
}

// Starting a server does not change the garbage collector or the environment of the program.
func TestLeavesTheProcessAlone(t *testing.T) {
	percent := func() int {
		now := debug.SetGCPercent(100)
		debug.SetGCPercent(now)
		return now
	}
	collecting, environment := percent(), os.Environ()
	p := start(t, local.Options{})
	if got := percent(); got != collecting {
		t.Errorf("GOGC is %d and was %d", got, collecting)
	}
	if got := os.Environ(); !slices.Equal(got, environment) {
		t.Errorf("the environment is %q and was %q", got, environment)
	}
	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}
}

func TestNothingIsLeft(t *testing.T) {
	// What a process makes once is made.
	if err := start(t, local.Options{}).Stop(); err != nil {
		t.Fatal(err)
	}
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	before := runtime.NumGoroutine()
	p, err := local.Start(t.Context(), local.Options{})
	if err != nil {
		t.Fatal(err)
	}
	watch, err := client(t, p.Config()).CoreV1().ConfigMaps("").Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("a client with a watch has held up the end for %v", took)
	}
	for range watch.ResultChan() { // it ends
	}
	select {
	case <-p.Done():
	default:
		t.Error("Done is not closed")
	}
	if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	await(t, "its goroutines to end", func() bool { return runtime.NumGoroutine() <= before+5 })
}

func TestStartSaysWhatIsWrong(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for name, c := range map[string]struct {
		options local.Options
		want    string
	}{
		"port":    {local.Options{Address: taken.Addr().String()}, "address already in use"},
		"options": {local.Options{Configure: func(o *server.Options) { o.FieldValidation = "perhaps" }}, "--field-validation is warn, strict or ignore"},
		"folder":  {local.Options{Dir: "/dev/null/data"}, "not a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := local.Start(t.Context(), c.options)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if p != nil {
				t.Error("there is a plane besides the error")
			}
		})
	}
}

func TestACanceledStartIsGivenUp(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := local.Start(ctx, local.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func start(t *testing.T, o local.Options) *local.ControlPlane {
	t.Helper()
	p, err := local.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func client(t *testing.T, c *rest.Config) kubernetes.Interface {
	t.Helper()
	k, err := kubernetes.NewForConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited for %s", what)
		}
	}
}
