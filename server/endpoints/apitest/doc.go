// Package apitest sends requests to a server in a test, and checks the responses.
//
//	Caller ── Do, Patch ──▶ server ──▶ Answer ── Is, Says, Has, Warns ──▶ the test goes on, or fails
//	   └───── Watch ──────▶        ──▶ Events ── Next ──▶ Answer
//
// A check fails the test at once, or returns the answer, so that checks can be
// chained:
//
//	e.Do("GET", path, "").Is(http.StatusOK).Has("spec.size", 3)
package apitest
