// Package requestinfo reads the method and the URL of a request: verb, group,
// version, resource, subresource, namespace and name. Nothing else in the server
// reads the path of a request to a resource.
//
//	method + URL ──▶ Resolver ──▶ RequestInfo in the request's context
//	                                 ├──▶ authentication, flow control, audit
//	                                 ├──▶ authorization
//	                                 ├──▶ handlers: the endpoint is the one of exactly
//	                                 │    this group, version, resource and subresource
//	                                 └──▶ admission
//
// The grammar is k8s.io/apiserver's. Resolver differs where that accepts a path
// which can be read in two ways: see [Resolver]. [InScope] and [Check] say whether a
// request that was read makes sense for a resource; handlers call them after
// authorization, as kube-apiserver's routes do.
package requestinfo
