// Package webhook serves conversion webhooks: API servers send objects, and get them in another version.
//
//	ConversionReview ── POST / or /convert ──▶ Handler ── Converter of the object's kind ──▶ ConversionReview
//	                                                     an error of any object fails the review, as API servers expect
//
// # Invariants
//
// Requests are hostile: the size of a body, the memory for all bodies, how many are converted at a time, and the time for
// each are bounded. A client that sends or reads slowly keeps no other from its turn. A request changes nothing: an answer
// that is lost can be asked for again.
//
// Certificates are read again when their files change. If the new ones cannot be read, the old ones stay in use.
package webhook
