package builtin

// Standard returns the resources that need nothing else. Those that take
// parameters, such as events and policies, are made by functions of their own.
func Standard() []Resource {
	return []Resource{
		namespaces(), configMaps(), secrets(), serviceAccounts(), leases(), resourceQuotas(),
		mutatingWebhookConfigurations(), validatingWebhookConfigurations(),
		flowSchemas(), priorityLevelConfigurations(), storageVersionMigrations(),
	}
}
