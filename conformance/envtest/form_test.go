package envtest

import (
	"reflect"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/espalier-dev/espalier/server/espaliertest"
)

// Types of the same form are alike: these have counterparts of their own.
var counterparts = map[reflect.Type]reflect.Type{
	reflect.TypeFor[envtest.Environment]():           reflect.TypeFor[espaliertest.Environment](),
	reflect.TypeFor[envtest.CRDInstallOptions]():     reflect.TypeFor[espaliertest.CRDInstallOptions](),
	reflect.TypeFor[envtest.WebhookInstallOptions](): reflect.TypeFor[espaliertest.WebhookInstallOptions](),
	reflect.TypeFor[envtest.ControlPlane]():          reflect.TypeFor[espaliertest.ControlPlane](),
	reflect.TypeFor[envtest.APIServer]():             reflect.TypeFor[espaliertest.APIServer](),
	reflect.TypeFor[envtest.Etcd]():                  reflect.TypeFor[espaliertest.Etcd](),
	reflect.TypeFor[envtest.Arguments]():             reflect.TypeFor[espaliertest.Arguments](),
	reflect.TypeFor[envtest.User]():                  reflect.TypeFor[espaliertest.User](),
	reflect.TypeFor[envtest.AuthenticatedUser]():     reflect.TypeFor[espaliertest.AuthenticatedUser](),
}

// missing are the fields of envtest about processes, which Environment lacks; docs/guides/envtest.md lists them.
var missing = map[string]bool{
	"WebhookInstallOptions.ModifyWebhookDefinitions": true,
	"ControlPlane.APIURL":                            true,
	"ControlPlane.AddUser":                           true,
	"ControlPlane.KubeCtl":                           true,
	"ControlPlane.RESTClientConfig":                  true,
	"ControlPlane.Start":                             true,
	"ControlPlane.Stop":                              true,
	"AuthenticatedUser.Kubectl":                      true,
	"Arguments.AsStrings":                            true,
	"Arguments.Get":                                  true,
	"Arguments.SetRaw":                               true,
}

// A suite that is written for envtest compiles with espaliertest: all that is exported there is here, by the same name and with the same
// type.
func TestSameForm(t *testing.T) {
	seen := map[string]bool{}
	for theirs, ours := range counterparts {
		if theirs == reflect.TypeFor[envtest.APIServer]() || theirs == reflect.TypeFor[envtest.Etcd]() {
			continue // they are there for their flags alone, below
		}
		for i := range theirs.NumField() {
			if field := theirs.Field(i); field.IsExported() {
				other, ok := ours.FieldByName(field.Name)
				if !ok || !alike(field.Type, other.Type) {
					t.Errorf("%s.%s is of %v, ours of %v", theirs.Name(), field.Name, field.Type, other.Type)
				}
			}
		}
		theirs, ours := reflect.PointerTo(theirs), reflect.PointerTo(ours)
		for i := range theirs.NumMethod() {
			method := theirs.Method(i)
			name := theirs.Elem().Name() + "." + method.Name
			if seen[name] = missing[name]; missing[name] {
				if _, ok := ours.MethodByName(method.Name); ok {
					t.Errorf("%s is there: take it off the list", name)
				}
				continue
			}
			other, ok := ours.MethodByName(method.Name)
			if !ok || !alikeMethods(method.Type, other.Type) {
				t.Errorf("%s is a %v, ours a %v", name, method.Type, other.Type)
			}
		}
	}
	for name := range missing {
		if !seen[name] {
			t.Errorf("envtest has no %s: take it off the list", name)
		}
	}
	for _, pair := range [][2]any{
		{envtest.InstallCRDs, espaliertest.InstallCRDs},
		{envtest.UninstallCRDs, espaliertest.UninstallCRDs},
		{(*envtest.APIServer).Configure, (*espaliertest.APIServer).Configure},
		{(*envtest.Etcd).Configure, (*espaliertest.Etcd).Configure},
	} {
		if theirs, ours := reflect.TypeOf(pair[0]), reflect.TypeOf(pair[1]); !alikeMethods(theirs, ours) {
			t.Errorf("%v is not like %v", ours, theirs)
		}
	}
}

// alike reports whether a type of ours can stand where one of theirs does.
func alike(theirs, ours reflect.Type) bool {
	switch {
	case ours == nil:
		return false
	case theirs == ours, counterparts[theirs] == ours:
		return true
	case theirs.Kind() != ours.Kind():
		return false
	}
	switch theirs.Kind() {
	case reflect.Pointer, reflect.Slice:
		return alike(theirs.Elem(), ours.Elem())
	}
	return false
}

func alikeMethods(theirs, ours reflect.Type) bool {
	if theirs.NumIn() != ours.NumIn() || theirs.NumOut() != ours.NumOut() || theirs.IsVariadic() != ours.IsVariadic() {
		return false
	}
	for i := range theirs.NumIn() {
		if !alike(theirs.In(i), ours.In(i)) {
			return false
		}
	}
	for i := range theirs.NumOut() {
		if !alike(theirs.Out(i), ours.Out(i)) {
			return false
		}
	}
	return true
}
