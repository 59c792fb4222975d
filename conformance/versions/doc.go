// Package versions finds out since which version of Kubernetes kinds and fields exist: it compares the Go types of the releases of
// k8s.io/api. The result is crd/offline/versions.json.
//
//	go test ./versions -update
package versions
