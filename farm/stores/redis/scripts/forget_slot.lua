-- Gives a slot back of which it is not known whose it is, if it was taken at all.
-- ARGV: reservation.
for _, id in ipairs(redis.call('ZRANGE', key('clients'), 0, -1)) do
  local one = open_reservation(id, ARGV[2])
  if one then
    give_back(id, ARGV[2], one)
    changed(id)
    return {'ok', wake()}
  end
end
return {'no'}
