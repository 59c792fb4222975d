package server

import (
	"testing"

	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// Who is given the authorizer that leaves notes cannot ask in a way that leaves none.
func TestDenialsCannotBePassedBy(t *testing.T) {
	if _, ok := any(denying{}).(authorizer.Authorizer); ok {
		t.Error("denying can be asked for decisions with conditions, of which it leaves no note")
	}
}
