-- Replaces the picture of one epoch (promise 1).
-- ARGV: client id, link, epoch, number, now, how many arguments tell of windows, of identities and
-- of contexts, then windows and contexts as pairs of id and record, the identities between them.
local id = ARGV[2]
local found = redis.call('HMGET', key('client', id), 'link', 'epoch', 'report')
if not found[1] or found[1] ~= ARGV[3] or found[2] ~= ARGV[4]
  or tonumber(ARGV[5]) <= tonumber(found[3]) then return {'stale'} end

for _, part in ipairs({'windows', 'identities', 'contexts', 'dirty'}) do
  redis.call('DEL', key(part, id))
end
local identities = 10 + tonumber(ARGV[7])
local contexts = identities + tonumber(ARGV[8])
put_all(key('windows', id), 10, identities - 1)
for at = identities, contexts - 1 do redis.call('SADD', key('identities', id), ARGV[at]) end
put_all(key('contexts', id), contexts, contexts + tonumber(ARGV[9]) - 1)
redis.call('HSET', key('client', id), 'report', ARGV[5])
redis.call('HSET', key('seen'), id, ARGV[6])

local gone = {}
for _, text in ipairs(redis.call('HVALS', key('assignments', id))) do
  local context_id = cjson.decode(text).context_id
  if redis.call('HEXISTS', key('contexts', id), context_id) == 0 then
    gone[#gone + 1] = text
    end_assignment(id, context_id)
  end
end
touch(id)
return {'ok', wake(), gone}
