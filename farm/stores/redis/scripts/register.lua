-- Lets an agent in. Restates `ConnectionRegistry.register`.
-- ARGV: client id, instance, epoch name, type, link or '', highest token or '', now, presence
-- window, 1 or 0 for probation, number of metadata fields and values, these, then the client's own.
local id, instance, epoch_name, type, link = ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local known = read_client(id)
-- One that is away may still be running what it holds, until it is removed as gone.
if known and known.instance ~= instance and (is_present(known, ARGV[8], ARGV[9])
  or redis.call('HLEN', key('assignments', id)) > 0) then return {'in_use'} end

-- The fence and the probation are of the link.
local same_link = known and known.link and known.link == link
local fence = same_link and redis.call('HGET', key('client', id), 'drain')
if not same_link then redis.call('HDEL', key('unproven'), id) end
if not same_link and link ~= '' and ARGV[10] == '1' then
  redis.call('HSET', key('unproven'), id, link)
end
local before = kind_of(id)
if known and known.epoch_name == epoch_name then
  type = known.type
else
  forget(id, PARTS)
  redis.call('HSET', key('client', id), 'epoch', redis.call('HINCRBY', key('epochs'), id, 1))
end
redis.call('HDEL', key('client', id), 'link', 'browser', 'node', 'deployment', 'drain',
  'max_concurrency')
redis.call('HSET', key('client', id), 'instance', instance, 'epoch_name', epoch_name,
  'type', type, 'report', 0)
if link ~= '' then
  redis.call('HSET', key('client', id), 'link', link)
  redis.call('HSET', key('links'), id, link)
end
list_metadata(id, 'SREM')
redis.call('DEL', key('metadata', id))
local own = 12 + tonumber(ARGV[11])
put_all('HSET', key('metadata', id), 12, own - 1)
list_metadata(id, 'SADD')
put_all('HSET', key('client', id), own, #ARGV)
if fence then redis.call('HSET', key('client', id), 'drain', fence, 'draining', 1) end
if before ~= kind_of(id) then depart(before, known and known.seen_at) end
redis.call('HSET', key('seen'), id, ARGV[8])
if ARGV[7] ~= '' then raise_token(id, ARGV[7]) end
join_pools(id, read_client(id))
changed(id)
return {'ok', wake(), whole_client(id)}
