package attack

import "slices"

// All are the attacks, in the order of the table.
var All = slices.Concat(
	strangers,
	rights,
	crds,
	auth,
	parameters,
	owners,
	webhooks,
	watches,
	urls,
	quotas,
	lists,
)
