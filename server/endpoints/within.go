package endpoints

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// Within returns a context for reading objects of one resource during a request for
// another one: errors name the resource that is read.
func Within(ctx context.Context, r schema.GroupResource, namespace string) context.Context {
	return request.WithRequestInfo(request.WithNamespace(ctx, namespace), &request.RequestInfo{APIGroup: r.Group, Resource: r.Resource})
}
