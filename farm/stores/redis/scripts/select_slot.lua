-- Takes a slot of the next agent in turn that would do and has one (promise 5); only a win moves the
-- cursor. ARGV: request, now, presence window, and what `reserve` wants. Taking wakes nobody.
local request = cjson.decode(ARGV[2])
local pool = requested_pool(request)
return in_turn('free', pool, function(id)
  local client = read_client(id)
  -- Who is silent comes back by a heartbeat.
  if not is_present(client, ARGV[3], ARGV[4]) then return hide(id) end
  if deny_client(id, client, request, ARGV[3], ARGV[4], 0) then return end
  reserve(id, 'slots')
  had(pool, id)
  return {'ok', false, id, client.epoch}
end) or {'no'}
