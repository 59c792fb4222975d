package customresourcedefinition

import (
	"context"
	"fmt"
	"path"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier/internal/object"
)

// AllowDeletion is the annotation of a CRD that may be deleted with all its
// instances, if its value is "true".
const AllowDeletion = "espalier.dev/allow-deletion"

// HasInstances is the type of the cause in the error for deleting a CRD that has
// instances.
const HasInstances metav1.CauseType = "HasInstances"

// guard keeps CRDs that have instances from being deleted by mistake: one
// request would delete them all, in all namespaces.
//
// The answer is 409 Conflict, and not 403 Forbidden: the state of the CRD prevents the deletion, not
// the rights of the user. The same request succeeds once the instances are deleted.
type guard struct {
	etcd   *clientv3.Client
	prefix string
}

// allows returns an error if the CRD has instances and no annotation that allows to delete them.
// The count is exact at the moment that etcd counts them; etcd walks its index for it, and reads no
// values. An instance that is created between the count and the deletion mark of the CRD is deleted
// with it.
func (g *guard) allows(ctx context.Context, o *object.Object) error {
	if g == nil || o.GetAnnotations()[AllowDeletion] == "true" {
		return nil
	}
	plural, group, _ := strings.Cut(o.GetName(), ".") // validation requires this name, also for CRDs that it would not accept today
	folder := path.Join("/", g.prefix, group, plural) + "/"
	found, err := g.etcd.Get(ctx, folder, clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		return fmt.Errorf("failed to count the instances of the CRD: %w", err)
	}
	if found.Count == 0 {
		return nil
	}
	return refusal(o.GetName(), found.Count)
}

// refusal returns the error: how many instances there are, and what to do.
func refusal(name string, count int64) error {
	verb, noun := "are", "instances"
	if count == 1 {
		verb, noun = "is", "instance"
	}
	err := apierrors.NewConflict(groupResource, name, fmt.Errorf(
		"there %s %d %s, which would be deleted with the CRD; delete them first (kubectl delete %s --all --all-namespaces), "+
			"or allow it (kubectl annotate crd %s %s=true) and try again", verb, count, noun, name, name, AllowDeletion))
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: HasInstances, Message: fmt.Sprintf("%d %s", count, noun)}}
	return err
}
