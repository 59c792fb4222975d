// Package kubernetes pins kube-apiserver, kube-controller-manager, kube-scheduler and the conformance specs of Kubernetes:
// `make kube-apiserver`, `make kube-controller-manager` and `make e2e` build them. It is a module of its own because Kubernetes v1.37.1 needs the staging modules at v0.37.1.
//
// The build tag keeps the specs out of `go vet ./...` and `go test ./...`: they take fifteen minutes to build, and need a server.
package kubernetes
