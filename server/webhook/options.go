package webhook

import (
	"strings"

	"github.com/spf13/pflag"
)

// Options are the flags about webhooks that users configure.
type Options struct {
	// AllowedNetworks and DeniedNetworks are as NewNetworks takes them.
	AllowedNetworks, DeniedNetworks []string
}

// AddFlags binds the options to flags.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringSliceVar(&o.AllowedNetworks, allowedFlag, o.AllowedNetworks,
		"Networks, as 10.0.0.0/8, in which the server calls conversion and admission webhooks, besides public addresses. "+
			"Without it, webhooks at loopback, link-local and private addresses are not called. "+
			"The longest network of this flag and of --"+deniedFlag+" that contains an address decides. "+
			"Cloud metadata addresses, as 169.254.169.254, must be allowed one by one.")
	flags.StringSliceVar(&o.DeniedNetworks, deniedFlag, o.DeniedNetworks,
		"Networks, as 203.0.113.0/24, in which the server calls no conversion and admission webhooks. "+
			"With 0.0.0.0/0,::/0 only webhooks in --"+allowedFlag+" are called.")
}

// Describe says at which addresses webhooks are called.
func (o *Options) Describe() string {
	text := "public addresses"
	if len(o.AllowedNetworks) > 0 {
		text += " and " + strings.Join(o.AllowedNetworks, ", ")
	}
	if len(o.DeniedNetworks) > 0 {
		text += ", not " + strings.Join(o.DeniedNetworks, ", ")
	}
	return text
}

// Validate says what is wrong with the options.
func (o *Options) Validate() error {
	_, err := NewNetworks(o.AllowedNetworks, o.DeniedNetworks)
	return err
}
