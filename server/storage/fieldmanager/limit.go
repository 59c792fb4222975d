package fieldmanager

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/object"
)

// MaxFields is the most fields, members and items of lists together, that an
// object may have to be applied, or to have its fields managed.
//
// structured-merge-diff keeps the fields of a manager in a sorted slice and
// inserts them in the order in which a map or list happens to have them: the time
// grows with the square of their number. An apply of 10,000 fields takes 0.1 s
// of CPU, of 20,000 0.4 s, of 40,000 2.3 s, of 150,000 more than half a minute.
// An object of 20,000 fields with those of its managers has about 1 MB.
const MaxFields = 20_000

// maxDepths is the largest sum of the depths of all fields, which is that of the
// lengths of their paths: structured-merge-diff makes and compares each of them as
// a whole, so that 18,000 fields, two on each of 9000 levels, take 6 s of CPU with a
// sum of 81 million. As many fields as are allowed may be 25 levels deep, each.
const maxDepths = 25 * MaxFields

// size is what an object has of what is limited.
type size struct{ fields, depths int }

// add counts n fields at a depth.
func (s *size) add(n, depth int) {
	s.fields += n
	s.depths += n * depth
}

// tooMany is what the text of the error for an object with more begins with. The
// field manager passes the text on, not the error.
const tooMany = "server-side apply is limited to "

// checkFields returns an error for an object that is too large.
func checkFields(obj runtime.Object) error {
	var s size
	switch obj := obj.(type) {
	case *object.Object:
		s = count(obj.JSON())
	case *unstructured.Unstructured:
		s.countAny(obj.Object, 1)
	case interface{ Size() int }:
		// A field takes at least four bytes of protobuf, and is as deep as its type.
		if obj.Size() < 4*MaxFields {
			return nil
		}
		data, err := json.Marshal(obj)
		if err != nil {
			return nil // the field manager says so
		}
		s = count(data)
	}
	return s.check()
}

func (s size) check() error {
	switch {
	case s.fields > MaxFields:
		return fmt.Errorf(tooMany+"%d fields per object, this one has %d: use update, or a JSON or merge patch", MaxFields, s.fields)
	case s.depths > maxDepths:
		return fmt.Errorf(tooMany+"%d for the sum of the depths of all fields of an object, this one has %d: use update, or a JSON or merge patch", maxDepths, s.depths)
	}
	return nil
}

// CheckJSON refuses a body that is too large to be applied, as far as it is JSON:
// what is not takes more time to look at.
func CheckJSON(body []byte) error {
	if err := count(body).check(); err != nil {
		return apierrors.NewRequestEntityTooLargeError(err.Error())
	}
	return nil
}

// count counts the fields of JSON that may be too many. A comma or a bracket comes
// with one field, and a bracket with one level, at most: few of them need not be
// looked at, and ordinary objects below some 20 KB cost no more than that.
func count(data []byte) size {
	var s, of size
	levels := bytes.Count(data, []byte("{")) + bytes.Count(data, []byte("["))
	if n := levels + bytes.Count(data, []byte(",")); n <= MaxFields && n*levels <= maxDepths {
		return s
	}
	doc, err := jsondoc.Parse(data, jsondoc.Limits{})
	if err != nil {
		return s
	}
	defer doc.Release()
	s.countIn(doc, jsondoc.Root, 1)
	if metadata, ok := doc.Get(jsondoc.Root, "metadata"); ok {
		if managed, ok := doc.Get(metadata, "managedFields"); ok {
			of.countIn(doc, managed, 3)
		}
	}
	return size{s.fields - of.fields, s.depths - of.depths} // they are not managed themselves
}

// countIn counts the fields of a value, which are at a depth.
func (s *size) countIn(doc *jsondoc.Doc, at jsondoc.Value, depth int) {
	switch doc.Kind(at) {
	case jsondoc.Object:
		s.add(doc.Len(at), depth)
		for m := range doc.Members(at) {
			s.countIn(doc, m.Value, depth+1)
		}
	case jsondoc.Array:
		s.add(doc.Len(at), depth)
		for item, end := at+1, doc.Next(at); item < end; item = doc.Next(item) {
			s.countIn(doc, item, depth+1)
		}
	}
}

// countAny is countIn for what is decoded.
func (s *size) countAny(v any, depth int) {
	switch v := v.(type) {
	case map[string]any:
		s.add(len(v), depth)
		for _, e := range v {
			s.countAny(e, depth+1)
		}
	case []any:
		s.add(len(v), depth)
		for _, e := range v {
			s.countAny(e, depth+1)
		}
	}
}

// Limited is a converter of types that refuses objects with more than MaxFields.
// An apply of such an object fails; see [Updating] for other writes.
func Limited(inner managedfields.TypeConverter) managedfields.TypeConverter { return limited{inner} }

type limited struct{ managedfields.TypeConverter }

// ObjectToTyped implements managedfields.TypeConverter.
func (l limited) ObjectToTyped(obj runtime.Object, opts ...typed.ValidationOptions) (*typed.TypedValue, error) {
	if err := checkFields(obj); err != nil {
		return nil, err
	}
	return l.TypeConverter.ObjectToTyped(obj, opts...)
}

// Updating returns a storage for updates after which an object with more than
// MaxFields has no managed fields. The server has not tracked the owners of its fields:
// with the previous managed fields, the next apply would remove fields that another
// manager has set in between.
func Updating(s rest.Updater) rest.Updater { return updatingLarge{s} }

type updatingLarge struct{ rest.Updater }

// Update implements rest.Updater.
func (u updatingLarge) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, create rest.ValidateObjectFunc,
	update rest.ValidateObjectUpdateFunc, forceAllowCreate bool, options *metav1.UpdateOptions,
) (runtime.Object, bool, error) {
	return u.Updater.Update(ctx, name, rest.WrapUpdatedObjectInfo(info, unmanaged), create, update, forceAllowCreate, options)
}

// unmanaged removes the managed fields of large objects.
func unmanaged(_ context.Context, obj, old runtime.Object) (runtime.Object, error) {
	if checkFields(obj) == nil && checkFields(old) == nil {
		return obj, nil
	}
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	accessor.SetManagedFields(nil)
	return obj, nil
}

// Patching is [Updating] for patches. It says of an apply that was refused by
// [Limited] what clients understand: that it is too large.
func Patching(s rest.Patcher) rest.Patcher { return patching{s} }

type patching struct{ rest.Patcher }

// Update implements rest.Updater.
func (p patching) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, create rest.ValidateObjectFunc,
	update rest.ValidateObjectUpdateFunc, forceAllowCreate bool, options *metav1.UpdateOptions,
) (runtime.Object, bool, error) {
	obj, created, err := Updating(p.Patcher).Update(ctx, name, info, create, update, forceAllowCreate, options)
	if err != nil {
		if _, why, ok := strings.Cut(err.Error(), tooMany); ok {
			err = apierrors.NewRequestEntityTooLargeError(tooMany + why)
		}
	}
	return obj, created, err
}
