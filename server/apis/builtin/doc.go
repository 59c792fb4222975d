// Package builtin serves the resources that a server has without anybody
// defining them: namespaces, config maps, secrets, leases, roles and so on. Their
// objects are of the Go types of k8s.io/api.
//
//	Resource ──┬─▶ scheme: kinds, defaults, conversions
//	(one file  ├─▶ registry's store over server/storage/store: /registry/configmaps/…, protobuf
//	 each)     ├─▶ resource.Endpoint for the resource and for each subresource ◀── requests
//	           ├─▶ server/endpoints/discovery
//	           └─▶ server/endpoints/openapihandler
//
// A resource is a value of type [Resource]: names, rules, columns. One more is
// one more file, and a line in [Standard].
//
// # Invariants
//
// An object has the same Go type on its way from a request to etcd and back.
// The internal version that the library asks for is but another name of it. Only
// an alias converts: the same objects seen through another group.
//
// What is in etcd is what kube-apiserver would have there: the same keys, the
// same protobuf. JSON is read as well.
//
// A resource costs no goroutine until somebody lists or watches it.
package builtin
