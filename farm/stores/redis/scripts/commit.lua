-- Assigns a context to a task, which takes over a reserved slot. Restates `Slots.commit`.
-- ARGV: client id, context id, request, now, presence window, expiry, reservation or ''.
local id, context_id, request, reservation = ARGV[2], ARGV[3], cjson.decode(ARGV[4]), ARGV[8]
local client = read_client(id)
if not client then return {'gone'} end
local one = reservation ~= '' and open_reservation(id, reservation)
local text = redis.call('HGET', key('assignments', id), context_id)
local held = text and cjson.decode(text)
-- Restates reservation.py `is_of`.
if held and held.namespace == request.namespace and held.task_id == request.task_id then
  if not one then return {'ok', false, text} end
  give_back(id, reservation, one)
  changed(id)
  return {'ok', wake(), text}
end
if reservation ~= '' and not one then return {'gone'} end
local denial = deny_assign(id, client, context_id, request, ARGV[5], ARGV[6], one and 1 or 0,
                           one and one.kind)
if denial then return {denial} end
if one then give_back(id, reservation, one) end
hold(id, client, context_id, request, ARGV[5], ARGV[7], one and reservation or nil)
return {'ok', false, redis.call('HGET', key('assignments', id), context_id)}
