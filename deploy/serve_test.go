package deploy

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// shell runs commands in a folder, and fails the test if one of them fails.
func shell(t *testing.T, dir, commands string, env ...string) {
	t.Helper()
	cmd := exec.Command("bash", "-euo", "pipefail", "-c", commands)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, commands, out)
	}
}

// A testEnvironment is what README.md has its reader make: certificates in a folder, and an etcd that wants them.
type testEnvironment struct {
	dir  string
	etcd *etcd
}

func newTestEnvironment(t *testing.T) *testEnvironment {
	t.Helper()
	w := &testEnvironment{dir: t.TempDir()}
	shell(t, w.dir, block(t, "openssl req"))
	w.etcd = startEtcd(t, w.dir, "etcd-ca")
	return w
}

// client speaks to a server with a certificate that README.md makes; "" has none, as kubelet's probes.
func (w *testEnvironment) client(t *testing.T, name string) *http.Client {
	t.Helper()
	config := &tls.Config{RootCAs: x509.NewCertPool(), ServerName: "espalier.espalier.svc", MinVersion: tls.VersionTLS12}
	config.RootCAs.AppendCertsFromPEM(read(t, filepath.Join(w.dir, "espalier-ca.crt")))
	if name != "" {
		pair, err := tls.LoadX509KeyPair(filepath.Join(w.dir, name+".crt"), filepath.Join(w.dir, name+".key"))
		if err != nil {
			t.Fatal(err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}}
	t.Cleanup(client.CloseIdleConnections)
	return client
}

// config is that of an administrator.
func (w *testEnvironment) config(url string) *rest.Config {
	return &rest.Config{Host: url, QPS: -1, TLSClientConfig: rest.TLSClientConfig{
		ServerName: "espalier.espalier.svc", CAFile: filepath.Join(w.dir, "espalier-ca.crt"),
		CertFile: filepath.Join(w.dir, "admin.crt"), KeyFile: filepath.Join(w.dir, "admin.key"),
	}}
}

// dynamic is an administrator's client.
func (w *testEnvironment) dynamic(t *testing.T, url string) dynamic.Interface {
	t.Helper()
	client, err := dynamic.NewForConfig(w.config(url))
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// A server is a running `espalier serve`.
type server struct {
	*process
	url  string
	home string // its working folder
}

// serve runs arguments as they are, but for the port and the address of etcd. The working folder is empty.
func (w *testEnvironment) serve(t *testing.T, args, env []string, change func(*exec.Cmd)) *server {
	t.Helper()
	port := freePort(t)
	s := &server{url: fmt.Sprintf("https://127.0.0.1:%d", port), home: t.TempDir()}
	var argv []string
	for _, a := range args {
		switch name, _ := flagName(a); name {
		case "secure-port":
			a = fmt.Sprintf("--secure-port=%d", port)
		case "etcd-servers":
			a = "--etcd-servers=" + w.etcd.secure
		case "shutdown-delay-duration":
			a = "--shutdown-delay-duration=2s"
		}
		argv = append(argv, a)
	}
	cmd := exec.Command(program(t), append(argv, "--bind-address=127.0.0.1")...)
	cmd.Dir, cmd.Env = s.home, append(os.Environ(), env...)
	if change != nil {
		change(cmd)
	}
	s.process = start(t, cmd)
	s.ready(t, w.client(t, ""), s.url+"/readyz")
	return s
}

// cluster stands in for the Kubernetes cluster whose secrets pods mount: a server of ours, which has secrets too. The commands of
// README.md are run against it.
func (w *testEnvironment) cluster(t *testing.T) dynamic.Interface {
	t.Helper()
	file := func(name string) string { return filepath.Join(w.dir, name) }
	s := w.serve(t, []string{"serve", "--secure-port=", "--etcd-servers=", "--etcd-prefix=/cluster", "--etcd-cafile=" + file("etcd-ca.crt"),
		"--etcd-certfile=" + file("etcd-client.crt"), "--etcd-keyfile=" + file("etcd-client.key"), "--client-ca-file=" + file("espalier-ca.crt"),
		"--tls-cert-file=" + file("server.crt"), "--tls-private-key-file=" + file("server.key"), "--service-account-signing-key-file=" + file("signing.key")}, nil, nil)
	kubeconfig := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],
clusters: [{name: c, cluster: {server: %q, certificate-authority: espalier-ca.crt, tls-server-name: espalier.espalier.svc}}],
users: [{name: u, user: {client-certificate: admin.crt, client-key: admin.key}}]}`, s.url)
	if err := os.WriteFile(file("kubeconfig"), []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	if err := os.Symlink(tool(t, "kubectl"), filepath.Join(bin, "kubectl")); err != nil {
		t.Fatal(err)
	}
	shell(t, w.dir, block(t, "create secret"), "KUBECONFIG=kubeconfig", "REPOSITORY="+absolute(t, root), "PATH="+bin+":"+os.Getenv("PATH"))
	return w.dynamic(t, s.url)
}

// mount writes the volumes of a pod below a folder, as kubelet does.
func mount(t *testing.T, cluster dynamic.Interface, all []runtime.Object, dir string) {
	t.Helper()
	pod := one[*appsv1.Deployment](t, all).Spec.Template.Spec
	for _, m := range pod.Containers[0].VolumeMounts {
		for name, data := range volume(t, cluster, all, pod, m.Name) {
			path := filepath.Join(dir, m.MountPath, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, data, 0o600)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// volume returns the files of a volume: from the manifests if they have them, from the cluster otherwise.
func volume(t *testing.T, cluster dynamic.Interface, all []runtime.Object, pod corev1.PodSpec, name string) map[string][]byte {
	t.Helper()
	fetch := func(resource, name string, into any) {
		obj, err := cluster.Resource(schema.GroupVersionResource{Version: "v1", Resource: resource}).Namespace("espalier").Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatalf("a pod would wait for it: %v", err)
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, into); err != nil {
			t.Fatal(err)
		}
	}
	for _, v := range pod.Volumes {
		switch {
		case v.Name != name:
		case v.Secret != nil:
			var s corev1.Secret
			fetch("secrets", v.Secret.SecretName, &s)
			return s.Data
		case v.ConfigMap != nil:
			var c corev1.ConfigMap
			for _, o := range all {
				if own, ok := o.(*corev1.ConfigMap); ok && own.Name == v.ConfigMap.Name {
					c = *own
				}
			}
			if c.Name == "" {
				fetch("configmaps", v.ConfigMap.Name, &c)
			}
			files := map[string][]byte{}
			for k, text := range c.Data {
				files[k] = []byte(text)
			}
			return files
		}
	}
	t.Fatalf("the pod has no volume %s", name)
	return nil
}

// pod runs the container of manifests.
func (w *testEnvironment) pod(t *testing.T, cluster dynamic.Interface, text string, change func(*exec.Cmd)) *server {
	t.Helper()
	all, dir := objects(t, text), t.TempDir()
	mount(t, cluster, all, dir)
	container := one[*appsv1.Deployment](t, all).Spec.Template.Spec.Containers[0]
	var args, env []string
	for _, a := range container.Args {
		args = append(args, strings.ReplaceAll(a, "=/etc/espalier/", "="+dir+"/etc/espalier/"))
	}
	for _, e := range container.Env {
		env = append(env, e.Name+"="+e.Value)
	}
	return w.serve(t, args, env, change)
}

// The manifests, with what README.md has its reader create, run a server that is reached as they say and ends as they say.
func TestManifestsServe(t *testing.T) {
	w := newTestEnvironment(t)
	cluster := w.cluster(t)
	out := &lockedBuffer{}
	s := w.pod(t, cluster, string(read(t, manifestFile)), func(cmd *exec.Cmd) { cmd.Stdout = out })
	anonymous, metrics := w.client(t, ""), w.client(t, "metrics")

	for _, path := range []string{"/livez", "/readyz"} {
		if _, err := get(anonymous, s.url+path); err != nil {
			t.Errorf("a probe fails: %v", err)
		}
	}
	if _, err := get(anonymous, s.url+"/metrics"); err == nil {
		t.Error("an anonymous client may read the metrics")
	}
	if _, err := get(metrics, s.url+"/metrics"); err != nil {
		t.Errorf("Prometheus may not read the metrics: %v", err)
	}
	if _, err := get(metrics, s.url+"/api/v1/secrets"); err == nil {
		t.Error("Prometheus may read secrets")
	}
	namespace := schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	if _, err := w.dynamic(t, s.url).Resource(namespace).Get(t.Context(), "default", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	if _, err := w.dynamic(t, s.url).Resource(namespace).Get(t.Context(), "espalier", metav1.GetOptions{}); err == nil {
		t.Error("the two servers share their objects")
	}
	eventually(t, "the audit log has nothing", func() error {
		if !strings.Contains(out.String(), `"requestURI":"/api/v1/namespaces/default"`) {
			return errors.New(out.String())
		}
		return nil
	})
	endsGently(t, s, anonymous)
	if files, err := os.ReadDir(s.home); err != nil || len(files) != 0 {
		t.Errorf("the server wrote %v into its working folder (%v), and cannot in the image", files, err)
	}
}

// endsGently sends the signal and sees what load balancers see: not ready, alive, gone.
func endsGently(t *testing.T, s *server, anonymous *http.Client) {
	t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a server that ends says that it is ready", func() error {
		if _, err := get(anonymous, s.url+"/readyz"); err == nil {
			return errors.New("ready")
		}
		return nil
	})
	if _, err := get(anonymous, s.url+"/livez"); err != nil {
		t.Errorf("a server that ends would be restarted: %v", err)
	}
	select {
	case <-s.done:
		if code := s.cmd.ProcessState.ExitCode(); code != 0 {
			t.Errorf("it ended with code %d", code)
		}
	case <-time.After(time.Minute):
		t.Error("it does not end")
	}
}

// unit runs what the unit runs, with its folders below dir. The files have the names under which README.md installs them.
func (w *testEnvironment) unit(t *testing.T, dir string, env []string, change func(*exec.Cmd)) *server {
	t.Helper()
	for _, sub := range []string{"credentials", "log/espalier", "state/espalier", "etc"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	made := map[string]string{"tls.crt": "server.crt", "tls.key": "server.key"}
	install := func(from, to string) {
		if err := os.WriteFile(filepath.Join(dir, to), read(t, from), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range options(t, "Service")["LoadCredential"] {
		name, _, _ := strings.Cut(c, ":")
		from, ok := made[name]
		if !ok {
			from = name
		}
		install(filepath.Join(w.dir, from), "credentials/"+name)
	}
	install(filepath.Join(w.dir, "espalier-ca.crt"), "etc/client-ca.crt")
	install("systemd/audit.yaml", "etc/audit.yaml")
	replace := specifiers(dir)
	replace["/etc/espalier"] = dir + "/etc"
	for name, value := range environment(t) {
		replace["${"+name+"}"], replace["$"+name] = value, value
		env = append(env, name+"="+value)
	}
	return w.serve(t, command(t, replace)[1:], env, change)
}

// The unit does the same, and tells systemd when it serves.
func TestUnitServes(t *testing.T) {
	w, dir := newTestEnvironment(t), t.TempDir()
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(dir, "notify"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	s := w.unit(t, dir, []string{"NOTIFY_SOCKET=" + filepath.Join(dir, "notify")}, nil)
	message := make([]byte, 4096)
	_ = socket.SetReadDeadline(time.Now().Add(time.Minute))
	if n, err := socket.Read(message); err != nil || !strings.Contains(string(message[:n]), "READY=1") {
		t.Errorf("systemd is not told that the server serves: %q, %v", message[:n], err)
	}
	if _, err := get(w.client(t, "metrics"), s.url+"/api"); err != nil {
		t.Error(err)
	}
	eventually(t, "the audit log has nothing", func() error {
		if log := string(read(t, filepath.Join(dir, "log/espalier/audit.log"))); !strings.Contains(log, `"requestURI":"/api"`) {
			return errors.New(log)
		}
		return nil
	})
	endsGently(t, s, w.client(t, ""))
}

// A lockedBuffer keeps what a process prints.
type lockedBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
