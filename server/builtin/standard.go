package builtin

// Standard returns the resources that need nothing else. Those that take
// parameters, such as events, are made by functions of their own.
func Standard() []Resource {
	return []Resource{
		namespaces(), configMaps(), secrets(), serviceAccounts(), leases(),
		mutatingWebhookConfigurations(), validatingWebhookConfigurations(),
		validatingAdmissionPolicies(), validatingAdmissionPolicyBindings(),
		mutatingAdmissionPolicies(), mutatingAdmissionPolicyBindings(),
		flowSchemas(), priorityLevelConfigurations(),
	}
}
