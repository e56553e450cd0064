-- Gives back what was reserved too long ago to be still in creation (promise 5), and what its
-- coordinator could not give back when it was over. What one has left that died goes with its lease.
-- ARGV: now, reservations that are not wanted.
local unwanted = {}
for n = 3, #ARGV do unwanted[ARGV[n]] = true end
local given_back = 0
for _, id in ipairs(redis.call('ZRANGE', key('clients'), 0, -1)) do
  local flat = redis.call('HGETALL', key('reservations', id))
  for at = 1, #flat, 2 do
    local one = cjson.decode(flat[at + 1])
    if unwanted[flat[at]] or tonumber(one.expires_at) <= tonumber(ARGV[2]) then
      give_back(id, flat[at], one)
      changed(id)
      given_back = given_back + 1
    end
  end
end
return {'ok', given_back > 0 and wake()}
