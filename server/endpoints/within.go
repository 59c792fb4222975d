package endpoints

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// Within returns a context in which a store is asked for objects of a resource
// while a request for another one is answered: errors name what is asked for.
func Within(ctx context.Context, r schema.GroupResource, namespace string) context.Context {
	return request.WithRequestInfo(request.WithNamespace(ctx, namespace), &request.RequestInfo{APIGroup: r.Group, Resource: r.Resource})
}
