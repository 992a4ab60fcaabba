// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

const (
	day  = 24 * 60 * 60
	week = 7 * day
)

// The colors of states.
const (
	good = "green"
	warn = "orange"
	bad  = "red"
)

// rows are what the dashboard shows. Each selector has the label job, which the ServiceMonitors
// of config/monitoring set. The label namespace is that of the operator's pod; that of an object
// is in exported_namespace.
var rows = []row{
	{title: "Overview", height: 4, panels: overview},
	{title: "Admission", height: 8, panels: admission},
	{title: "Reconciliation", height: 8, panels: reconciliation},
	{title: "Restarts by Erus", height: 8, panels: restarts},
	{title: "Processes", height: 8, panels: processes},
}

var overview = []panel{
	stat("Webhook pods that serve", "Pods whose certificate is valid. Without one, objects of the five kinds can be neither created nor changed.", "none",
		query{expr: `count(modelbox_admission_certificate_expiry_timestamp_seconds{job="modelbox-webhook"} > time()) or vector(0)`},
		first(bad), from(1, warn), from(2, good)),
	stat("Controller pods that lead", "The pod that holds the lease reconciles; the others wait.", "none",
		query{expr: `sum(leader_election_master_status{job="modelbox-controller", name="modelbox-controller"}) or vector(0)`},
		first(bad), from(1, good)),
	stat("Objects not ready", "Objects whose condition Ready is not True.", "none",
		query{expr: `sum(modelbox_objects_not_ready{job="modelbox-controller"}) or vector(0)`},
		first(good), from(1, warn)),
	stat("Objects that cannot be decoded", "Stored objects that are not reconciled because they cannot be decoded. Each controller pod counts the same ones.", "none",
		query{expr: `sum(max by (kind) (modelbox_undecodable_objects{job="modelbox-controller"})) or vector(0)`},
		first(good), from(1, bad)),
	stat("Certificate expires in", "The time until the first certificate that a webhook pod serves expires. It is renewed ten days before.", "s",
		query{expr: `min(modelbox_admission_certificate_expiry_timestamp_seconds{job="modelbox-webhook"} > 0) - time()`},
		first(bad), from(day, warn), from(week, good)),
	stat("Next restart", "The earliest scheduled time of all Erus; in the past while that restart waits.", "dateTimeFromNow",
		query{expr: `min(modelbox_eru_earliest_restart_timestamp_seconds{job="modelbox-controller"}) * 1000`},
		first(good)),
}

var admission = []panel{
	stacked("Admission reviews by result", "Refused: because of the object. Error: because of the webhook.", "reqps",
		query{`sum by (result) (rate(modelbox_admission_requests_total{job="modelbox-webhook"}[$__rate_interval]))`, "{{result}}"}),
	graph("Admission reviews that are not allowed", "By kind and webhook.", "reqps",
		query{`sum by (kind, webhook, result) (rate(modelbox_admission_requests_total{job="modelbox-webhook", result!="allowed"}[$__rate_interval])) > 0`, "{{kind}} {{webhook}}: {{result}}"}),
	graph("Latency of admission", "From the first line of a request to its response, by webhook.", "s",
		query{`histogram_quantile(0.5, sum by (le, webhook) (rate(modelbox_admission_duration_seconds_bucket{job="modelbox-webhook"}[$__rate_interval])))`, "p50 {{webhook}}"},
		query{`histogram_quantile(0.99, sum by (le, webhook) (rate(modelbox_admission_duration_seconds_bucket{job="modelbox-webhook"}[$__rate_interval])))`, "p99 {{webhook}}"}),
	graph("Requests in flight and connections", "By pod. The flags --max-requests-in-flight and --max-connections of the webhook are the limits.", "none",
		query{`sum by (pod) (modelbox_admission_requests_in_flight{job="modelbox-webhook"})`, "requests, {{pod}}"},
		query{`sum by (pod) (modelbox_admission_connections{job="modelbox-webhook", port="webhook"})`, "connections, {{pod}}"}),
	graph("Requests and connections at the limits", "Requests that were answered with 503 or whose body was not read to its end, and connections that were closed to make room for others.", "cps",
		query{`sum(rate(modelbox_admission_rejected_over_capacity_total{job="modelbox-webhook"}[$__rate_interval]))`, "over capacity"},
		query{`sum by (reason) (rate(modelbox_admission_unread_total{job="modelbox-webhook"}[$__rate_interval]))`, "not read: {{reason}}"},
		query{`sum by (port, reason) (rate(modelbox_admission_disconnected_total{job="modelbox-webhook"}[$__rate_interval]))`, "disconnected, {{port}}: {{reason}}"}),
	bars("Panics", "Requests that met a defect of the webhook and were answered with 500.", "none",
		query{`sum by (kind, webhook) (increase(modelbox_admission_panics_total{job="modelbox-webhook"}[$__rate_interval])) > 0`, "{{kind}} {{webhook}}"}),
}

var reconciliation = []panel{
	stacked("Reconciles", "By controller and result.", "ops",
		query{`sum by (controller, result) (rate(controller_runtime_reconcile_total{job="modelbox-controller"}[$__rate_interval])) > 0`, "{{controller}}: {{result}}"}),
	graph("Reconcile errors", "By controller. An object that is refused is retried every two minutes.", "ops",
		query{`sum by (controller) (rate(controller_runtime_reconcile_errors_total{job="modelbox-controller"}[$__rate_interval]))`, "{{controller}}"}),
	graph("Latency of reconciles", "By controller.", "s",
		query{`histogram_quantile(0.5, sum by (le, controller) (rate(controller_runtime_reconcile_time_seconds_bucket{job="modelbox-controller"}[$__rate_interval])))`, "p50 {{controller}}"},
		query{`histogram_quantile(0.99, sum by (le, controller) (rate(controller_runtime_reconcile_time_seconds_bucket{job="modelbox-controller"}[$__rate_interval])))`, "p99 {{controller}}"}),
	stacked("Objects not ready by reason", "By kind and by the reason of the condition Ready. Progressing is a rollout.", "none",
		query{`sum by (kind, reason) (modelbox_objects_not_ready{job="modelbox-controller"})`, "{{kind}}: {{reason}}"}),
	graph("Work queue depth of the leader", "By controller. The queues of the other pods are full, because they reconcile nothing.", "none",
		query{`sum by (controller) (workqueue_depth{job="modelbox-controller"} and on (pod) leader_election_master_status{job="modelbox-controller", name="modelbox-controller"} == 1)`, "{{controller}}"}),
	graph("Requests to the API server", "Of all controller pods, by method and status.", "reqps",
		query{`sum by (method, code) (rate(rest_client_requests_total{job="modelbox-controller"}[$__rate_interval]))`, "{{method}} {{code}}"}),
}

var restarts = []panel{
	bars("Scheduled times by result", "Restarted, Skipped or Failed.", "none",
		query{`sum by (result) (increase(modelbox_eru_restarts_total{job="modelbox-controller"}[$__rate_interval]))`, "{{result}}"}),
	graph("Restarts that are due", "Erus whose scheduled time has passed and is not decided, and those with one in the next hour. Counts at most 1,000 Erus.", "none",
		query{`count(max by (exported_namespace, name) (modelbox_eru_next_restart_timestamp_seconds{job="modelbox-controller"}) < time()) or vector(0)`, "due"},
		query{`count(max by (exported_namespace, name) (modelbox_eru_next_restart_timestamp_seconds{job="modelbox-controller"}) < time() + 3600) or vector(0)`, "due within an hour"}),
	graph("Lateness of restarts", "From the scheduled time to the restart, jitter included, in the last hour.", "s",
		query{`histogram_quantile(0.5, sum by (le) (rate(modelbox_eru_restart_lateness_seconds_bucket{job="modelbox-controller"}[1h])))`, "p50"},
		query{`histogram_quantile(0.99, sum by (le) (rate(modelbox_eru_restart_lateness_seconds_bucket{job="modelbox-controller"}[1h])))`, "p99"}),
	table("Next restarts", "The ten Erus that are due next, without jitter.", "dateTimeAsIso",
		query{expr: `sort(bottomk(10, max by (exported_namespace, name) (modelbox_eru_next_restart_timestamp_seconds{job="modelbox-controller"})) * 1000)`},
		[2]string{"exported_namespace", "Namespace"}, [2]string{"name", "Eru"}, [2]string{"Value", "Next restart"}),
}

var processes = []panel{
	graph("CPU", "Processor seconds a second, by pod.", "none",
		query{`rate(process_cpu_seconds_total{job="modelbox-webhook"}[$__rate_interval])`, "{{pod}}"},
		query{`rate(process_cpu_seconds_total{job="modelbox-controller"}[$__rate_interval])`, "{{pod}}"}),
	graph("Memory", "Resident memory, by pod.", "bytes",
		query{`process_resident_memory_bytes{job="modelbox-webhook"}`, "{{pod}}"},
		query{`process_resident_memory_bytes{job="modelbox-controller"}`, "{{pod}}"}),
	graph("Leader", "1 for the pod that holds the lease, 0 for the others.", "none",
		query{`max by (pod) (leader_election_master_status{job="modelbox-controller", name="modelbox-controller"})`, "{{pod}}"}),
	table("Versions", "How many pods run which version.", "none",
		query{expr: `count by (program, version) (modelbox_build_info{job="modelbox-webhook"}) or count by (program, version) (modelbox_build_info{job="modelbox-controller"})`},
		[2]string{"program", "Program"}, [2]string{"version", "Version"}, [2]string{"Value", "Pods"}),
}
