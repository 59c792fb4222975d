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

// AllowDeletion is the annotation of a definition that may be deleted with all its
// instances, if its value is "true".
const AllowDeletion = "espalier.dev/allow-deletion"

// HasInstances is the type of the cause in the answer to who wants to delete a
// definition that has instances.
const HasInstances metav1.CauseType = "HasInstances"

// guard keeps definitions that have instances from being deleted by mistake: one
// request would delete them all, in all namespaces.
//
// The answer is 409 Conflict, and not 403 Forbidden: it is the state that is in the way, not who
// asks, and the same request succeeds once the instances are gone.
type guard struct {
	etcd   *clientv3.Client
	prefix string
}

// allows returns an error if the definition has instances and does not say that
// they may go. Their number is exact at the moment that etcd counts them, however many they
// are; etcd walks its index for it, and reads no values. An instance that is created between
// that moment and the mark on the definition goes with it.
func (g *guard) allows(ctx context.Context, o *object.Object) error {
	if g == nil || o.GetAnnotations()[AllowDeletion] == "true" {
		return nil
	}
	plural, group, _ := strings.Cut(o.GetName(), ".") // validation sees to that, also for definitions that it would not accept today
	folder := path.Join("/", g.prefix, group, plural) + "/"
	found, err := g.etcd.Get(ctx, folder, clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		return fmt.Errorf("counting the instances of the definition: %w", err)
	}
	if found.Count == 0 {
		return nil
	}
	return refusal(o.GetName(), found.Count)
}

// refusal says what is in the way, and what to do.
func refusal(name string, count int64) error {
	verb, noun := "are", "instances"
	if count == 1 {
		verb, noun = "is", "instance"
	}
	err := apierrors.NewConflict(groupResource, name, fmt.Errorf(
		"there %s %d %s, which would be deleted with the definition; delete them first (kubectl delete %s --all --all-namespaces), "+
			"or allow it (kubectl annotate crd %s %s=true) and try again", verb, count, noun, name, name, AllowDeletion))
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: HasInstances, Message: fmt.Sprintf("%d %s", count, noun)}}
	return err
}
