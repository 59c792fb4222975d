package rules

import (
	"crypto/tls"
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Secret are the rules of secrets.
var Secret = Rules{
	GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Secret"), Namespaced: true,
	Name:     validation.NameIsDNSSubdomain,
	Default:  filled(defaultSecret),
	Validate: compared(validateSecret),
	Warn:     warnOfSecret,
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
		errs = validation.ValidateImmutableField(o.Type, before.Type, field.NewPath("type"))
		if isTrue(before.Immutable) {
			errs = append(errs, validateImmutable(o.Immutable, reflect.DeepEqual(o.Data, before.Data))...)
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
func warnOfSecret(obj runtime.Object) []string {
	o := obj.(*corev1.Secret)
	if o.Type != corev1.SecretTypeTLS {
		return nil
	}
	if _, err := tls.X509KeyPair(o.Data[corev1.TLSCertKey], o.Data[corev1.TLSPrivateKeyKey]); err != nil {
		return []string{err.Error()}
	}
	return nil
}
