package crd

import (
	"bytes"
	"slices"

	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/syntax"
)

// The functions below compare as API servers do, after decoding: an empty list or
// map equals a missing one, and unknown keywords are ignored.

func equalValidations(a, b *validation) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.tree == b.tree || bytes.Equal(a.raw, b.raw) || equalSchemas(a.tree, b.tree)
}

func equalSubresources(a, b *Version) bool {
	if a.hasSubresource != b.hasSubresource || a.Status != b.Status || (a.Scale == nil) != (b.Scale == nil) {
		return false
	}
	return a.Scale == nil || a.Scale.SpecReplicasPath == b.Scale.SpecReplicasPath &&
		a.Scale.StatusReplicasPath == b.Scale.StatusReplicasPath && equalPointers(a.Scale.LabelSelectorPath, b.Scale.LabelSelectorPath)
}

func equalColumns(a, b Column) bool {
	a.at, b.at = 0, 0
	return a == b
}

func equalSelectables(a, b []SelectableField) bool {
	return slices.EqualFunc(a, b, func(a, b SelectableField) bool { return a.JSONPath == b.JSONPath })
}

func equalPointers[T comparable](a, b *T) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

func equalSchemas(a, b *syntax.Schema) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Type == b.Type && a.Format == b.Format && a.Description == b.Description && a.Pattern == b.Pattern &&
		a.Nullable == b.Nullable && a.ExclusiveMaximum == b.ExclusiveMaximum && a.ExclusiveMinimum == b.ExclusiveMinimum &&
		a.UniqueItems == b.UniqueItems && a.EmbeddedResource == b.EmbeddedResource && a.IntOrString == b.IntOrString &&
		equalPointers(a.Maximum, b.Maximum) && equalPointers(a.Minimum, b.Minimum) && equalPointers(a.MultipleOf, b.MultipleOf) &&
		equalPointers(a.MaxLength, b.MaxLength) && equalPointers(a.MinLength, b.MinLength) &&
		equalPointers(a.MaxItems, b.MaxItems) && equalPointers(a.MinItems, b.MinItems) &&
		equalPointers(a.MaxProperties, b.MaxProperties) && equalPointers(a.MinProperties, b.MinProperties) &&
		equalPointers(a.PreserveUnknownFields, b.PreserveUnknownFields) && equalPointers(a.ListType, b.ListType) && equalPointers(a.MapType, b.MapType) &&
		slices.Equal(a.Required, b.Required) && slices.Equal(a.ListMapKeys, b.ListMapKeys) &&
		equalJSON(a.Default, b.Default) && slices.EqualFunc(a.Enum, b.Enum, func(x, y syntax.JSON) bool { return equalJSON(&x, &y) }) &&
		slices.EqualFunc(a.Validations, b.Validations, equalRules) &&
		equalRare(a.Rare(), b.Rare()) && equalItems(a.Items, b.Items) && equalOrBool(a.AdditionalProperties, b.AdditionalProperties) &&
		slices.EqualFunc(a.AllOf, b.AllOf, equalSchemas) && slices.EqualFunc(a.AnyOf, b.AnyOf, equalSchemas) &&
		slices.EqualFunc(a.OneOf, b.OneOf, equalSchemas) && equalSchemas(a.Not, b.Not) &&
		slices.EqualFunc(a.Properties, b.Properties, equalProperties)
}

func equalProperties(a, b syntax.Property) bool {
	return a.Name == b.Name && equalSchemas(a.Schema, b.Schema)
}

func equalRules(a, b syntax.Rule) bool {
	return a.Rule == b.Rule && a.Message == b.Message && a.MessageExpression == b.MessageExpression && a.FieldPath == b.FieldPath &&
		equalPointers(a.Reason, b.Reason) && equalPointers(a.OptionalOldSelf, b.OptionalOldSelf)
}

func equalRare(a, b *syntax.Rare) bool {
	return a == b || a.ID == b.ID && a.SchemaURL == b.SchemaURL && a.Title == b.Title && equalPointers(a.Ref, b.Ref) &&
		equalPointers(a.ExternalDocs, b.ExternalDocs) && equalJSON(a.Example, b.Example) &&
		equalOrBool(a.AdditionalItems, b.AdditionalItems) &&
		slices.EqualFunc(a.PatternProperties, b.PatternProperties, equalProperties) &&
		slices.EqualFunc(a.Definitions, b.Definitions, equalProperties) &&
		slices.EqualFunc(a.Dependencies, b.Dependencies, func(x, y syntax.Dependency) bool {
			return x.Name == y.Name && equalSchemas(x.Schema, y.Schema) && slices.Equal(x.Properties, y.Properties)
		})
}

func equalItems(a, b *syntax.Items) bool {
	if a == nil || b == nil {
		return a == b
	}
	return equalSchemas(a.Schema, b.Schema) && slices.EqualFunc(a.Tuple, b.Tuple, equalSchemas)
}

func equalOrBool(a, b *syntax.SchemaOrBool) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Allows == b.Allows && equalSchemas(a.Schema, b.Schema)
}

// equalJSON compares values. An integer is not equal to a float: 1 is not 1.0.
func equalJSON(a, b *syntax.JSON) bool {
	if a == nil || b == nil {
		return a == b
	}
	if bytes.Equal(a.Written, b.Written) {
		return true
	}
	x, err := jsondoc.Parse(a.Written, jsondoc.Limits{})
	if err != nil {
		return false
	}
	defer x.Release()
	y, err := jsondoc.Parse(b.Written, jsondoc.Limits{})
	if err != nil {
		return false
	}
	defer y.Release()
	return equalValues(x, y, jsondoc.Root, jsondoc.Root)
}

func equalValues(x, y *jsondoc.Doc, a, b jsondoc.Value) bool {
	if x.Kind(a) != y.Kind(b) {
		return false
	}
	switch x.Kind(a) {
	case jsondoc.Number:
		m, whole := x.Int64(a)
		n, wholeToo := y.Int64(b)
		if whole || wholeToo {
			return whole == wholeToo && m == n
		}
		return x.Float64(a) == y.Float64(b)
	case jsondoc.String:
		return x.Text(a) == y.Text(b)
	case jsondoc.Array:
		if x.Len(a) != y.Len(b) {
			return false
		}
		other := b + 1
		for _, item := range x.Items(a) {
			if !equalValues(x, y, item, other) {
				return false
			}
			other = y.Next(other)
		}
	case jsondoc.Object:
		p, q := x.SortedKeys(a), y.SortedKeys(b)
		defer p.Release()
		defer q.Release()
		if p.Len() != q.Len() {
			return false
		}
		for i := range p.Len() {
			k, _ := p.At(i)
			l, _ := q.At(i)
			if !bytes.Equal(x.Key(k), y.Key(l)) || !equalValues(x, y, k+1, l+1) {
				return false
			}
		}
	}
	return true
}
