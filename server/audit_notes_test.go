package server

import (
	"testing"

	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// The authorizer that records denials implements no other method that would bypass them.
func TestDenialsCannotBePassedBy(t *testing.T) {
	if _, ok := any(denying{}).(authorizer.Authorizer); ok {
		t.Error("denying can be asked for decisions with conditions, of which it leaves no note")
	}
}
