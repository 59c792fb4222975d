package controllers_test

import (
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/espalier-dev/espalier/conformance/launch"
)

const kwokModule = "sigs.k8s.io/kwok"

// workloads is a cluster without machines, once a test has asked for it.
var workloads *environment

// cluster returns a server with all kinds and of its own controllers only the one that kube-apiserver has too, and what a cluster has besides a server:
// kube-controller-manager and kube-scheduler as they are, and kwok in place of kubelets. Controllers that make workloads run on it.
func cluster(t *testing.T) *environment {
	t.Helper()
	if workloads != nil {
		return workloads
	}
	dir := here.path("cluster")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	var err error
	if workloads, err = newEnvironment(here.ctx, dir, "/cluster", "--kinds=all", "--controllers=kubernetes-service-controller"); err != nil {
		t.Fatal(err)
	}
	w := workloads
	w.manage(t, w.identity(t, "system:kube-controller-manager"), "--use-service-account-credentials")
	scheduler := w.identity(t, "system:kube-scheduler")
	w.run(t, "kube-scheduler", tool(t, "kube-scheduler"), nil, "--kubeconfig="+scheduler, "--authentication-kubeconfig="+scheduler,
		"--authorization-kubeconfig="+scheduler, "--leader-elect=false", "--secure-port=0")
	w.playKubelet(t)
	return w
}

// manage runs kube-controller-manager with all its controllers.
func (w *environment) manage(t *testing.T, kubeconfig string, flags ...string) *program {
	t.Helper()
	ca, err := launch.NewCA()
	if err != nil {
		t.Fatal(err)
	}
	if err := ca.Save(w.dir); err != nil {
		t.Fatal(err)
	}
	root := w.path("root.crt")
	if err := os.WriteFile(root, w.server.Config.CAData, 0o600); err != nil {
		t.Fatal(err)
	}
	return w.run(t, "kube-controller-manager", tool(t, "kube-controller-manager"), nil, append([]string{
		"--kubeconfig=" + kubeconfig, "--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig,
		"--controllers=*", "--leader-elect=false", "--secure-port=0", "--root-ca-file=" + root,
		"--cluster-signing-cert-file=" + w.path("ca.crt"), "--cluster-signing-key-file=" + w.path("ca.key"),
		"--kube-api-qps=200", "--kube-api-burst=400"}, flags...)...)
}

// playKubelet runs kwok with what its project ships, and gives it two nodes.
func (w *environment) playKubelet(t *testing.T) {
	t.Helper()
	binary := build(t, "kwok", kwokModule+"/cmd/kwok", "kwok")
	dir := filepath.Join(moduleDir(t, "kwok", kwokModule), "kustomize")
	all := append(w.kustomize(t, filepath.Join(dir, "kwok")), w.kustomize(t, filepath.Join(dir, "stage", "fast"))...)
	if missing := w.install(t, all); len(missing) > 0 {
		t.Errorf("kwok ships kinds that the server does not have: %v", missing)
	}
	w.run(t, "kwok", binary, nil, "--kubeconfig="+w.kubeconfig(t, "kube-system", "kwok-controller"), "--config="+filepath.Join(dir, "kwok", "kwok.yaml"),
		"--node-ip=192.0.2.1", "--server-address=127.0.0.1:0")
	w.do(t, file(t, "kwok", "testdata", "nodes.yaml"), "apply", "-f", "-")
	for _, node := range []string{"node/one", "node/two"} {
		w.condition(t, node, "default", "Ready", "True")
	}
}

// restart ends the server and starts it again. The controllers keep running.
func (w *environment) restart(t *testing.T) {
	t.Helper()
	if err := w.server.Restart(w.ctx); err != nil {
		t.Fatal(err)
	}
}

// identity writes a kubeconfig with a client certificate for a user.
func (w *environment) identity(t *testing.T, user string) string {
	t.Helper()
	client, err := w.server.Client(user)
	if err != nil {
		t.Fatal(err)
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["espalier"] = &clientcmdapi.Cluster{Server: client.Host, CertificateAuthorityData: client.CAData}
	config.AuthInfos[user] = &clientcmdapi.AuthInfo{ClientCertificateData: client.CertData, ClientKeyData: client.KeyData}
	config.Contexts["default"] = &clientcmdapi.Context{Cluster: "espalier", AuthInfo: user}
	config.CurrentContext = "default"
	file := w.path(user + ".kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	return file
}

// tool returns the path of a program that make has built.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := launch.Tool(name)
	if err != nil {
		t.Fatal(err)
	}
	return path
}
