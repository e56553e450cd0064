-- What every script begins with: the shard's key names, its store epoch, revisions and wakes.
-- KEYS: the store epoch. Each other key is named from it, so has its hash tag, so its slot.
-- ARGV: the store epoch the caller knows, then the script's own, which are counted on from there.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return redis.error_reply('FORGOTTEN this Redis is not, or no more, of store epoch ' .. ARGV[1])
end
local tag = string.sub(KEYS[1], 1, -string.len(':epoch') - 1)

local function key(part, id)
  return id and tag .. ':' .. part .. ':' .. id or tag .. ':' .. part
end

-- Lua would write a large number as 1.7e+15.
local function whole(number) return string.format('%.0f', number) end

local micros

-- A number above `last`, and above all given out before Redis lost its last second of writes.
local function later(last)
  local time = not micros and redis.call('TIME')
  micros = micros or time[1] * 1000000 + time[2]
  return math.max((tonumber(last) or 0) + 1, micros)
end

-- Notes that a client has changed, was merely `heard` of, or is `gone`, for snapshots that read
-- only what is new; returns the number of the change.
local function touch(id, how)
  local revision = whole(later(redis.call('GET', key('revision'))))
  redis.call('SET', key('revision'), revision)
  redis.call('ZADD', key(how or 'clients'), revision, id)
  return revision
end

-- Promise 7: counts a change and tells who waits; to be called once a script, after its writes.
local function wake()
  local generation = redis.call('INCR', key('generation'))
  redis.call('PUBLISH', key('changes'), generation)
  return generation
end
