package oracle

import (
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/util/compatibility"
	basecompatibility "k8s.io/component-base/compatibility"
)

// CompileValues builds what the reference validates objects with if their CRD preserves unknown fields: the schema need
// not be structural, and there is no structural schema if it cannot be one.
func CompileValues(schemaJSON []byte) (s *Schema, err error) {
	defer func() {
		if p := recover(); p != nil {
			s, err = nil, fmt.Errorf("panic: %v", p)
		}
	}()
	internal, err := Internal(schemaJSON)
	if err != nil {
		return nil, err
	}
	s = &Schema{internal: internal}
	if structural, err := schema.NewStructural(internal); err == nil {
		s.structural = structural
	}
	return s, s.Prepare()
}

// Structural reports whether there is a structural schema.
func (s *Schema) Structural() bool { return s.structural != nil }

// SetCompatibility sets the compatibility version of the reference in this process, such as "1.31", and returns a
// function that sets the former one again. Nothing else may ask the reference meanwhile.
func SetCompatibility(v string) (func(), error) {
	parsed, err := version.ParseMajorMinor(v)
	if err != nil {
		return nil, err
	}
	effective, ok := compatibility.DefaultComponentGlobalsRegistry.EffectiveVersionFor(basecompatibility.DefaultKubeComponent).(basecompatibility.MutableEffectiveVersion)
	if !ok {
		return nil, fmt.Errorf("the version of the reference cannot be set")
	}
	former := effective.MinCompatibilityVersion()
	effective.SetMinCompatibilityVersion(parsed)
	return func() { effective.SetMinCompatibilityVersion(former) }, nil
}
