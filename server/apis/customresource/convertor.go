package customresource

import (
	"context"
	"encoding/json"
	"fmt"

	autoscaling "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/internal/object"
	"github.com/espalier-dev/espalier/server/storage/store"
)

// convertor implements runtime.ObjectConvertor for the handlers, admission and
// the field manager of one version. Handlers need no conversion for requests: the
// store converts objects.
type convertor struct {
	decoder   *Decoder
	selection *selection
	convert   store.ConvertFunc
}

// Convert implements runtime.ObjectConvertor: in becomes what out says it is.
func (c *convertor) Convert(in, out, _ any) error {
	from, ok := in.(*object.Object)
	if !ok {
		return fmt.Errorf("an object of type %T cannot be converted", in)
	}
	to, ok := out.(*object.Object)
	if !ok {
		return fmt.Errorf("an object cannot be converted to type %T", out)
	}
	converted, err := c.toVersion(from, to.GroupVersionKind().GroupVersion())
	if err != nil {
		return err
	}
	*to = *converted.DeepCopy()
	return nil
}

// ConvertToVersion implements runtime.ObjectConvertor. Lists, and what is no
// custom resource, are in their version already; scales that server-side apply
// has merged become such.
func (c *convertor) ConvertToVersion(in runtime.Object, target runtime.GroupVersioner) (runtime.Object, error) {
	o, ok := in.(*object.Object)
	if !ok {
		return in, nil
	}
	kind := o.GroupVersionKind()
	if kind == scaleKind {
		scale := &autoscaling.Scale{}
		return scale, json.Unmarshal(o.JSON(), scale)
	}
	wanted, ok := target.KindForGroupVersionKinds([]schema.GroupVersionKind{kind})
	if !ok {
		return nil, fmt.Errorf("%v is not suitable for converting to %q", kind, target)
	}
	return c.toVersion(o, wanted.GroupVersion())
}

// toVersion returns o itself if it is in the version.
func (c *convertor) toVersion(o *object.Object, wanted schema.GroupVersion) (*object.Object, error) {
	if wanted.Empty() || o.APIVersion() == wanted.String() {
		return o, nil
	}
	if wanted.Group != c.decoder.kind.Group {
		return nil, fmt.Errorf("%s cannot be converted to %s", o.APIVersion(), wanted)
	}
	converted, err := c.convert(context.Background(), []*object.Object{o}, wanted.Version)
	if err != nil {
		return nil, err
	}
	return converted[0], nil
}

// ConvertFieldLabel implements runtime.ObjectConvertor.
func (c *convertor) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return c.selection.term(label, value)
}

// converterOf returns the function that converts between the versions of a CRD, and whether it does so by rules of the
// CRD. A CRD with a single version has nothing to convert.
func (s *Server) converterOf(d *crd.CRD, decoder *Decoder) (convert store.ConvertFunc, rules bool, err error) {
	if len(d.Versions) == 1 {
		return unconverted, false, nil
	}
	c, err := s.options.Conversion.For(d, decoder.converted)
	if err != nil {
		return nil, false, err
	}
	return c.Convert, c.Rules(), nil
}

// unconverted fails: a CRD with one version is not asked for another.
func unconverted(_ context.Context, objs []*object.Object, version string) ([]*object.Object, error) {
	return nil, fmt.Errorf("%s cannot be converted to version %q", objs[0].APIVersion(), version)
}

// converted normalizes an object that a converter has returned.
func (f *Decoder) converted(o *object.Object) (*object.Object, error) {
	s := f.currentFor(o)
	if s == nil {
		return nil, fmt.Errorf("there is no version %q", o.APIVersion())
	}
	s, err := s.compiled()
	if err != nil {
		return nil, err
	}
	out, err := s.DecodeConverted(o)
	if err != nil {
		return nil, err
	}
	out.SetStamp(s)
	return out, nil
}
