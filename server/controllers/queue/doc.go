// Package queue has workers take items from a queue, each item one at a time. What fails
// is repeated, ever more slowly.
//
//	events ── Add ──▶ Queue ──▶ Work: do ── error ──▶ report, and the queue again
package queue
