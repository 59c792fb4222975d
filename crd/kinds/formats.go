package kinds

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // time zones are those of Kubernetes, on every machine

	"github.com/robfig/cron/v3"

	"k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"
)

// formats are the formats of strings. Each returns the texts of errors.
var formats = map[string]func(string) []string{
	"dns-subdomain":    validation.IsDNS1123Subdomain,
	"dns-label":        validation.IsDNS1123Label,
	"dns1035-label":    validation.IsDNS1035Label,
	"wildcard-dns":     validation.IsWildcardDNS1123Subdomain,
	"path-segment":     content.IsPathSegmentName,
	"qualified-name":   content.IsLabelKey,
	"label-key":        content.IsLabelKey,
	"label-value":      content.IsLabelValue,
	"port-name":        validation.IsValidPortName,
	"env-name":         validation.IsEnvVarName,
	"env-name-relaxed": validation.IsRelaxedEnvVarName,
	"config-map-key":   validation.IsConfigMapKey,
	"http-header":      validation.IsHTTPHeaderName,
	"percent":          validation.IsValidPercent,
	"node-name":        validation.IsDNS1123Subdomain,
	"condition-reason": metavalidation.IsValidConditionReason,
	"port-number": func(s string) []string {
		n, err := strconv.Atoi(s)
		if err != nil {
			n = -1
		}
		return validation.IsValidPortNum(n)
	},
	"port-number-or-name": func(s string) []string {
		if n, err := strconv.Atoi(s); err == nil {
			return validation.IsValidPortNum(n)
		}
		return validation.IsValidPortName(s)
	},
	"resource-name": resourceName,
	"system-ids": func(s string) []string {
		n, _ := strconv.ParseInt(s, 10, 64)
		return validation.IsValidUserID(n)
	},
	"group-ids": func(s string) []string {
		n, _ := strconv.ParseInt(s, 10, 64)
		return validation.IsValidGroupID(n)
	},
	"absolute-path": func(s string) []string {
		if path.IsAbs(s) {
			return nil
		}
		return []string{"must be an absolute path"}
	},
	"local-path": func(s string) []string {
		if path.IsAbs(s) {
			return []string{"must be a relative path"}
		}
		return noBacksteps(s)
	},
	"no-backsteps": noBacksteps,
	"projected-path": func(s string) []string {
		if path.IsAbs(s) {
			return []string{"must be a relative path"}
		}
		texts := noBacksteps(s)
		if strings.HasPrefix(s, "..") && !strings.HasPrefix(s, "../") {
			texts = append(texts, "must not start with '..'")
		}
		return texts
	},
	"driver-name": func(s string) []string { return validation.IsDNS1123Subdomain(strings.ToLower(s)) },
	"uuid": func(s string) []string {
		if uuid.MatchString(s) {
			return nil
		}
		return []string{"must be a lowercase UUID in the canonical form"}
	},
	"time-zone": timeZone,
	"cron": func(s string) []string {
		if strings.HasPrefix(s, "TZ=") || strings.HasPrefix(s, "CRON_TZ=") {
			s += " " // without a space, the parser panics
		}
		if _, err := cron.ParseStandard(s); err != nil {
			return []string{err.Error()}
		}
		return nil
	},
	"quantity": func(s string) []string {
		if _, err := parseQuantity(s); err != nil {
			return []string{err.Error()}
		}
		return nil
	},
	"uri": func(s string) []string {
		if _, err := url.Parse(s); err != nil {
			return []string{err.Error()}
		}
		return nil
	},
	"base64-ca": func(s string) []string {
		if block, _ := pem.Decode([]byte(s)); block == nil {
			return []string{"must be PEM-encoded certificates"}
		}
		return nil
	},
	"json-object": func(s string) []string {
		if err := json.Unmarshal([]byte(s), &map[string]any{}); err != nil {
			return []string{err.Error()}
		}
		return nil
	},
	"trust-anchors": trustAnchors,
	"certificates":  certificates,
	"pkcs10":        pkcs10,
	"duration": func(s string) []string {
		if _, err := time.ParseDuration(s); err != nil {
			return []string{err.Error()}
		}
		return nil
	},
	"non-negative-int-or-percent": nonNegative,
	"endpoint-ip":                 endpointIP,
	"ip-strict": func(s string) []string {
		var list []string
		for _, e := range validation.IsValidIP(nil, s) {
			list = append(list, e.Detail)
		}
		return list
	},
	"attribute-name":      attributeName,
	"attribute-full-name": attributeFullName,
	"pool-name":           poolName,
}

var uuid = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// noBacksteps complains about paths that lead out of their folder.
func noBacksteps(s string) []string {
	if slices.Contains(strings.Split(s, "/"), "..") {
		return []string{"must not contain '..'"}
	}
	return nil
}

// endpointIP complains about addresses that no traffic from outside the node reaches.
func endpointIP(s string) []string {
	ip := netutils.ParseIPSloppy(s)
	switch {
	case ip == nil:
		return []string{"must be a valid IP address"}
	case ip.IsUnspecified():
		return []string{fmt.Sprintf("may not be unspecified (%s)", s)}
	case ip.IsLoopback():
		return []string{"may not be in the loopback range (127.0.0.0/8, ::1/128)"}
	case ip.IsLinkLocalUnicast():
		return []string{"may not be in the link-local range (169.254.0.0/16, fe80::/10)"}
	case ip.IsLinkLocalMulticast():
		return []string{"may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"}
	}
	return nil
}

// standardResources are the names without a prefix that resources have, and whether
// containers can have them.
var standardResources = map[string]bool{
	"cpu": true, "memory": true, "ephemeral-storage": true,
	"requests.cpu": false, "requests.memory": false, "requests.ephemeral-storage": false,
	"limits.cpu": false, "limits.memory": false, "limits.ephemeral-storage": false,
	"pods": false, "resourcequotas": false, "services": false, "services.nodeports": false, "services.loadbalancers": false,
	"replicationcontrollers": false, "secrets": false, "configmaps": false, "persistentvolumeclaims": false,
	"storage": false, "requests.storage": false,
}

// resourceName complains about names of resources that a container cannot have.
func resourceName(s string) []string {
	texts := content.IsLabelKey(s)
	huge := strings.HasPrefix(s, "hugepages-")
	container, standard := standardResources[s]
	switch {
	case !strings.Contains(s, "/"):
		if len(texts) == 0 && !standard && !huge {
			texts = append(texts, "must be a standard resource type or fully qualified")
		}
		if !container && !huge {
			texts = append(texts, "must be a standard resource for containers")
		}
	case !strings.Contains(s, "kubernetes.io/"):
		if strings.HasPrefix(s, "requests.") || len(content.IsLabelKey("requests."+s)) > 0 {
			texts = append(texts, "doesn't follow extended resource name standard")
		}
	}
	return texts
}

// timeZone complains about names that are no time zone. "Local" differs by machine.
func timeZone(s string) []string {
	if s == "" {
		return []string{"timeZone must be nil or non-empty string"}
	}
	if strings.EqualFold(s, "Local") {
		return []string{"timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"}
	}
	if _, err := time.LoadLocation(s); err != nil {
		return []string{err.Error()}
	}
	return nil
}

// nonNegative is for numbers and percentages, such as maxSurge.
func nonNegative(s string) []string {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		if n < 0 {
			return []string{apivalidation.IsNegativeErrorMsg}
		}
		return nil
	}
	return validation.IsValidPercent(s)
}

// shapes are the formats whose errors are at several places, or of several types.
var shapes = map[string]func(value any, at *field.Path) field.ErrorList{
	"label-selector": func(value any, at *field.Path) field.ErrorList {
		var s metav1.LabelSelector
		if !into(value, &s) {
			return nil
		}
		return metavalidation.ValidateLabelSelector(&s, metavalidation.LabelSelectorValidationOptions{}, at)
	},
	"labels": func(value any, at *field.Path) field.ErrorList {
		return metavalidation.ValidateLabels(texts(value), at)
	},
	"annotations": func(value any, at *field.Path) field.ErrorList {
		return apivalidation.ValidateAnnotations(texts(value), at)
	},
	"object-meta": func(value any, at *field.Path) field.ErrorList {
		m, _ := value.(map[string]any)
		errs := metavalidation.ValidateLabels(texts(m["labels"]), at.Child("labels"))
		return append(errs, apivalidation.ValidateAnnotations(texts(m["annotations"]), at.Child("annotations"))...)
	},
	"conditions": func(value any, at *field.Path) field.ErrorList {
		var c []metav1.Condition
		if !into(value, &c) {
			return nil
		}
		return metavalidation.ValidateConditions(c, at)
	},
	"cidr-strict": ofString(validation.IsValidCIDR),
	"ip": ofString(func(at *field.Path, s string) field.ErrorList {
		return validation.IsValidIPForLegacyField(at, s, true, nil)
	}),
	"cidr": ofString(func(at *field.Path, s string) field.ErrorList {
		return validation.IsValidCIDRForLegacyField(at, s, true, nil)
	}),
	"interface-address":    ofString(validation.IsValidInterfaceAddress),
	"domain-prefixed-path": ofString(validation.IsDomainPrefixedPath),
	"domain-prefixed-key":  ofString(validation.IsDomainPrefixedKey),
	"fully-qualified-name": ofString(validation.IsFullyQualifiedName),
	"fqdn":                 ofString(validation.IsFullyQualifiedDomainName),
}

// ofString makes a shape of a function of strings.
func ofString(check func(*field.Path, string) field.ErrorList) func(any, *field.Path) field.ErrorList {
	return func(value any, at *field.Path) field.ErrorList {
		s, _ := value.(string)
		return check(at, s)
	}
}

// check returns the texts of a format for a string.
func check(format, s string) ([]string, error) {
	if f := formats[format]; f != nil {
		return f(s), nil
	}
	shape := shapes[format]
	if shape == nil {
		return nil, fmt.Errorf("there is no format %q", format)
	}
	var list []string
	for _, e := range shape(s, field.NewPath("x")) {
		list = append(list, e.Detail)
	}
	return list, nil
}

// texts are the strings of a map.
func texts(value any) map[string]string {
	m, _ := value.(map[string]any)
	out := make(map[string]string, len(m))
	for key, v := range m {
		s, _ := v.(string)
		out[key] = s
	}
	return out
}

// into converts a part of a tree to a Go type of apimachinery. It fails for trees of
// another form, which decoding has refused before.
func into(value, target any) bool {
	b, err := json.Marshal(value)
	return err == nil && json.Unmarshal(b, target) == nil
}
