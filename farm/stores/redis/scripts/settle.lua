-- Turns a reservation into the assignment of its tab. Restates reservation.py `deny_assign`, with
-- the reserved slot counted as free: it becomes the assignment's, never two, never none.
-- ARGV: client id, context id, request, now, presence window, expiry, epoch,
-- 'windows', 'flows' or 'tab:<window id>', identity if it has one.
local id, context_id, request, kind = ARGV[2], ARGV[3], cjson.decode(ARGV[4]), ARGV[9]
local client = read_client(id)
if not client or client.epoch ~= ARGV[8] then return {'gone'} end
if redis.call('HEXISTS', key('contexts', id), context_id) == 0 then return {'not_ready'} end
local reserved = redis.call('HEXISTS', key('opening', id), kind)
local denial = deny_assign(id, client, context_id, request, ARGV[5], ARGV[6], reserved, kind)
if denial then return {denial} end
give_back(id, kind, ARGV[10])
local epoch, token = hold(id, client, context_id, request, ARGV[5], ARGV[7])
-- Since it was reported, what was being created has counted twice.
return {'ok', wake(), epoch, token}
