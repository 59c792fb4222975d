package converter

import (
	"errors"
	"fmt"
	"maps"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/object"
)

// read takes the converted objects out of the answer to a review.
func read(answer []byte, version string, id types.UID, target schema.GroupVersion, objs []*object.Object) ([]*object.Object, problem) {
	doc, err := jsondoc.Parse(answer, jsondoc.Limits{})
	if err != nil {
		return nil, problem{callFailed, fmt.Errorf("couldn't get version/kind; json parse error: %w", err)}
	}
	defer doc.Release()
	if doc.Kind(jsondoc.Root) != jsondoc.Object {
		return nil, problem{callFailed, fmt.Errorf("couldn't get version/kind; json parse error: %s is not an object", doc.Kind(jsondoc.Root))}
	}
	a := &reader{doc: doc}
	list, err := a.convertedObjects(version, id)
	if err != nil {
		return nil, problem{malformedResponse, err}
	}
	if n := a.items(list); n != len(objs) {
		return nil, problem{partialResponse, fmt.Errorf("%d objects, expected %d", n, len(objs))}
	}
	result := make([]*object.Object, len(objs))
	for i, v := range a.doc.Items(list) {
		converted, at, err := a.object(v, target, objs[i])
		if err != nil {
			return nil, problem{invalidObject, faulty(at, i, len(objs), err)}
		}
		result[i] = converted
	}
	return result, problem{}
}

// stage is how far the checks of a converted object have come.
type stage int

const (
	decoding stage = iota
	identifying
	comparing
	restoring
)

// faulty says what is wrong with a converted object. Of a single one it says it
// differently, as Kubernetes does.
func faulty(at stage, i, of int, err error) error {
	switch {
	case of > 1 && at == restoring:
		return fmt.Errorf("invalid metadata in object at index %d: %w", i, err)
	case of > 1:
		return fmt.Errorf("invalid converted object at index %d: %w", i, err)
	case at == identifying:
		return fmt.Errorf("invalid object at index 0: %w", err)
	case at == restoring:
		return fmt.Errorf("invalid metadata: %w", err)
	default:
		return fmt.Errorf("invalid object: %w", err)
	}
}

// reader reads the answer of a webhook. Values are looked up by their exact names;
// what has the wrong type counts as left out where that is an error anyway.
type reader struct {
	doc *jsondoc.Doc
}

// member returns a member of an object, or false if there is none or it is null.
func (a *reader) member(v jsondoc.Value, name string) (jsondoc.Value, bool) {
	if a.doc.Kind(v) != jsondoc.Object {
		return 0, false
	}
	m, ok := a.doc.Get(v, name)
	return m, ok && a.doc.Kind(m) != jsondoc.Null
}

// text returns the string that is a member of an object, or "".
func (a *reader) text(v jsondoc.Value, name string) string {
	m, ok := a.member(v, name)
	if !ok || a.doc.Kind(m) != jsondoc.String {
		return ""
	}
	return a.doc.Text(m)
}

func (a *reader) items(list jsondoc.Value) int {
	if list == jsondoc.Root || a.doc.Kind(list) != jsondoc.Array {
		return 0
	}
	return a.doc.Len(list)
}

// convertedObjects checks the frame and returns the list, or the root if there is none.
func (a *reader) convertedObjects(version string, id types.UID) (jsondoc.Value, error) {
	if version == "v1" { // v1beta1 has never checked whose answer it is
		expected := schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "ConversionReview"}
		if got := schema.FromAPIVersionAndKind(a.text(jsondoc.Root, "apiVersion"), a.text(jsondoc.Root, "kind")); got != expected {
			return 0, fmt.Errorf("expected webhook response of %v, got %v", expected, got)
		}
	}
	response, ok := a.member(jsondoc.Root, "response")
	if !ok {
		return 0, errors.New("no response provided")
	}
	if got := a.text(response, "uid"); version == "v1" && got != string(id) {
		return 0, fmt.Errorf("expected response.uid=%q, got %q", id, got)
	}
	result, _ := a.member(response, "result")
	if result == jsondoc.Root {
		return 0, errors.New("response.result.status was '', not 'Success'")
	}
	if status := a.text(result, "status"); status != "Success" {
		if message := a.text(result, "message"); message != "" {
			return 0, errors.New(message)
		}
		return 0, fmt.Errorf("response.result.status was '%s', not 'Success'", status)
	}
	list, _ := a.member(response, "convertedObjects")
	return list, nil
}

// object checks a converted object against the one it was made of, and returns it
// with that one's metadata; or says what was being checked when it failed.
func (a *reader) object(v jsondoc.Value, target schema.GroupVersion, original *object.Object) (*object.Object, stage, error) {
	if a.doc.Kind(v) != jsondoc.Object {
		return nil, decoding, fmt.Errorf("json: cannot unmarshal %s into Go value of type map[string]interface {}", a.doc.Kind(v))
	}
	kind := a.text(v, "kind")
	if kind == "" {
		return nil, decoding, errors.New("Object 'Kind' is missing") //nolint:staticcheck,revive // the words of Kubernetes
	}
	got, err := schema.ParseGroupVersion(a.text(v, "apiVersion"))
	if err != nil {
		return nil, decoding, err
	}
	if got != target {
		return nil, identifying, fmt.Errorf("invalid groupVersion (expected %v, received %v)", target, got)
	}
	if kind != original.Kind() {
		return nil, identifying, fmt.Errorf("invalid kind (expected %v, received %v)", original.Kind(), kind)
	}
	if err := a.identical(v, original); err != nil {
		return nil, comparing, err
	}
	o, err := a.restored(v, original)
	return o, restoring, err
}

// identical checks that it is still the same object.
func (a *reader) identical(v jsondoc.Value, original *object.Object) error {
	var name, namespace, uid string
	if metadata, ok := a.member(v, "metadata"); ok {
		name, namespace, uid = a.text(metadata, "name"), a.text(metadata, "namespace"), a.text(metadata, "uid")
	}
	if must := original.GetName(); must != name {
		return fmt.Errorf("must have the same name: %v != %v", must, name)
	}
	if must := original.GetNamespace(); must != namespace {
		return fmt.Errorf("must have the same namespace: %v != %v", must, namespace)
	}
	if must := original.GetUID(); must != types.UID(uid) {
		return fmt.Errorf("must have the same UID: %v != %v", must, uid)
	}
	return nil
}

// restored returns the converted object with the metadata of the original, except
// for labels and annotations.
func (a *reader) restored(v jsondoc.Value, original *object.Object) (*object.Object, error) {
	metadata, ok := a.doc.Get(v, "metadata")
	if !ok {
		return nil, errors.New("missing metadata in converted object")
	}
	if a.doc.Kind(metadata) != jsondoc.Object {
		return nil, fmt.Errorf("invalid metadata of type %T in converted object", a.doc.Any(metadata))
	}
	labels, err := a.strings(metadata, "labels", original.GetLabels())
	if err != nil {
		return nil, err
	}
	annotations, err := a.strings(metadata, "annotations", original.GetAnnotations())
	if err != nil {
		return nil, err
	}
	o, err := object.FromJSON(a.withMetadata(v, original.Lookup("metadata")))
	if err != nil {
		return nil, err
	}
	if !maps.Equal(labels, original.GetLabels()) {
		o.SetLabels(labels)
	}
	if !maps.Equal(annotations, original.GetAnnotations()) {
		o.SetAnnotations(annotations)
	}
	return o, nil
}

// withMetadata returns the canonical JSON of v with other metadata, which are canonical.
func (a *reader) withMetadata(v jsondoc.Value, metadata []byte) []byte {
	if metadata == nil {
		metadata = []byte("{}")
	}
	keys := a.doc.SortedKeys(v)
	defer keys.Release()
	dst := make([]byte, 0, a.doc.End(v)-a.doc.Offset(v)+len(metadata))
	for i := range keys.Len() {
		if i == 0 {
			dst = append(dst, '{')
		} else {
			dst = append(dst, ',')
		}
		k, _ := keys.At(i)
		name := a.doc.Key(k)
		dst = append(jsondoc.AppendString(dst, name), ':')
		if string(name) == "metadata" {
			dst = append(dst, metadata...)
		} else {
			dst = a.doc.AppendCanonical(dst, k+1) // a value follows its key
		}
	}
	return append(dst, '}')
}

// strings reads labels or annotations. They are checked if they are not as before.
func (a *reader) strings(metadata jsondoc.Value, name string, before map[string]string) (map[string]string, error) {
	v, ok := a.member(metadata, name)
	if !ok {
		return nil, nil
	}
	if a.doc.Kind(v) != jsondoc.Object {
		return nil, fmt.Errorf("invalid metadata.%s of type %T in converted object", name, a.doc.Any(v))
	}
	result := make(map[string]string, a.doc.Len(v))
	for m := range a.doc.Members(v) {
		key := a.doc.Text(m.Key)
		if a.doc.Kind(m.Value) != jsondoc.String {
			return nil, fmt.Errorf("metadata.%s[%s] must be a string, but is %T in converted object", name, key, a.doc.Any(m.Value))
		}
		result[key] = a.doc.Text(m.Value)
	}
	if maps.Equal(result, before) {
		return result, nil
	}
	if name == "labels" {
		return result, metav1validation.ValidateLabels(result, field.NewPath("metadata", "labels")).ToAggregate()
	}
	return result, apivalidation.ValidateAnnotations(result, field.NewPath("metadata", "annotation")).ToAggregate()
}
