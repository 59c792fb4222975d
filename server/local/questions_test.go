package local_test

import authenticationv1 "k8s.io/api/authentication/v1"

// self asks who one is.
func self() *authenticationv1.SelfSubjectReview { return &authenticationv1.SelfSubjectReview{} }

func tokenRequest() *authenticationv1.TokenRequest { return &authenticationv1.TokenRequest{} }
