// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Annotations on a Deployment that bind an Eru to it.
const (
	// AnnotationEru set to "true" gives the Deployment an Eru of its own name.
	AnnotationEru = "mtsre.meitu.com/eru"
	// AnnotationSchedule is the initial schedule of that Eru.
	AnnotationSchedule = "mtsre.meitu.com/schedule"
	// AnnotationTimeZone is the initial timeZone of that Eru.
	AnnotationTimeZone = "mtsre.meitu.com/timezone"
	// AnnotationEnabled set to "true" enables that Eru from the start.
	AnnotationEnabled = "mtsre.meitu.com/enabled"
)

// Annotations are those of a Deployment that bind an Eru to it.
func Annotations() []string {
	return []string{AnnotationEru, AnnotationSchedule, AnnotationTimeZone, AnnotationEnabled}
}

// EruSpec is what an Eru should do.
type EruSpec struct {
	// deploymentName is the name of the Deployment, in the same namespace, that
	// is restarted: a DNS-1123 subdomain, 1 to 253 characters. Defaults to the
	// name of the object.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$`
	DeploymentName string `json:"deploymentName,omitempty"`

	// enabled says whether the schedule is acted on. Defaults to false.
	//
	// +optional
	Enabled bool `json:"enabled,omitempty"`

	// schedule says when to restart, in cron's five fields (minute, hour, day of
	// month, month, day of week) or as one of @yearly, @annually, @monthly,
	// @weekly, @daily, @midnight and @hourly. Defaults to "0 0 * * *", midnight.
	// A schedule that never fires is refused.
	//
	// +optional
	// +default="0 0 * * *"
	// +kubebuilder:default="0 0 * * *"
	// +kubebuilder:validation:MaxLength=1024
	Schedule string `json:"schedule,omitempty"`

	// timeZone is the IANA name of the time zone that schedule is read in, such
	// as Asia/Shanghai. Defaults to Etc/UTC.
	//
	// +optional
	// +default="Etc/UTC"
	// +kubebuilder:default="Etc/UTC"
	// +kubebuilder:validation:MaxLength=255
	TimeZone string `json:"timeZone,omitempty"`

	// startingDeadlineSeconds is how late a restart may start, in seconds after
	// its slot and jitter, 0 to 31622400 (366 days); a slot that is older is
	// skipped, and history says so. Defaults to 600.
	//
	// +optional
	// +default=600
	// +kubebuilder:default=600
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=31622400
	StartingDeadlineSeconds *int64 `json:"startingDeadlineSeconds,omitempty"`

	// jitterSeconds spreads restarts that share a slot: each starts up to this
	// many seconds after its slot, 0 to 86400, always the same for one object and
	// slot. Defaults to 0.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	JitterSeconds int32 `json:"jitterSeconds,omitempty"`

	// historyLimit is how many slots status.history keeps, 0 to 100. Defaults to
	// 10.
	//
	// +optional
	// +default=10
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	HistoryLimit *int32 `json:"historyLimit,omitempty"`
}

// EruPhase sums an Eru up in a word.
//
// +kubebuilder:validation:Enum=Stopped;Running;Failed
type EruPhase string

const (
	// EruStopped means that the schedule is not acted on.
	EruStopped EruPhase = "Stopped"
	// EruRunning means that the schedule is acted on.
	EruRunning EruPhase = "Running"
	// EruFailed means that the schedule should be acted on and cannot be.
	EruFailed EruPhase = "Failed"
)

// EruResult is what came of a slot.
//
// +kubebuilder:validation:Enum=Restarted;Skipped;Failed
type EruResult string

const (
	// EruRestarted means that the Deployment was restarted.
	EruRestarted EruResult = "Restarted"
	// EruSkipped means that a rule kept the Deployment from being restarted.
	EruSkipped EruResult = "Skipped"
	// EruResultFailed means that the restart was tried and not accepted.
	EruResultFailed EruResult = "Failed"
)

// EruHistory is what came of one slot.
type EruHistory struct {
	// slot is the time that the schedule named.
	//
	// +required
	Slot metav1.Time `json:"slot"`

	// result is Restarted, Skipped or Failed.
	//
	// +required
	Result EruResult `json:"result"`

	// reason says in one word why, such as DeploymentPaused.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason,omitempty"`

	// startedAt is when the restart was written; empty if that is not known.
	//
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`

	// completedAt is when the rollout was seen to be complete.
	//
	// +optional
	CompletedAt *metav1.Time `json:"completedAt,omitempty"`
}

// EruStatus is what was seen of an Eru.
type EruStatus struct {
	// observedGeneration is the metadata.generation that this status describes.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9007199254740991
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// phase is Stopped, Running or Failed.
	//
	// +optional
	Phase EruPhase `json:"phase,omitempty"`

	// lastScheduleTime is the newest slot that has been decided on.
	//
	// +optional
	LastScheduleTime *metav1.Time `json:"lastScheduleTime,omitempty"`

	// nextScheduleTime is the first slot that has not been decided on; it is in the
	// past while that slot waits.
	//
	// +optional
	NextScheduleTime *metav1.Time `json:"nextScheduleTime,omitempty"`

	// history holds the newest slots, newest first, historyLimit at most.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	History []EruHistory `json:"history,omitempty"`

	// conditions: Ready from the first reconcile on; Reconciling and Stalled are
	// present only while they are true.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Eru restarts an existing Deployment, rolling, on a cron schedule.
//
// +genclient
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,shortName=eru,categories=mbo
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Deployment",type=string,JSONPath=`.spec.deploymentName`
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

	// spec is what the Eru should do.
	//
	// +required
	Spec EruSpec `json:"spec"`

	// status is what was seen of it.
	//
	// +optional
	Status EruStatus `json:"status,omitempty"`
}

// GetConditions returns what status says of the object.
func (o *Eru) GetConditions() []metav1.Condition { return o.Status.Conditions }

// GetStatus returns status, to be read or encoded.
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
