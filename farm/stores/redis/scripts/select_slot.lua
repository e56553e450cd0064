-- Takes a slot of the next agent in turn that would do and has one (promise 5); only a win moves the
-- cursor. ARGV: request, now, presence window, and what `reserve` wants. Taking wakes nobody.
local FEW = 32
local request = cjson.decode(ARGV[2])
local pool = requested_pool(request)

local function take_on(id)
  local client = read_client(id)
  -- Who is silent comes back by a heartbeat.
  if not is_present(client, ARGV[3], ARGV[4]) then return hide(id) end
  if deny_client(id, client, request, ARGV[3], ARGV[4], 0) then return end
  reserve(id, 'slots')
  had(pool, id)
  return {'ok', false, id, client.epoch}
end

local few = few_who_meet(request, FEW)
if not few then return in_turn('free', pool, take_on) or {'no'} end
-- Redis puts them in order, as it does all.
for _, id in ipairs(few) do
  if redis.call('ZSCORE', key('free', pool), id) then redis.call('ZADD', key('few', pool), 0, id) end
end
local taken = in_turn('few', pool, take_on)
redis.call('DEL', key('few', pool))
return taken or {'no'}
