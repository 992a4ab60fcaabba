// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
)

// Annotations of a Deployment that has an Eru created for it.
const (
	// AnnotationEru set to "true" creates an Eru with the name of the Deployment.
	AnnotationEru = "mtsre.meitu.com/eru"
	// AnnotationSchedule is the initial schedule of that Eru.
	AnnotationSchedule = "mtsre.meitu.com/schedule"
	// AnnotationTimeZone is the initial timeZone of that Eru.
	AnnotationTimeZone = "mtsre.meitu.com/timezone"
	// AnnotationEnabled set to "true" enables that Eru from the start.
	AnnotationEnabled = "mtsre.meitu.com/enabled"
)

// Annotations returns the annotations of a Deployment that has an Eru created for it.
func Annotations() []string {
	return []string{AnnotationEru, AnnotationSchedule, AnnotationTimeZone, AnnotationEnabled}
}

// EruSpec defines the desired state of Eru.
//
// +kubebuilder:validation:XValidation:rule="!has(self.deploymentname) || self.deploymentname.size() == 0 || !has(self.deploymentName) || self.deploymentName.size() == 0 || self.deploymentName == self.deploymentname",message="must be the same as deploymentName; remove deploymentname, which is deprecated, and set deploymentName",fieldPath=".deploymentname"
type EruSpec struct {
	// deploymentName is the name of the Deployment that is restarted, in the same
	// namespace. Must be a DNS-1123 subdomain of 1 to 253 characters. Defaults to
	// deploymentname, and without it to the name of the object.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$`
	DeploymentName string `json:"deploymentName,omitempty"`

	// deploymentname is an alias of deploymentName, which must be the same if both
	// are set. Deprecated: use deploymentName.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$`
	DeprecatedDeploymentName string `json:"deploymentname,omitempty"`

	// enabled defines whether the Deployment is restarted on schedule. Defaults to
	// false.
	//
	// +optional
	Enabled bool `json:"enabled,omitempty"`

	// schedule is the schedule of the restarts in cron format: five fields (minute,
	// hour, day of month, month, day of week), or one of @yearly, @annually,
	// @monthly, @weekly, @daily, @midnight and @hourly. A schedule without any time
	// is refused. Defaults to "0 0 * * *", midnight. At most 1024 characters.
	//
	// +optional
	// +default="0 0 * * *"
	// +kubebuilder:default="0 0 * * *"
	// +kubebuilder:validation:MaxLength=1024
	Schedule string `json:"schedule,omitempty"`

	// timeZone is the IANA name of the time zone of schedule, such as
	// Asia/Shanghai. Defaults to Etc/UTC.
	//
	// +optional
	// +default="Etc/UTC"
	// +kubebuilder:default="Etc/UTC"
	// +kubebuilder:validation:MaxLength=255
	TimeZone string `json:"timeZone,omitempty"`

	// startingDeadlineSeconds is the deadline in seconds, 0 to 31622400 (366 days),
	// for starting a restart after its scheduled time and jitter. A restart that
	// misses it is skipped, with an entry in status.history. Defaults to 600.
	//
	// +optional
	// +default=600
	// +kubebuilder:default=600
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=31622400
	StartingDeadlineSeconds *int64 `json:"startingDeadlineSeconds,omitempty"`

	// jitterSeconds spreads the restarts of several objects that have the same
	// scheduled time: each starts up to this many seconds later, 0 to 86400. The
	// delay of one object at one scheduled time is always the same. Defaults to 0.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	JitterSeconds int32 `json:"jitterSeconds,omitempty"`

	// historyLimit is the maximum number of entries of status.history, 0 to 100.
	// Defaults to 10.
	//
	// +optional
	// +default=10
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	HistoryLimit *int32 `json:"historyLimit,omitempty"`

	modelv1.Windows `json:",inline"`
}

// DeploymentNameOrDefault returns the name of the Deployment that an Eru restarts: the
// deploymentName, its deprecated alias, or the name of the object. Admission sets
// deploymentName to the same name, so this matters for an object that was stored without it.
func (o *Eru) DeploymentNameOrDefault() string {
	return cmp.Or(o.Spec.DeploymentName, o.Spec.DeprecatedDeploymentName, o.Name)
}

// EruPhase is a summary of the state of an Eru.
//
// +kubebuilder:validation:Enum=Stopped;Running;Failed
type EruPhase string

const (
	// EruStopped means that the Eru is not enabled.
	EruStopped EruPhase = "Stopped"
	// EruRunning means that the Deployment is restarted on schedule.
	EruRunning EruPhase = "Running"
	// EruFailed means that the Eru is enabled and the Deployment cannot be restarted.
	EruFailed EruPhase = "Failed"
)

// EruResult is the result of a scheduled restart.
//
// +kubebuilder:validation:Enum=Restarted;Skipped;Failed
type EruResult string

const (
	// EruRestarted means that the Deployment was restarted.
	EruRestarted EruResult = "Restarted"
	// EruSkipped means that the Deployment was not restarted; reason has the cause.
	EruSkipped EruResult = "Skipped"
	// EruResultFailed means that the API server refused the restart.
	EruResultFailed EruResult = "Failed"
)

// EruHistory is an entry of the history of scheduled restarts.
type EruHistory struct {
	// slot is the scheduled time.
	//
	// +required
	Slot metav1.Time `json:"slot"`

	// result is the result of the restart: Restarted, Skipped or Failed.
	//
	// +required
	Result EruResult `json:"result"`

	// reason is a CamelCase word with the cause of the result, such as
	// DeploymentPaused.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason,omitempty"`

	// startedAt is the time when the Deployment was patched. Empty if it is not
	// known.
	//
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`

	// completedAt is the time when the rollout was observed to be complete.
	//
	// +optional
	CompletedAt *metav1.Time `json:"completedAt,omitempty"`
}

// MaxPendingMessage is the maximum length in bytes of status.pending.message.
const MaxPendingMessage = 1024

// EruPending is a scheduled time that has come and whose restart has not been made.
type EruPending struct {
	// slot is the scheduled time.
	//
	// +required
	Slot metav1.Time `json:"slot"`

	// reason is a CamelCase word: why the restart waits, such as RolloutInProgress, or
	// the reason of the API server, which refuses it. It is Restarting from just before
	// the Deployment is patched until history contains the restart.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason"`

	// message is the reason in a sentence, at most 1024 bytes.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`

	// since is the time from which on the reason applies. That of Restarting becomes
	// startedAt in history.
	//
	// +required
	Since metav1.Time `json:"since"`
}

// EruStatus defines the observed state of Eru.
type EruStatus struct {
	// observedGeneration is the most recent metadata.generation that the
	// controller has observed.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9007199254740991
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// phase is a summary of the state: Stopped, Running or Failed.
	//
	// +optional
	Phase EruPhase `json:"phase,omitempty"`

	// lastScheduleTime is the last scheduled time that has a result.
	//
	// +optional
	LastScheduleTime *metav1.Time `json:"lastScheduleTime,omitempty"`

	// nextScheduleTime is the first scheduled time that has no result yet. It is in
	// the past while its restart waits.
	//
	// +optional
	NextScheduleTime *metav1.Time `json:"nextScheduleTime,omitempty"`

	// pending is the scheduled time that has come and whose restart waits, is being
	// made, or has failed. A failed one stays until the next scheduled time has a
	// result, or the spec is changed.
	//
	// +optional
	Pending *EruPending `json:"pending,omitempty"`

	// history is the list of the last results, newest first. At most historyLimit
	// items.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	History []EruHistory `json:"history,omitempty"`

	// conditions are the latest available observations of the object's state.
	// Ready is present from the first reconcile on; Reconciling and Stalled are
	// present only while they are true.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Eru restarts an existing Deployment by a rolling update on a cron schedule.
//
// +genclient
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,shortName=eru,categories=mbo
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Deployment",type=string,JSONPath=`.spec['deploymentName','deploymentname']`
// +kubebuilder:printcolumn:name="Schedule",type=string,JSONPath=`.spec.schedule`
// +kubebuilder:printcolumn:name="Next",type=string,JSONPath=`.status.nextScheduleTime`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Time Zone",type=string,priority=1,JSONPath=`.spec.timeZone`
// +kubebuilder:printcolumn:name="Last",type=date,priority=1,JSONPath=`.status.lastScheduleTime`
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || (self.metadata.name.size() <= 63 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$'))",optionalOldSelf=true,message="metadata.name must be a valid Service name: at most 63 characters, lower-case letters, digits and dashes, starting with a letter"
type Eru struct {
	metav1.TypeMeta `json:",inline"`

	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state of the Eru.
	//
	// +required
	Spec EruSpec `json:"spec"`

	// status is the most recently observed state of the Eru. It is read-only.
	//
	// +optional
	Status EruStatus `json:"status,omitempty"`
}

// GetConditions returns the conditions of status.
func (o *Eru) GetConditions() []metav1.Condition { return o.Status.Conditions }

// GetStatus returns a pointer to status.
func (o *Eru) GetStatus() any { return &o.Status }

// EruList is a list of Erus.
//
// +kubebuilder:object:root=true
type EruList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Eru `json:"items"`
}
