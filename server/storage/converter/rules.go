package converter

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/crd/conversion"
	"github.com/espalier-dev/espalier/internal/object"
)

// rulesOf returns the converter of a CRD with conversion rules, which take precedence over spec.conversion. If the
// rules are wrong, objects in their stored version can be read all the same: each conversion fails and says why.
func rulesOf(d *crd.CRD, r resource) (*Converter, error) {
	plan, found, err := conversion.Compile(d)
	if err != nil {
		return nil, err
	}
	if len(found) > 0 {
		err := fmt.Errorf("the conversion rules of CRD %s are invalid: %w; correct the annotation %s of the CRD", d.Name, found[0], conversion.Annotation)
		return &Converter{resource: r, translate: func(context.Context, []*object.Object, schema.GroupVersion) ([]*object.Object, error) {
			return nil, err
		}}, nil
	}
	return &Converter{resource: r, translate: rules{plan}.translate, rules: true}, nil
}

// rules is the strategy of CRDs with conversion rules.
type rules struct{ plan *conversion.Plan }

// convertedSpare is room for what a conversion adds to an object.
const convertedSpare = 256

func (r rules) translate(ctx context.Context, objs []*object.Object, target schema.GroupVersion) ([]*object.Object, error) {
	result := make([]*object.Object, len(objs))
	var from []byte
	for i, o := range objs {
		if empty(o) {
			// Conversion neither fills in nor checks anything: nothing stays nothing.
			renamed, err := rename(ctx, objs[i:i+1], target)
			if err != nil {
				return nil, err
			}
			result[i] = renamed[0]
			continue
		}
		if ctx.Err() != nil { // an object with CEL rules may take a second
			return nil, ctx.Err()
		}
		from = o.AppendJSON(from[:0])
		to, err := r.plan.Convert(make([]byte, 0, len(from)+convertedSpare), from, target.Version)
		if err != nil {
			return nil, err
		}
		if result[i], err = object.FromJSON(to); err != nil {
			return nil, err
		}
	}
	return result, nil
}
