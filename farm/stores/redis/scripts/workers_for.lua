-- Returns the agents that would do, full or not, in turn; moves the cursor if there are any.
-- ARGV: request, now, presence window.
local request, found = cjson.decode(ARGV[2]), {}
local pool = requested_pool(request)
in_turn('pool', pool, function(id)
  if not deny_agent(id, read_client(id), request, ARGV[3], ARGV[4]) then found[#found + 1] = id end
end)
if found[1] then had(pool, found[1]) end
return {'ok', false, found}
