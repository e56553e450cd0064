-- Restates farm/core/eligibility.py CLIENT_CHECKS and CONTEXT_CHECKS, and reservation.py `deny_*`.
-- Equality of JSON values is of their canonical texts, made by the caller.

local function is_among(one, all)
  for _, other in ipairs(all) do
    if other == one then return true end
  end
  return false
end

local function is_in_pool(client, request)
  local activity, node = request.activity_type, request.node
  return is_among(request.namespace, client.namespaces)
    and request.task_queue == client.task_queue
    and (not activity or is_among(activity, cjson.decode(client.activity_types)))
    and (not node or node == client.node)
end

local function meets(id, requirements)
  for name, value in pairs(requirements) do
    if redis.call('HGET', key('metadata', id), name) ~= value then return false end
  end
  return true
end

-- `through` is how the links of the coordinator begin that is to hold the client's.
local function is_within_reach(client, request)
  local through = request.through
  return not through or string.sub(client.link, 1, string.len(through)) == through
end

-- Restates eligibility.py AGENT_CHECKS.
local function deny_agent(id, client, request, now, window_s)
  if not is_in_pool(client, request)
    or (request.client_type and request.client_type ~= client.type)
    or not meets(id, request.requirements)
    or not is_present(client, now, window_s)
    or not is_within_reach(client, request)
    or excluded(id, now)
    or client.draining then return 'not_ready' end
end

-- `given_back` slots are about to be free.
local function deny_client(id, client, request, now, window_s, given_back)
  local denial = deny_agent(id, client, request, now, window_s)
  if denial then return denial end
  if not client.max_concurrency then return 'not_ready' end
  client.used = used_slots(id) - given_back
  if client.used >= client.max_concurrency then return 'full' end
end

-- Restates eligibility.py `_is_in_window`.
local function is_in_window(context, request)
  if not request.in_window then return true end
  return context.window_id ~= cjson.null
    and context.window_id == (request.window_id or context.window_id)
end

-- Restates eligibility.py `reject_company`. `reserved` tabs of the window are the request's own.
local function deny_company(id, window_id, request, besides, reserved)
  local shared = tonumber(redis.call('HGET', key('opening', id), 'tab:' .. window_id) or 0) > reserved
  local text = redis.call('HGET', key('tabs', id), window_id)
  local tabs = text and cjson.decode(text) or {ids = {}}
  shared = shared or tabs.strange
  for _, tab in ipairs(tabs.ids) do
    if tab ~= besides then
      local held = redis.call('HGET', key('assignments', id), tab)
      if held and cjson.decode(held).dedicated then return 'taken' end
      shared = shared or held or redis.call('SISMEMBER', key('dirty', id), tab) == 1
    end
  end
  if request.dedicated and shared then return 'taken' end
end

-- `given_back` tabs of `kind` were reserved for the request.
local function deny_context(id, context_id, text, request, given_back, kind)
  local context = cjson.decode(text)
  if context.owner ~= 'worker'
    or not is_in_window(context, request)
    or context.place ~= request.place
    or (context.state ~= 'active' and context.state ~= 'idle')
    or not context.clean
    or redis.call('SISMEMBER', key('dirty', id), context_id) == 1 then return 'not_ready' end
  if context.window_id == cjson.null then return end
  local own = kind == 'tab:' .. context.window_id and given_back or 0
  return deny_company(id, context.window_id, request, context_id, own)
end

-- The record of a context that nobody holds, or false and why there is none.
local function unassigned(id, context_id)
  local text = redis.call('HGET', key('contexts', id), context_id)
  if not text then return false, 'gone' end
  if redis.call('HEXISTS', key('assignments', id), context_id) == 1 then return false, 'taken' end
  return text
end

local function deny_assign(id, client, context_id, request, now, window_s, given_back, kind)
  if not client then return 'gone' end
  local text, denial = unassigned(id, context_id)
  return denial or deny_client(id, client, request, now, window_s, given_back)
    or deny_context(id, context_id, text, request, given_back, kind)
end

-- The negotiated number, or the lower one that a request asks to be kept to.
local function within(negotiated, asked)
  return asked and asked ~= '' and math.min(negotiated, tonumber(asked)) or negotiated
end

local function deny_slot(id, client, now, window_s)
  if not client then return 'gone' end
  if client.draining or not is_present(client, now, window_s) or excluded(id, now) then
    return 'not_ready'
  end
  if not client.max_concurrency or used_slots(id) >= client.max_concurrency then return 'full' end
end

-- Assigns a context that has not been denied, so is in the request's place. Times are texts, as
-- Python wrote them. It was created for this if there is a reservation.
local function hold(id, client, context_id, request, now, expires_at, reservation)
  local token = next_token(id)
  put_assignment({namespace = request.namespace, client_id = id, epoch = client.epoch,
                  context_id = context_id, task_id = request.task_id, token = token, since = now,
                  renewed_at = now, expires_at = expires_at, dedicated = request.dedicated,
                  reservation_id = reservation})
  redis.call('ZREM', key('idle', id), idle(request.place, context_id))
  load(id, client, client.used + 1)
  touch(id)
  return client.epoch, token
end
