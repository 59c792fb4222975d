// Package kubernetes pins kube-apiserver, against which the server is compared:
// `make kube-apiserver` builds it. It is a module of its own because Kubernetes
// v1.37.1 needs the staging modules at v0.37.1.
package kubernetes
