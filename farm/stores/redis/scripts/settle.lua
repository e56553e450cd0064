-- Turns a reservation into the assignment of its tab. Restates reservation.py `deny_assign`, with
-- the reserved slot counted as free: it becomes the assignment's, never two, never none.
-- ARGV: client id, context id, request, now, presence window, expiry, epoch,
-- 'windows' or 'tab:<window id>', identity if it has one.
local id, context_id, request, field = ARGV[2], ARGV[3], cjson.decode(ARGV[4]), ARGV[9]
local client = read_client(id)
if not client or client.epoch ~= ARGV[8] then return {'gone'} end
if redis.call('HEXISTS', key('contexts', id), context_id) == 0 then return {'not_ready'} end
local reserved = redis.call('HEXISTS', key('opening', id), field)
local denial = deny_assign(id, client, context_id, request, ARGV[5], ARGV[6], reserved)
if denial then return {denial} end
add(key('opening', id), field, -1)
if ARGV[10] then add(key('opening_identities', id), ARGV[10], -1) end
local epoch, token = hold(id, client, context_id, request, ARGV[5], ARGV[7])
-- Since it was reported, what was being created has counted twice.
return {'ok', wake(), epoch, token}
