package chain

import (
	"context"
	"slices"

	"k8s.io/apiserver/pkg/admission"
)

// Chain is the admission chain. It is safe for concurrent use.
type Chain struct {
	direct   steps                  // plugins that need only metadata
	asking   func() (*steps, error) // plugins that are configured through the API, and others
	last     steps                  // the plugin that reserves what all others have admitted
	settings *settings
	others   bool // there are plugins of the program's own
}

// steps are plugins in their order.
type steps struct {
	mutating   []admission.MutationInterface
	validating []admission.ValidationInterface
}

var (
	_ admission.MutationInterface   = (*Chain)(nil)
	_ admission.ValidationInterface = (*Chain)(nil)
)

// Idle reports that no webhook and no policy is configured at all, so that
// nothing needs to be prepared for them. Until that is known, it reports false. If the
// program adds plugins of its own, it always reports false.
func (c *Chain) Idle() bool { return !c.others && c.settings.none() }

// Handles implements admission.Interface.
func (c *Chain) Handles(operation admission.Operation) bool {
	if c.direct.handle(operation) || c.last.handle(operation) {
		return true
	}
	if c.Idle() {
		return false
	}
	asking, err := c.asking()
	return err != nil || asking.handle(operation) // Admit and Validate return the error
}

func (s *steps) handle(operation admission.Operation) bool {
	return slices.ContainsFunc(s.mutating, func(p admission.MutationInterface) bool { return p.Handles(operation) }) ||
		slices.ContainsFunc(s.validating, func(p admission.ValidationInterface) bool { return p.Handles(operation) })
}

// Admit implements admission.MutationInterface. If a webhook or a policy has changed the
// object, all plugins are called again, so that a container that it has added to a pod
// gets what every container gets. Those that ask it say in their configuration whether
// they want to be.
func (c *Chain) Admit(ctx context.Context, first admission.Attributes, given admission.ObjectInterfaces) error {
	if err := c.direct.admit(ctx, first, given); err != nil {
		return err
	}
	if c.Idle() {
		return nil
	}
	asking, err := c.asking()
	if err != nil {
		return err
	}
	a, o := shown(first, given)
	if err := asking.admit(ctx, a, o); err != nil {
		return err
	}
	if again := a.GetReinvocationContext(); again.ShouldReinvoke() {
		again.SetIsReinvoke()
		if err := c.direct.admit(ctx, first, given); err != nil {
			return err
		}
		if err := asking.admit(ctx, a, o); err != nil {
			return err
		}
	}
	if v, ok := a.(*requestAttributes); ok {
		return v.tell()
	}
	return nil
}

// Validate implements admission.ValidationInterface.
func (c *Chain) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if err := c.direct.validate(ctx, a, o); err != nil {
		return err
	}
	if !c.Idle() {
		asking, err := c.asking()
		if err != nil {
			return err
		}
		seen, interfaces := shown(a, o)
		if err := asking.validate(ctx, seen, interfaces); err != nil {
			return err
		}
	}
	return c.last.validate(ctx, a, o)
}

func (s *steps) admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	for _, p := range s.mutating {
		if p.Handles(a.GetOperation()) {
			if err := p.Admit(ctx, a, o); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *steps) validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	for _, p := range s.validating {
		if p.Handles(a.GetOperation()) {
			if err := p.Validate(ctx, a, o); err != nil {
				return err
			}
		}
	}
	return nil
}
