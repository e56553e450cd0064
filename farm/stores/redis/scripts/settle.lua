-- Turns a reservation into the assignment of its context. Restates reservation.py `deny_assign`, with
-- the reserved slot counted as free: it becomes the assignment's, never two, never none.
-- ARGV: client id, context id, request, now, presence window, expiry, reservation.
local id, context_id, request, reservation = ARGV[2], ARGV[3], cjson.decode(ARGV[4]), ARGV[8]
local one = open_reservation(id, reservation)
if not one then
  -- Said again, it is answered again.
  local text = redis.call('HGET', key('assignments', id), context_id)
  if text and cjson.decode(text).reservation_id == reservation then return {'ok', false, text} end
  return {'gone'}
end
if redis.call('HEXISTS', key('contexts', id), context_id) == 0 then return {'not_ready'} end
local client = read_client(id)
local denial = deny_assign(id, client, context_id, request, ARGV[5], ARGV[6], 1, one.kind)
if denial then return {denial} end
give_back(id, reservation, one)
hold(id, client, context_id, request, ARGV[5], ARGV[7], reservation)
-- Since it was reported, what was being created has counted twice.
return {'ok', wake(), redis.call('HGET', key('assignments', id), context_id)}
