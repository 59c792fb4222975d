package attack

import (
	"context"
	"fmt"
	"time"
)

// An Attack is a request sequence that a server must refuse.
type Attack struct {
	ID   string // unique: the table and -run use it
	What string // what the attacker wants, as one phrase
	// Run prepares the attack as the administrator, attempts it as another user, and returns the result. An error means that it
	// could not be attempted.
	Run func(ctx context.Context, s *Site) (Result, error)
}

// timeLimit is for one attack. Those that wear a server down bound themselves well below.
const timeLimit = 3 * time.Minute

// An Outcome is the result of an attack.
type Outcome int

// Outcomes of attacks.
const (
	OutcomeRefused Outcome = iota
	OutcomeSucceeded
	OutcomeAbsent
)

// A Result is an outcome and its evidence.
type Result struct {
	Outcome Outcome
	Detail  string
}

// Refused is the result of an attack that the server refused.
func Refused(format string, args ...any) Result {
	return Result{OutcomeRefused, fmt.Sprintf(format, args...)}
}

// Succeeded is the result of an attack that reached its aim.
func Succeeded(format string, args ...any) Result {
	return Result{OutcomeSucceeded, fmt.Sprintf(format, args...)}
}

// SucceededIf is one of the two, by what was measured.
func SucceededIf(succeeded bool, format string, args ...any) Result {
	if succeeded {
		return Succeeded(format, args...)
	}
	return Refused(format, args...)
}

// Absent is the result where a server has nothing that could be attacked.
func Absent(reason string) Result { return Result{OutcomeAbsent, reason} }

// String is a cell of the table.
func (r Result) String() string {
	switch r.Outcome {
	case OutcomeSucceeded:
		return "SUCCEEDED: " + r.Detail
	case OutcomeAbsent:
		return "not applicable: " + r.Detail
	}
	return "refused: " + r.Detail
}

// Try runs the attack within its time limit.
func (a *Attack) Try(ctx context.Context, s *Site) (Result, error) {
	ctx, cancel := context.WithTimeout(ctx, timeLimit)
	defer cancel()
	result, err := a.Run(ctx, s)
	if err != nil {
		return Result{}, fmt.Errorf("attack %s could not be attempted against %s: %w", a.ID, s.Server.Kind, err)
	}
	return result, nil
}
