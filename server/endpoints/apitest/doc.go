// Package apitest asks a server over HTTP, in a test, and says what its answer
// has to be.
//
//	Caller ── Do, Patch ──▶ server ──▶ Answer ── Is, Says, Has, Warns ──▶ the test goes on, or fails
//	   └───── Watch ──────▶        ──▶ Events ── Next ──▶ Answer
//
// What an answer is compared with fails the test at once and otherwise returns
// the answer, so that a test reads as one sentence:
//
//	e.Do("GET", path, "").Is(http.StatusOK).Has("spec.size", 3)
package apitest
