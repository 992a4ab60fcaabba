-- Copyright The ModelBox Operator Authors.
-- SPDX-License-Identifier: Apache-2.0

-- The health of an object of any of the five kinds, from its conditions. The script uses no library
-- of Lua, because Argo CD opens only a few of them.

if obj.metadata.deletionTimestamp ~= nil then
  return {status = "Progressing", message = "the object is being deleted"}
end

local status = obj.status or {}
if status.conditions == nil or (status.observedGeneration or 0) < (obj.metadata.generation or 0) then
  return {status = "Progressing", message = "the controller has not reconciled the current spec yet"}
end

local conditions = {}
for _, condition in ipairs(status.conditions) do
  conditions[condition.type] = condition
end

local function isTrue(name)
  return conditions[name] ~= nil and conditions[name].status == "True"
end

local function health(name, condition)
  return {status = name, message = condition.message or ""}
end

-- No progress is possible before the cause is removed.
if isTrue("Stalled") then
  return health("Degraded", conditions.Stalled)
end
-- As a Deployment, whether changes are waiting or not.
if isTrue("Paused") then
  return health("Suspended", conditions.Paused)
end
if isTrue("Ready") then
  return health("Healthy", conditions.Ready)
end
return health("Progressing", conditions.Ready or {message = "the controller has not reported the condition Ready yet"})
