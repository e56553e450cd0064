-- Finds an idle context that fits and takes it with one slot (promise 4): the affinity client's,
-- else one of the emptiest client, or the fullest. Of all there is it looks at a bounded part, and
-- says 'no' where none was in that.
-- ARGV: request, now, presence window, expiry, 'spread' or 'pack', affinity client if there is one.
-- Taking wakes nobody.
local CLIENTS, CONTEXTS, FEW = 32, 64, 4 -- and how many of either are read at once
local request, now, window_s = cjson.decode(ARGV[2]), ARGV[3], ARGV[4]
local name = ready(request.client_type or '', request.namespace, request.task_queue, request.place)

-- Of this place it has nothing idle.
local function drop(id)
  redis.call('ZREM', name, id)
  redis.call('SREM', key('shown', id), name)
end

local function find_on(id)
  local client = read_client(id)
  if not client then return end
  -- Who is silent comes back by a heartbeat.
  if not is_present(client, now, window_s) then return hide(id) end
  if deny_client(id, client, request, now, window_s, 0) then return end
  local from, to = idle_in(request.place)
  for at = 0, CONTEXTS - FEW, FEW do
    local found = redis.call('ZRANGEBYLEX', key('idle', id), from, to, 'LIMIT', at, FEW)
    for _, member in ipairs(found) do
      local context_id = string.sub(member, string.len(request.place) + 2)
      local text = unassigned(id, context_id)
      if text and not deny_context(id, context_id, text, request, 0) then
        return client, context_id
      end
    end
    if at == 0 and #found == 0 then return drop(id) end
    if #found < FEW then return end
  end
end

local function in_order(few)
  local loads, ids = {}, {}
  for _, id in ipairs(few) do
    loads[id] = tonumber(redis.call('ZSCORE', name, id) or nil)
    if loads[id] then ids[#ids + 1] = id end
  end
  table.sort(ids, function(one, other)
    if ARGV[6] == 'pack' then return loads[one] > loads[other] end
    return loads[one] < loads[other]
  end)
  return ids
end

local function take_on(id)
  local client, context_id = find_on(id)
  if not client then return end
  return {'ok', false, id, context_id, hold(id, client, context_id, request, now, ARGV[5])}
end

local function take_on_one_of(ids)
  for _, id in ipairs(ids) do
    local taken = take_on(id)
    if taken then return taken end
  end
end

local taken = ARGV[7] and take_on(ARGV[7])
if taken then return taken end
local few = few_who_meet(request, CLIENTS)
if few then return take_on_one_of(in_order(few)) or {'no'} end
local command = ARGV[6] == 'pack' and 'ZREVRANGE' or 'ZRANGE'
return take_on_one_of(redis.call(command, name, 0, FEW - 1))
  or take_on_one_of(redis.call(command, name, 0, CLIENTS - 1)) or {'no'}
