package builtin

// Standard returns the resources that need nothing else. Those that take
// parameters, such as events and policies, are made by functions of their own.
func Standard() []Resource {
	return []Resource{
		namespaces(), configMaps(), secrets(), serviceAccounts(), leases(), resourceQuotas(),
		mutatingWebhookConfigurations(), validatingWebhookConfigurations(),
		flowSchemas(), priorityLevelConfigurations(),
	}
}

// Data returns the resources that the server stores without acting on them: in
// Kubernetes, kubelets, the scheduler and kube-controller-manager do that. A server has
// them with --kinds=all. There are none yet.
func Data() []Resource { return nil }
