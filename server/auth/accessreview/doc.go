// Package accessreview serves the reviews of users, tokens and permissions.
//
//	POST tokenreviews ─────────────▶ authenticator: whose token is this?
//	POST selfsubjectreviews ───────▶ the request's user: who am I?
//	POST *subjectaccessreviews ────▶ authorizer: may they, may I?
//	POST selfsubjectrulesreviews ──▶ rules: what may I do in a namespace?
//
// Nothing is stored: an object comes in with a question in its spec and goes out
// with the answer in its status.
//
// # Invariants
//
// A review is authorized like any other request, then validated, then passed to
// admission, then answered.
//
// A TokenReview checks only the token. The request's own credentials, such as a client
// certificate, do not change the answer, and no token authenticates as the anonymous
// user.
package accessreview
