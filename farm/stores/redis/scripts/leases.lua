-- Coordinators, each there until its lease ends by this Redis's clock. `coordinators` has until when
-- that is, and `arrivals` since when it has been there without a gap.

local function now_s()
  local time = redis.call('TIME')
  return tonumber(time[1]) + tonumber(time[2]) / 1000000
end

local function is_there(coordinator)
  local till = redis.call('HGET', key('coordinators'), coordinator)
  return till and tonumber(till) > now_s()
end

local function stay(coordinator, lease_s)
  if not is_there(coordinator) then
    redis.call('HSET', key('arrivals'), coordinator, string.format('%.6f', now_s()))
  end
  redis.call('HSET', key('coordinators'), coordinator, string.format('%.6f', now_s() + lease_s))
end

-- Tells whether it has been there for so long that all others that are could have renewed, too: who
-- was away itself, as all are while this Redis is, can't tell who else is.
local function may_judge(coordinator, lease_s)
  local since = redis.call('HGET', key('arrivals'), coordinator) or 0
  return now_s() - since >= tonumber(lease_s)
end
