// Package accessreview answers questions about who somebody is and what they may do.
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
// A question is checked, then shown to admission, then answered. Who may ask is
// decided before, like for any other request.
//
// A token is looked at alone. Nothing of the request that carries it, such as a
// client certificate, has a part in the answer, and no token makes an anonymous
// user.
package accessreview
