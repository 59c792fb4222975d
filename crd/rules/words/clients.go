package words

import (
	"net/url"
	"strconv"
	"strings"

	dns "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// URL complains about the URL of a webhook.
func URL(at *field.Path, text string) field.ErrorList {
	const form = "; desired format: https://host[/path]"
	u, err := url.Parse(text)
	if err != nil {
		return field.ErrorList{field.Required(at, "url must be a valid URL: "+err.Error()+form)}
	}
	var errs field.ErrorList
	if u.Scheme != "https" {
		errs = append(errs, field.Invalid(at, u.Scheme, "'https' is the only allowed URL scheme"+form))
	}
	if u.Host == "" {
		errs = append(errs, field.Invalid(at, u.Host, "host must be specified"+form))
	}
	if u.User != nil {
		errs = append(errs, field.Invalid(at, u.User.String(), "user information is not permitted in the URL"))
	}
	if u.Fragment != "" {
		errs = append(errs, field.Invalid(at, u.Fragment, "fragments are not permitted in the URL"))
	}
	if u.RawQuery != "" {
		errs = append(errs, field.Invalid(at, u.RawQuery, "query parameters are not permitted in the URL"))
	}
	return errs
}

// Service complains about the reference of a webhook to a Service.
func Service(at *field.Path, namespace, name string, path *string, port int32) field.ErrorList {
	var errs field.ErrorList
	// Servers mistake the one for the other.
	if namespace == "" {
		errs = append(errs, field.Required(at.Child("name"), ""))
	}
	if name == "" {
		errs = append(errs, field.Required(at.Child("namespace"), ""))
	}
	if wrong := dns.IsValidPortNum(int(port)); len(wrong) > 0 {
		errs = append(errs, field.Invalid(at.Child("port"), port, "port is not valid: "+strings.Join(wrong, ", ")))
	}
	if path == nil {
		return errs
	}
	return append(errs, servicePath(at.Child("path"), *path)...)
}

func servicePath(at *field.Path, path string) field.ErrorList {
	switch path {
	case "", "/":
		return nil
	case "//":
		return field.ErrorList{field.Invalid(at, path, "segment[0] may not be empty")}
	}
	var errs field.ErrorList
	if path[0] != '/' {
		errs = append(errs, field.Invalid(at, path, "must start with a '/'"))
	}
	for i, step := range strings.Split(strings.TrimSuffix(path[1:], "/"), "/") {
		if step == "" {
			errs = append(errs, field.Invalid(at, path, "segment["+strconv.Itoa(i)+"] may not be empty"))
			continue
		}
		for _, problem := range dns.IsDNS1123Subdomain(step) {
			errs = append(errs, field.Invalid(at, path, "segment["+strconv.Itoa(i)+"]: "+problem))
		}
	}
	return errs
}
