// Command flood floods servers, one per scenario, with requests of a single user, and measures the effect on others: the resident memory of the
// server, the latency of another user's requests, and how long the server takes to end on SIGTERM while the flood goes on. It fails if a
// bound is exceeded. See package flood.
package main
