// Package queue runs the workers of controllers. A worker takes items from a queue, one
// after the other. It puts an item that fails back, with exponential backoff.
//
//	events ── Add ──▶ Queue ──▶ Work: do ── error ──▶ report, and the queue again
package queue
