-- Ends what one client's worker contexts are assigned in a namespace; they are dirty (promise 10).
-- ARGV: client id, namespace, link if it is to be that one, or the last it had.
local id = ARGV[2]
local known = redis.call('EXISTS', key('client', id)) == 1
if not known or (ARGV[4] and redis.call('HGET', key('links'), id) ~= ARGV[4]) then
  return {'ok', false, {}}
end
local ended = {}
for _, text in ipairs(redis.call('HVALS', key('assignments', id))) do
  local one = cjson.decode(text)
  local context = cjson.decode(redis.call('HGET', key('contexts', id), one.context_id))
  if one.namespace == ARGV[3] and context.owner == 'worker' then
    ended[#ended + 1] = text
    release(id, one.context_id)
  end
end
if #ended == 0 then return {'ok', false, ended} end
changed(id)
return {'ok', wake(), ended}
