package customresource

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-dev/espalier/internal/object"
	"github.com/espalier-dev/espalier/server/catalog"
	"github.com/espalier-dev/espalier/server/storage/store"
)

// convertible refuses objects that the conversion rules of the CRD cannot convert to each version that clients use. A
// list fails if one of its objects does not convert: without the check, a user who may write in one namespace could
// keep all users from all lists in a version.
type convertible struct {
	convert store.ConvertFunc
	stored  string
	others  []string // versions that are served and not stored
}

// newConvertible returns nil if there is nothing to check.
func newConvertible(e *catalog.Entry, convert store.ConvertFunc) *convertible {
	c := &convertible{convert: convert, stored: e.StorageVersion}
	for i := range e.Versions {
		if v := &e.Versions[i]; v.Served && v.Name != e.StorageVersion {
			c.others = append(c.others, v.Name)
		}
	}
	if len(c.others) == 0 {
		return nil
	}
	return c
}

// check returns why an object cannot be converted, nil if it can. old is the object before an update: what could not be
// converted to a version before can still be changed, in the stored version, so that users can correct it or remove its
// finalizers.
func (c *convertible) check(ctx context.Context, o, old *object.Object) *field.Error {
	if c == nil {
		return nil
	}
	stored, err := c.convert(ctx, []*object.Object{o}, c.stored)
	if err != nil {
		return c.refuse(ctx, c.stored, err, o, old)
	}
	for _, version := range c.others {
		if _, err := c.convert(ctx, stored, version); err != nil {
			if refused := c.refuse(ctx, version, err, o, old); refused != nil {
				return refused
			}
		}
	}
	return nil
}

// refuse returns why an object is refused that cannot be converted to a version; nil if the one before it could not be
// converted to the same version.
func (c *convertible) refuse(ctx context.Context, version string, err error, o, old *object.Object) *field.Error {
	if old != nil && ctx.Err() == nil && c.fails(ctx, old, version) && ctx.Err() == nil {
		return nil
	}
	if ctx.Err() != nil {
		return field.InternalError(nil, ctx.Err())
	}
	return field.Invalid(field.NewPath("apiVersion"), o.APIVersion(),
		fmt.Sprintf("the object must convert to version %s by the rules of its CRD, otherwise lists in this version fail: %v", version, err))
}

// fails reports whether what is stored of an object cannot be converted to a version.
func (c *convertible) fails(ctx context.Context, o *object.Object, version string) bool {
	stored, err := c.convert(ctx, []*object.Object{o}, c.stored)
	if err == nil {
		_, err = c.convert(ctx, stored, version)
	}
	return err != nil
}
