package kinds

import (
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/ext"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/version"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// deviceLanguage is what the expressions of device selectors are written in: they are
// about one device.
var deviceLanguage = sync.OnceValue(func() *cel.Env {
	member := func(name string, t *apiservercel.DeclType) *apiservercel.DeclField {
		return apiservercel.NewDeclField(name, t, true, nil, nil)
	}
	mapOf := func(values *apiservercel.DeclType) *apiservercel.DeclType {
		return apiservercel.NewMapType(apiservercel.StringType, values, 32)
	}
	device := apiservercel.NewObjectType("kubernetes.DRADevice", map[string]*apiservercel.DeclField{
		"driver":                   member("driver", apiservercel.StringType),
		"attributes":               member("attributes", mapOf(mapOf(apiservercel.AnyType))),
		"capacity":                 member("capacity", mapOf(mapOf(apiservercel.QuantityDeclType))),
		"allowMultipleAllocations": member("allowMultipleAllocations", apiservercel.BoolType),
	})
	set, err := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0),
		EnvOptions:        []cel.EnvOption{ext.Bindings(ext.BindingsVersion(0)), cel.Variable("device", device.CelType())},
		DeclTypes:         []*apiservercel.DeclType{device},
	})
	if err != nil {
		panic(fmt.Sprintf("kinds: making the CEL environment of devices failed: %v", err))
	}
	return set.StoredExpressionsEnv()
})

// checkDevice complains about an expression of a device selector.
func checkDevice(v ref.Val) ref.Val {
	var texts []string
	ast, issues := deviceLanguage().Compile(string(v.(types.String)))
	if err := issues.Err(); err != nil {
		texts = []string{"compilation failed: " + issues.String()}
	} else if t := ast.OutputType(); !t.IsExactType(cel.BoolType) && !t.IsExactType(cel.AnyType) && !t.IsExactType(cel.DynType) {
		texts = []string{fmt.Sprintf("must evaluate to bool or the unknown type, not %v", t)}
	}
	return types.NewStringList(types.DefaultTypeAdapter, texts)
}

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

const identifierText = "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters or '_' " +
	"(e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is '[A-Za-z_][A-Za-z0-9_]*')"

// attributeName complains about a name of an attribute or capacity of a device: an
// identifier, with or without a domain.
func attributeName(s string) []string {
	parts := strings.Split(s, "/")
	if len(parts) > 2 {
		return nil // Kubernetes looks no closer
	}
	var texts []string
	name := parts[len(parts)-1]
	if len(parts) == 2 {
		switch domain := parts[0]; {
		case domain == "":
			texts = append(texts, "the domain must not be empty")
		case len(domain) > 63:
			texts = append(texts, "may not be more than 63 bytes")
		default:
			texts = append(texts, validation.IsDNS1123Subdomain(strings.ToLower(domain))...)
		}
		if name == "" {
			return append(texts, "the name must not be empty")
		}
	}
	if len(name) > 32 {
		texts = append(texts, "may not be more than 32 bytes")
	}
	if !identifier.MatchString(name) {
		texts = append(texts, identifierText)
	}
	return texts
}

// attributeFullName is as attributeName, with a domain.
func attributeFullName(s string) []string {
	domain, name, ok := strings.Cut(s, "/")
	if !ok || strings.Contains(name, "/") {
		texts := attributeName(s)
		if !ok {
			texts = append(texts, "a fully qualified name must be a domain and a name separated by a slash")
		}
		return texts
	}
	// Unlike the names of attributes in slices, the domain must be in lower case.
	var texts []string
	switch {
	case domain == "":
		texts = append(texts, "prefix must not be empty")
	case len(domain) > 63:
		texts = append(texts, "may not be more than 63 bytes")
	default:
		for _, text := range validation.IsDNS1123Subdomain(domain) {
			texts = append(texts, "prefix: "+text)
		}
	}
	if name == "" {
		return append(texts, "name must not be empty")
	}
	return append(texts, attributeName(name)...)
}

// poolName complains about a name of a pool of devices: subdomains with slashes
// between them.
func poolName(s string) []string {
	var texts []string
	if len(s) > 253 {
		texts = append(texts, "may not be more than 253 bytes")
	}
	for part := range strings.SplitSeq(s, "/") {
		if list := validation.IsDNS1123Subdomain(part); len(list) > 0 {
			return append(texts, list...)
		}
	}
	return texts
}
