package builtin

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// secrets are the secrets. Those of type kubernetes.io/service-account-token are
// accepted like any other: this server does not add tokens to them, which would never
// expire. Clients get tokens that expire from the subresource token of service accounts.
func secrets() Resource {
	r := Resource{
		Version: "v1", Plural: "secrets", Singular: "secret", Kind: "Secret", Namespaced: true,
		New:     empty[corev1.Secret],
		NewList: empty[corev1.SecretList],
		Strategy: Strategy{
			QualifiedFinalizers: true, GenerateNameOnUpdate: true,
			Name:          apivalidation.NameIsDNSSubdomain,
			Default:       defaults(defaultSecret),
			Warn:          warnOfSecret,
			Unconditional: true,
		},
		Columns: []metav1.TableColumnDefinition{
			nameColumn,
			{Name: "Type", Type: "string", Description: corev1.Secret{}.SwaggerDoc()["type"]},
			{Name: "Data", Type: "string", Description: corev1.Secret{}.SwaggerDoc()["data"]},
			ageColumn,
		},
		Row: row(func(o *corev1.Secret) []any {
			return []any{o.Name, string(o.Type), int64(len(o.Data)), created(o)}
		}),
		Fields: func(obj runtime.Object) fields.Set { return fields.Set{"type": string(obj.(*corev1.Secret).Type)} },
	}
	r.Strategy.Validate, r.Strategy.ValidateUpdate = compared(validateSecret)
	return r
}

// defaultSecret merges stringData into data. stringData is never stored and never
// returned.
func defaultSecret(o *corev1.Secret) {
	if o.Type == "" {
		o.Type = corev1.SecretTypeOpaque
	}
	if len(o.StringData) > 0 && o.Data == nil {
		o.Data = make(map[string][]byte, len(o.StringData))
	}
	for key, value := range o.StringData {
		o.Data[key] = []byte(value)
	}
	o.StringData = nil
}

func validateSecret(o, before *corev1.Secret) field.ErrorList {
	var errs field.ErrorList
	if before != nil {
		errs = apivalidation.ValidateImmutableField(o.Type, before.Type, field.NewPath("type"))
		if isTrue(before.Immutable) {
			errs = append(errs, validateImmutable(o.Immutable, o.Data, before.Data)...)
		}
	}
	path := field.NewPath("data")
	size := 0
	for _, key := range slices.Sorted(maps.Keys(o.Data)) {
		errs = append(errs, validateDataKey(path, key)...)
		size += len(o.Data[key])
	}
	if size > corev1.MaxSecretSize {
		errs = append(errs, field.TooLong(path, "", corev1.MaxSecretSize))
	}
	return append(errs, validateSecretType(o, path)...)
}

// validateSecretType looks for what secrets of some types must have.
func validateSecretType(o *corev1.Secret, path *field.Path) field.ErrorList {
	switch o.Type {
	case corev1.SecretTypeServiceAccountToken:
		if o.Annotations[corev1.ServiceAccountNameKey] == "" {
			return field.ErrorList{field.Required(field.NewPath("metadata", "annotations").Key(corev1.ServiceAccountNameKey), "")}
		}
	case corev1.SecretTypeDockercfg:
		return requireJSON(o, path, corev1.DockerConfigKey)
	case corev1.SecretTypeDockerConfigJson:
		return requireJSON(o, path, corev1.DockerConfigJsonKey)
	case corev1.SecretTypeBasicAuth:
		// Either may be missing, but not both.
		if missing := requireKeys(o, path, corev1.BasicAuthUsernameKey, corev1.BasicAuthPasswordKey); len(missing) == 2 {
			return missing
		}
	case corev1.SecretTypeSSHAuth:
		if len(o.Data[corev1.SSHAuthPrivateKey]) == 0 {
			return field.ErrorList{field.Required(path.Key(corev1.SSHAuthPrivateKey), "")}
		}
	case corev1.SecretTypeTLS:
		return requireKeys(o, path, corev1.TLSCertKey, corev1.TLSPrivateKeyKey)
	}
	return nil
}

func requireKeys(o *corev1.Secret, path *field.Path, keys ...string) field.ErrorList {
	var errs field.ErrorList
	for _, key := range keys {
		if _, ok := o.Data[key]; !ok {
			errs = append(errs, field.Required(path.Key(key), ""))
		}
	}
	return errs
}

func requireJSON(o *corev1.Secret, path *field.Path, key string) field.ErrorList {
	if errs := requireKeys(o, path, key); errs != nil {
		return errs
	}
	if err := json.Unmarshal(o.Data[key], &map[string]any{}); err != nil {
		return field.ErrorList{field.Invalid(path.Key(key), "<secret contents redacted>", err.Error())}
	}
	return nil
}

// warnOfSecret warns of a certificate that is not of its key.
func warnOfSecret(_ context.Context, obj runtime.Object) []string {
	o := obj.(*corev1.Secret)
	if o.Type != corev1.SecretTypeTLS {
		return nil
	}
	if _, err := tls.X509KeyPair(o.Data[corev1.TLSCertKey], o.Data[corev1.TLSPrivateKeyKey]); err != nil {
		return []string{err.Error()}
	}
	return nil
}
