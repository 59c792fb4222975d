package kinds

import (
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/api/validation"
	words "k8s.io/apimachinery/pkg/util/validation"
)

// nameFormats are the formats of names, as API servers ask for them.
var nameFormats = map[string]func(name string, prefix bool) []string{
	"dns-subdomain": validation.NameIsDNSSubdomain,
	"dns-label":     validation.NameIsDNSLabel,
	"dns1035-label": validation.NameIsDNS1035Label,
	"path-segment":  PathSegmentName,
	"ip-strict":     addressName,
	"any":           func(string, bool) []string { return nil },
}

// NameFormat returns the function that validates names of the kind, or prefixes of them.
func (k *Kind) NameFormat() func(name string, prefix bool) []string {
	format := nameFormats[k.Name]
	if k.GenerateName != "never" {
		return format
	}
	return func(name string, prefix bool) []string {
		if prefix {
			return nil
		}
		return format(name, false)
	}
}

// PathSegmentName is the rule for names that need only fit into a URL.
func PathSegmentName(name string, prefix bool) []string {
	if prefix {
		return content.IsPathSegmentPrefix(name)
	}
	return content.IsPathSegmentName(name)
}

// addressName validates names that are IP addresses in the canonical form.
func addressName(name string, _ bool) []string {
	var list []string
	for _, e := range words.IsValidIP(nil, name) {
		list = append(list, e.Detail)
	}
	return list
}
