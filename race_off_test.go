//go:build !race

package espalier_test

// raceEnabled tells tests that measure time that they can.
const raceEnabled = false
