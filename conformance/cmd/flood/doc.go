// Command flood wears servers down, one per scenario, as a single user can, and measures what others notice: the resident memory of the
// server, the latency of another user's requests, and how long the server takes to end on SIGTERM while the flood goes on. It fails if a
// bound is exceeded. See package flood.
package main
