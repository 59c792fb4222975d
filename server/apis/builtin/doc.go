// Package builtin serves the resources that a server has without CRDs: namespaces,
// config maps, secrets, leases, roles and so on. Their objects are of the Go types of
// k8s.io/api.
//
//	Resource ──┬─▶ scheme: kinds, defaults, conversions
//	(one file  ├─▶ registry's store over server/storage/store: /registry/configmaps/…, protobuf
//	 each)     ├─▶ endpoints.Endpoint for the resource and for each subresource ◀── requests
//	           ├─▶ server/endpoints/discovery
//	           └─▶ server/endpoints/openapihandler
//
// A resource is a value of type [Resource]: names, strategy, columns. A new resource
// needs a new file, and a line in [Standard].
//
// # Invariants
//
// An object has the same Go type on its way from a request to etcd and back.
// The internal version that k8s.io/apiserver asks for is the same Go type under
// another name. Only an alias converts: it serves the same objects in another group.
//
// Objects are stored as kube-apiserver stores them: the same keys, the same protobuf.
// Stored JSON is read as well.
//
// A resource costs no goroutine until a client lists or watches it.
package builtin
